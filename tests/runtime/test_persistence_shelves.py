"""Programs, events from outside, memos and the clock, in both stores."""

from __future__ import annotations

from datetime import timedelta

import pytest

from afl.ir.codec import dumps, loads
from afl.ir.errors import ProgramFormatError
from afl.kernel.errors import NotFound
from afl.kernel.model import CallStatus, Json
from afl.kernel.port import Transaction
from afl.runtime.persistence import Await
from afl.runtime.step import WorkflowId
from tests.ir.example import EXAMPLE
from tests.runtime.kept import HOUR, Kept, begin, call, changes, end, write


def test_programs_are_kept_by_their_hash(kept: Kept) -> None:
    text = dumps(EXAMPLE)
    name = kept.store.save_program(text)
    assert kept.store.save_program(text) == name
    assert name.startswith("sha256:")
    assert kept.store.get_program(name) == text
    assert loads(kept.store.get_program(name) or "") == EXAMPLE
    assert kept.store.get_program("sha256:0") is None


def test_what_is_no_program_is_refused(kept: Kept) -> None:
    with pytest.raises(ProgramFormatError):
        kept.store.save_program("{}")


def test_the_current_program_under_a_name(kept: Kept) -> None:
    name = kept.store.save_program(dumps(EXAMPLE))
    assert kept.store.deployed() is None
    assert kept.store.deployments() == {}
    for place in ("b", "default", "b"):
        kept.store.deploy(place, name)
    assert kept.store.deployed() == name
    assert kept.store.deployed("c") is None
    assert kept.store.deployments() == {"b": name, "default": name}
    with pytest.raises(NotFound):
        kept.store.deploy("b", "sha256:0")
    assert kept.store.deployed("b") == name


def waiting(kept: Kept, name: str = "order", key: str = "7", at: str = "0/w") -> WorkflowId:
    """A run with a call that waits for an event."""
    run = begin(kept)
    call(kept, at, "afl.event.Wait")
    await_event(kept, run, name, key, at)
    return run


def await_event(kept: Kept, run: WorkflowId, name: str, key: str, at: str = "0/w") -> None:
    made = changes()
    made.awaits.append(Await(at, name, key))
    write(kept, lambda transaction: kept.store.write_changes(transaction, run, made))


def answer(kept: Kept, run: WorkflowId, status: CallStatus, body: Json = None) -> None:
    found = kept.store.kernel.find_call(run, "0/w")  # type: ignore[arg-type]
    assert found is not None
    assert kept.store.kernel.reply(found.id, status, body)


@pytest.mark.parametrize("event_first", [True, False])
def test_an_event_is_taken_once_whichever_comes_first(kept: Kept, event_first: bool) -> None:
    payload: Json = {"a": [1, "ü"]}
    if event_first:
        assert kept.store.emit("order", "7", payload)
        assert kept.store.match_events() == []
        run = waiting(kept)
    else:
        run = waiting(kept)
        assert kept.store.match_events() == []
        assert kept.store.emit("order", "7", payload)
    for _ in range(2):
        assert kept.store.match_events() == [(run, "0/w", payload)], "the same until it is settled"
    answer(kept, run, CallStatus.OK, payload)
    assert kept.store.match_events() == [(run, "0/w", payload)]
    for _ in range(2):
        kept.store.settle_event(run, "0/w")
    assert kept.store.match_events() == []
    waiting(kept)
    assert kept.store.match_events() == []


def test_the_oldest_goes_to_the_oldest(kept: Kept) -> None:
    first, second = waiting(kept), waiting(kept)
    for payload in (1, 2, 3):
        kept.store.emit("order", "7", payload)
    assert kept.store.match_events() == [(first, "0/w", 1), (second, "0/w", 2)]
    third = waiting(kept)
    assert kept.store.match_events(limit=1) == [(first, "0/w", 1)]
    assert kept.store.match_events()[2] == (third, "0/w", 3)


def test_names_and_keys_both_count(kept: Kept) -> None:
    run = waiting(kept)
    for name, key in (("order", "8"), ("other", "7"), ("order7", ""), ("", "order7")):
        kept.store.emit(name, key, None)
    assert kept.store.match_events() == []
    kept.store.emit("order", "7", None)
    assert kept.store.match_events() == [(run, "0/w", None)]


def test_an_id_is_known_for_good(kept: Kept) -> None:
    run = waiting(kept)
    assert kept.store.emit("order", "7", 1, id="e1")
    assert not kept.store.emit("order", "7", 2, id="e1")
    assert kept.store.match_events() == [(run, "0/w", 1)]
    assert not kept.store.emit("order", "7", 2, id="e1")
    kept.store.settle_event(run, "0/w")
    assert not kept.store.emit("order", "7", 2, id="e1")
    waiting(kept)
    assert kept.store.match_events() == []


def test_waiting_twice_is_waiting_once(kept: Kept) -> None:
    run = waiting(kept)
    await_event(kept, run, "order", "7")
    for payload in (1, 2):
        kept.store.emit("order", "7", payload)
    assert kept.store.match_events() == [(run, "0/w", 1)]
    await_event(kept, run, "order", "7")
    assert kept.store.match_events() == [(run, "0/w", 1)]


def test_a_wait_that_is_over_takes_no_event(kept: Kept) -> None:
    late, live = waiting(kept), waiting(kept)
    answer(kept, late, CallStatus.TIMEOUT)
    kept.store.emit("order", "7", 1)
    assert kept.store.match_events() == [(live, "0/w", 1)]


def test_an_event_whose_call_ended_otherwise_is_for_the_next(kept: Kept) -> None:
    late = waiting(kept)
    kept.store.emit("order", "7", 1)
    assert kept.store.match_events() == [(late, "0/w", 1)]
    answer(kept, late, CallStatus.TIMEOUT)
    live = waiting(kept)
    assert kept.store.match_events() == [(live, "0/w", 1)]


def test_settling_a_call_that_ended_otherwise_gives_the_event_back(kept: Kept) -> None:
    late = waiting(kept)
    kept.store.emit("order", "7", 1)
    assert kept.store.match_events() == [(late, "0/w", 1)]
    answer(kept, late, CallStatus.CANCELED)
    kept.store.settle_event(late, "0/w")
    live = waiting(kept)
    assert kept.store.match_events() == [(live, "0/w", 1)]


def test_a_run_that_has_ended_waits_for_nothing(kept: Kept) -> None:
    ended, live = waiting(kept), waiting(kept)
    end(kept, ended)
    kept.store.emit("order", "7", 1)
    assert kept.store.match_events() == [(live, "0/w", 1)]


def test_a_stopped_flow_gives_its_event_back(kept: Kept) -> None:
    stopped = waiting(kept)
    kept.store.emit("order", "7", 1)
    assert kept.store.match_events() == [(stopped, "0/w", 1)]
    kept.store.kernel.stop(stopped)  # type: ignore[arg-type]
    live = waiting(kept)
    assert kept.store.match_events() == [(live, "0/w", 1)]


def test_awaits_that_are_rolled_back_wait_for_nothing(kept: Kept) -> None:
    run = begin(kept)
    call(kept, "0/w", "afl.event.Wait")
    made = changes()
    made.awaits.append(Await("0/w", "order", "7"))

    def fail(transaction: Transaction) -> None:
        kept.store.write_changes(transaction, run, made)
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        write(kept, fail)
    kept.store.emit("order", "7", 1)
    assert kept.store.match_events() == []


def test_settled_events_are_forgotten_with_the_runs(kept: Kept) -> None:
    run = waiting(kept)
    kept.store.emit("order", "7", 1, id="e1")
    kept.store.match_events()
    kept.store.settle_event(run, "0/w")
    kept.store.emit("order", "7", 2, id="e2")
    kept.advance(HOUR)
    kept.store.forget_runs(HOUR * 2)
    assert not kept.store.emit("order", "7", 1, id="e1")
    kept.store.forget_runs(timedelta(0))
    assert kept.store.emit("order", "8", 1, id="e1")
    assert not kept.store.emit("order", "7", 2, id="e2"), "nobody has taken this one"


def test_memos_are_kept_until_they_expire(kept: Kept) -> None:
    kept.store.put_memo("F", "k", {"a": [1]}, HOUR)
    kept.store.put_memo("F", "other", {"a": 2}, None)
    kept.store.put_memo("G", "k", {}, None)
    found = kept.store.get_memo("F", "k")
    assert found == {"a": [1]}
    assert kept.store.get_memo("G", "k") == {}
    assert kept.store.get_memo("G", "other") is None
    kept.store.put_memo("F", "k", {"a": 3}, HOUR)
    assert kept.store.get_memo("F", "k") == {"a": 3}
    kept.advance(HOUR)
    assert kept.store.get_memo("F", "k") is None
    assert kept.store.get_memo("F", "other") == {"a": 2}
    kept.store.forget_runs(timedelta(0))
    kept.store.put_memo("F", "k", {"a": 4}, None)
    assert kept.store.get_memo("F", "k") == {"a": 4}


def test_the_clock_is_the_stores(kept: Kept) -> None:
    before = kept.store.now()
    assert before.utcoffset() == timedelta(0)
    kept.advance(HOUR)
    assert HOUR <= kept.store.now() - before < HOUR + timedelta(seconds=1)
