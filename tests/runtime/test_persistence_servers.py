"""What stores on a server promise to those who share it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from afl.kernel.errors import BadRequest
from afl.runtime.persistence import Await
from afl.runtime.schedule import Schedule, Times
from afl.runtime.step import StepId, WorkflowId
from tests.runtime.kept import HOUR, Kept, begin, changes, end, save, step, write


def test_a_number_that_json_does_not_have_is_refused(server_kept: Kept) -> None:
    run = begin(server_kept)
    with pytest.raises(BadRequest):
        save(server_kept, step(run, "0/a", params={"x": float("inf")}))
    assert server_kept.store.get_steps_by_workflow(run) == []


def test_events_are_given_once_by_many_at_once(server_kept: Kept) -> None:
    """Waits, events and matches of many threads: each event has one call, and none is left over."""
    count = 40
    runs = [begin(server_kept) for _ in range(count)]
    store = server_kept.store
    start = threading.Barrier(4)

    def wait(each: list[WorkflowId]) -> None:
        start.wait()
        for run in each:
            made = changes()
            made.awaits.append(Await("0/w", "n", "k"))
            write(server_kept, lambda tx, run=run, made=made: store.write_changes(tx, run, made))  # type: ignore[misc]

    def emit() -> None:
        start.wait()
        for n in range(count):
            store.emit("n", "k", n)

    def match() -> list[tuple[WorkflowId, str, object]]:
        start.wait()
        return [pair for _ in range(count) for pair in store.match_events()]

    with ThreadPoolExecutor(4) as pool:
        waits = [pool.submit(wait, runs[: count // 2]), pool.submit(wait, runs[count // 2 :])]
        emitted, seen = pool.submit(emit), pool.submit(match)
        for each in (*waits, emitted):
            each.result()
        before = set(seen.result())
    pairs = store.match_events()
    assert before <= set(pairs), "what was assigned stays assigned"
    assert sorted(run for run, _, _ in pairs) == sorted(runs)
    assert sorted(payload for _, _, payload in pairs if isinstance(payload, int)) == [*range(count)]


def test_many_forget_at_once(server_kept: Kept) -> None:
    """Every run goes once, whoever removes it."""
    runs = [begin(server_kept) for _ in range(12)]
    for run in runs:
        save(server_kept, step(run, ""), step(run, "0/a"))
        end(server_kept, run)
    server_kept.advance(HOUR)
    with ThreadPoolExecutor(3) as pool:
        gone = list(pool.map(lambda _: server_kept.store.forget_runs(timedelta(0)), range(3)))
    assert sum(gone) == len(runs)
    assert server_kept.store.find_runs() == []
    assert all(server_kept.store.get_step(StepId(f"{run}:0/a")) is None for run in runs)


def test_schedules_are_taken_by_one_each(server_kept: Kept) -> None:
    store = server_kept.store
    now = store.now()
    made = [
        Schedule(f"s{number}", "w", Times(every=HOUR), next_fire=now, look_at=now)
        for number in range(20)
    ]
    for schedule in made:
        write(server_kept, lambda tx, each=schedule: store.write_schedule(tx, each))  # type: ignore[misc]
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda _: store.take_due(HOUR, 5).schedules, range(8)))
    # what two wanted at once may have been left to later
    taken.append(store.take_due(HOUR, 20).schedules)
    names = [each.name for some in taken for each in some]
    assert sorted(names) == sorted(each.name for each in made)
