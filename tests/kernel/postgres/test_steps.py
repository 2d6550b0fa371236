"""The short way of a step answers what the long way would, and leaves what is not plain to it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from afl.base.system import SystemIds
from afl.kernel.errors import BadRequest, Fenced
from afl.kernel.model import (
    CallId,
    CallStatus,
    CardSpec,
    ClaimRequest,
    Close,
    Commit,
    Committed,
    Continue,
    Json,
    Outcome,
    ReasonCode,
    Retry,
    State,
    Stopped,
    Suspend,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.postgres.database import Database
from afl.kernel.postgres.stepping import Stepped
from afl.kernel.postgres.store import PostgresStore
from tests.kernel.postgres.interleaving import two_players
from tests.kernel.postgres.stepping import (
    DONE,
    HOUR,
    W,
    assert_short,
    begin,
    call,
    call_of,
    check,
    flows,
    note,
    notes,
    request,
    step,
)
from tests.kernel.postgres.test_plans import Plans


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with PostgresStore.connect(url, max_size=2) as store:
        store.register(WorkerSpec(W, "w", handlers=("flow", "tool"), lease=HOUR))
        yield store


def test_a_sequence_of_steps_is_what_was_stored(store: PostgresStore) -> None:
    held = flows(store, 3)
    callees = begin(store, held)
    for number in range(1, 4):
        commits = [
            commit
            for flow, callee in zip(held, callees, strict=True)
            for commit in step(flow, callee, number, call(str(number)))
        ]
        done, claims = store.commit_and_claim(commits, request(3), writes=note(f"{number}"))
        check(store, done)
        for callee in callees:
            answered = store.get_call(call_of(callee))
            assert answered is not None
            assert (answered.status, answered.applied) == (CallStatus.OK, True)
            assert answered.reply == {"done": [1]}
        callees = [each.eager[0] for each in done[1::2]]
        assert callees == claims
        assert [store.get_task(claim.task.id) for claim in claims] == [c.task for c in claims]
    ends = [Commit(callee.fence, DONE) for callee in callees]
    lasts = [
        Commit(flow.fence, DONE, 4, applied=(call_of(callee),))
        for flow, callee in zip(held, callees, strict=True)
    ]
    done = store.commit([*ends, *lasts])
    check(store, done)
    assert {each.task.outcome for each in done} == {Outcome.SUCCESS}
    assert notes(store) == ["1", "2", "3"]
    closed = [entry.task for entry in store.read_outbox(limit=99) if entry.topic == "closed"]
    assert len(closed) == len(set(closed)) == 15


def test_the_outbox_says_the_same_on_both_ways(store: PostgresStore) -> None:
    (flow,) = flows(store)
    spec = TaskSpec("100%", 'say "%s".tool')
    bodies: list[Json] = []
    for number, cards in enumerate(((), (CardSpec("card", 1),))):
        calls = (call(str(number), spec),)
        ((done,), _) = store.commit_and_claim(
            [Commit(flow.fence, Continue(), number, calls=calls)], request()
        )
        (callee,) = done.eager
        (ended,) = store.commit([Commit(callee.fence, DONE, cards=cards)])
        assert isinstance(ended, Stepped) != bool(cards)
        body = store.read_outbox()[-1].body
        assert isinstance(body, dict)
        assert body.pop("parent_call") == call_of(callee)
        bodies.append(body)
    assert bodies[0] == bodies[1]


def test_a_fan_wakes_the_flow_that_waits_for_it(store: PostgresStore) -> None:
    (flow,) = flows(store)
    calls = tuple(call(str(n)) for n in range(6))
    done, claims = store.commit_and_claim(
        [Commit(flow.fence, Suspend(), calls=calls)], request(2), writes=note("called")
    )
    check(store, done)
    assert done[0].task.state is State.WAITING
    assert len(claims) == 2
    ended, more = store.commit_and_claim(
        [Commit(claim.fence, DONE) for claim in claims], request(4)
    )
    check(store, ended)
    woken = store.get_task(flow.task.id)
    assert woken is not None
    assert woken.reason is not None
    assert (woken.state, woken.reason.code) == (State.READY, ReasonCode.ANSWERED)
    check(store, store.commit([Commit(claim.fence, DONE) for claim in more]))
    (again,) = store.claim(request(1, ("flow",)))
    assert len(again.replies) == 6
    applied = tuple(reply.id for reply in again.replies)
    (last,) = store.commit([Commit(again.fence, DONE, applied=applied)], writes=note("ended"))
    check(store, [last])
    assert all(each.applied for each in store.calls_of(flow.task.id))


def test_a_flow_that_waits_for_all_is_woken_by_the_last(store: PostgresStore) -> None:
    (flow,) = flows(store, spec=TaskSpec("flow", "flow"))
    commit = Commit(flow.fence, Suspend(), calls=(call("1"), call("2")))
    _, (first, second) = store.commit_and_claim([commit], request(2))
    for claim, state in ((first, State.WAITING), (second, State.READY)):
        check(store, store.commit([Commit(claim.fence, DONE)]))
        task = store.get_task(flow.task.id)
        assert task is not None
        assert task.state is state


def test_suspending_with_answers_untaken_is_ready_at_once(store: PostgresStore) -> None:
    (flow,) = flows(store)
    (callee,) = begin(store, [flow])
    done = store.commit([Commit(callee.fence, DONE), Commit(flow.fence, Suspend(), 1)])
    check(store, done)
    assert done[1].task.state is State.READY
    assert done[1].task.reason is not None
    assert done[1].task.reason.code is ReasonCode.ANSWERED


def test_what_does_not_fit_is_left_for_others(store: PostgresStore) -> None:
    (flow,) = flows(store)
    specs = {
        "later": TaskSpec("tool", "tool", delay=HOUR),
        "low": TaskSpec("tool", "tool"),
        "high": TaskSpec("tool", "tool", priority=9, timeout=timedelta(seconds=1)),
        "other": TaskSpec("tool", "other"),
        "list": TaskSpec("tool", "tool", list="far", retry=Retry(3, HOUR, 1.5, 2 * HOUR, False)),
    }
    calls = tuple(call(key, spec) for key, spec in specs.items())
    done, claims = store.commit_and_claim(
        [Commit(flow.fence, Continue(), calls=calls)], request(1, token="t")
    )
    check(store, done)
    assert [claim.task.priority for claim in claims] == [9]
    made = {each.key: each.callee for each in store.calls_of(flow.task.id)}
    states = {}
    for key, callee in made.items():
        assert callee is not None
        task = store.get_task(callee)
        assert task is not None
        assert task.reason is None or task.reason.since == task.created_at
        states[key] = (task.state, None if task.reason is None else task.reason.code)
    ready = (State.READY, ReasonCode.CLAIMABLE)
    assert states == {
        "later": (State.READY, ReasonCode.DELAYED),
        "low": ready,
        "high": (State.RUNNING, None),
        "other": ready,
        "list": ready,
    }
    (low,) = store.claim(request(9))
    assert low.task.id == made["low"]


def test_what_is_left_of_the_request_is_claimed(store: PostgresStore) -> None:
    (flow,) = flows(store)
    store.enqueue([TaskSpec("tool", "tool")] * 5)
    done, claims = store.commit_and_claim(
        [Commit(flow.fence, Continue(), calls=(call("0"),))], request(3)
    )
    check(store, done)
    assert len(claims) == 3
    assert claims[0] == done[0].eager[0]
    assert [claim.fence for claim in claims] == sorted(claim.fence for claim in claims)
    _, after = store.commit_and_claim([Commit(claims[1].fence, DONE)], request(3))
    assert len(after) == 3


def test_a_token_that_holds_something_takes_no_more(store: PostgresStore) -> None:
    (flow,) = flows(store)
    _, (first,) = store.commit_and_claim(
        [Commit(flow.fence, Continue(), calls=(call("0"),))], request(1, token="same")
    )
    done, claims = store.commit_and_claim(
        [Commit(flow.fence, Continue(), 1, calls=(call("1"),))], request(5, token="same")
    )
    check(store, done, short=False)
    assert [claim.fence for claim in claims] == [first.fence]
    assert done[0].eager == ()


def test_a_worker_that_is_not_live_commits_and_takes_nothing(store: PostgresStore) -> None:
    (flow,) = flows(store)
    nobody = ClaimRequest(WorkerId("nobody"), ("tool",))
    done, claims = store.commit_and_claim(
        [Commit(flow.fence, Continue(), calls=(call("0"),))], nobody
    )
    check(store, done, short=False)
    assert claims == []


def test_the_second_time_changes_nothing(store: PostgresStore) -> None:
    (flow,) = flows(store)
    (callee,) = begin(store, [flow])
    commits = step(flow, callee, 1, call("1"))
    first, claims = store.commit_and_claim(commits, request(token="t"), writes=note("once"))
    second, again = store.commit_and_claim(commits, request(token="t"), writes=note("once"))
    check(store, second, short=False)
    assert second == first
    assert again == claims
    assert notes(store) == ["once"]


def test_another_process_goes_on_where_one_has_stopped(store: PostgresStore, url: str) -> None:
    (flow,) = flows(store)
    (callee,) = begin(store, [flow])
    with PostgresStore.connect(url, max_size=1) as other:
        ((_, first), _) = other.commit_and_claim(step(flow, callee, 1, call("1")), request())
        assert not isinstance(first, Stepped)
        done, _ = other.commit_and_claim(step(flow, first.eager[0], 2, call("2")), request())
        check(other, done)
    with pytest.raises(BadRequest, match="out of order"):
        store.commit([Commit(flow.fence, Continue(), 7)])
    # what is known here is old by now
    (repeated,) = store.commit([Commit(flow.fence, Continue(), 1, calls=(call("new"),))])
    check(store, [Committed(repeated.task)], short=False)
    assert store.find_call(flow.task.id, "new") is None


@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_one_lost_fence_refuses_all(store: PostgresStore, lost: int) -> None:
    held = flows(store, 2)
    callees = begin(store, held)
    commits = [
        *(Commit(callee.fence, DONE) for callee in callees),
        *(
            Commit(flow.fence, Continue(), 1, calls=(call("1"),), applied=(call_of(callee),))
            for flow, callee in zip(held, callees, strict=True)
        ),
    ]
    task = (*callees, *held)[lost].task
    store.stop(task.id, force=True)
    before = store.find_tasks(limit=99), len(store.read_outbox())
    with pytest.raises(Fenced):
        store.commit_and_claim(commits, request(2), writes=note("never"))
    assert (store.find_tasks(limit=99), len(store.read_outbox())) == before
    assert notes(store) == []


def test_who_is_asked_to_stop_takes_the_long_way(store: PostgresStore) -> None:
    held = flows(store, 2)
    callees = begin(store, held)
    assert store.stop(held[0].task.id, error="why") is Stopped.REQUESTED
    done = store.commit(
        [
            *(Commit(callee.fence, DONE) for callee in callees),
            *(Commit(flow.fence, Suspend(), 1) for flow in held),
        ]
    )
    check(store, done, short=False)
    assert done[2].task.outcome is Outcome.CANCELED
    assert done[3].task.state is State.READY


def test_a_failure_takes_the_long_way_and_its_retry_the_short_one(store: PostgresStore) -> None:
    (flow,) = flows(store)
    spec = TaskSpec("tool", "tool", retry=Retry(1, timedelta(microseconds=1)))
    _, (callee,) = store.commit_and_claim(
        [Commit(flow.fence, Suspend(), calls=(call("0", spec),))], request()
    )
    failed = store.commit([Commit(callee.fence, Close(Outcome.FAILED, error="no"))])
    check(store, failed, short=False)
    assert failed[0].task.state is State.READY
    (again,) = store.claim(request())
    check(store, store.commit([Commit(again.fence, DONE)]))
    (reply,) = store.claim(request(1, ("flow",)))[0].replies
    assert reply.status is CallStatus.OK


def test_mixed_batches_take_the_long_way_together(store: PostgresStore) -> None:
    held = flows(store, 2)
    callees = begin(store, held)
    commits = [
        Commit(callees[0].fence, DONE),
        Commit(callees[1].fence, Close(Outcome.FAILED, error="no")),
        Commit(held[0].fence, Continue(), 1, calls=(call("1"),), applied=(call_of(callees[0]),)),
        Commit(held[1].fence, DONE, 1, cards=(CardSpec("c", 1),), applied=(call_of(callees[1]),)),
    ]
    done, (born,) = store.commit_and_claim(commits, request(token="t"), writes=note("mixed"))
    check(store, done, short=False)
    assert [each.task.outcome for each in done] == [
        Outcome.SUCCESS,
        Outcome.FAILED,
        None,
        Outcome.SUCCESS,
    ]
    assert notes(store) == ["mixed"]
    check(store, store.commit(step(held[0], born, 2)))


def test_lanes_take_the_long_way(store: PostgresStore) -> None:
    (flow,) = flows(store)
    laned = tuple(call(key, TaskSpec("tool", "tool", lane="L")) for key in "ab")
    ((done,), _) = store.commit_and_claim([Commit(flow.fence, Continue(), calls=laned)], request(2))
    check(store, [done], short=False)
    (callee,) = done.eager
    ended, (following,) = store.commit_and_claim([Commit(callee.fence, DONE)], request())
    check(store, ended, short=False)
    assert following.task.lane == "L"
    (holder,) = flows(store, spec=TaskSpec("flow", "flow", lane="M", hold=False))
    ((waits,), _) = store.commit_and_claim(
        [Commit(holder.fence, Suspend(), calls=(call("0"),))], request()
    )
    # the callee has no lane, but its caller has to get one back
    check(store, store.commit([Commit(waits.eager[0].fence, DONE)]), short=False)


def test_an_order_that_matters_is_kept(store: PostgresStore) -> None:
    (flow,) = flows(store)
    (callee,) = begin(store, [flow])
    early = Commit(flow.fence, Continue(), 1, applied=(call_of(callee),))
    with pytest.raises(BadRequest, match="no answer yet"):
        store.commit([early, Commit(callee.fence, DONE)])
    done = store.commit([Commit(flow.fence, Continue(), 1), Commit(callee.fence, DONE)])
    check(store, done, short=False)
    with pytest.raises(BadRequest, match="never made"):
        store.commit([Commit(flow.fence, Continue(), 2, applied=(CallId("x"),))])


def test_two_numbers_of_one_fence_are_taken_one_after_the_other(store: PostgresStore) -> None:
    (flow,) = flows(store)
    calls = (call("0"),), (call("1"),)
    done = store.commit([Commit(flow.fence, Continue(), n, calls=calls[n]) for n in (0, 1)])
    check(store, [done[1]], short=False)
    assert done[1].task.commits == 2


def test_three_generations_in_one_request(store: PostgresStore) -> None:
    (flow,) = flows(store)
    _, (middle,) = store.commit_and_claim(
        [Commit(flow.fence, Continue(), calls=(call("0"),))], request()
    )
    _, (leaf,) = store.commit_and_claim(
        [Commit(middle.fence, Continue(), calls=(call("0"),))], request()
    )
    done = store.commit(
        [
            Commit(leaf.fence, DONE),
            Commit(middle.fence, DONE, 1, applied=(call_of(leaf),)),
            Commit(flow.fence, DONE, 1, applied=(call_of(middle),)),
        ]
    )
    check(store, done, short=False)
    assert {each.task.state for each in done} == {State.CLOSED}


def test_a_call_that_was_answered_before_keeps_its_answer(store: PostgresStore) -> None:
    (flow,) = flows(store)
    (callee,) = begin(store, [flow])
    assert store.reply(call_of(callee), CallStatus.ERROR, "first")
    done = store.commit(step(flow, callee, 1))
    check(store, done, short=False)
    answered = store.get_call(call_of(callee))
    assert answered is not None
    assert (answered.reply, answered.applied) == ("first", True)
    assert [entry.topic for entry in store.read_outbox()] == ["closed", "late"]


def test_a_known_key_is_the_same_call(store: PostgresStore) -> None:
    (flow,) = flows(store)
    (callee,) = begin(store, [flow])
    (done,) = store.commit([Commit(flow.fence, Continue(), 1, calls=(call("0"), call("1")))])
    check(store, [done], short=False)
    assert done.calls["0"] == call_of(callee)


def test_callees_of_a_flow_that_ends_are_left_behind(store: PostgresStore) -> None:
    (flow,) = flows(store)
    _, (first, second) = store.commit_and_claim(
        [Commit(flow.fence, Continue(), calls=(call("0"), call("1")))], request(2)
    )
    check(store, store.commit([Commit(first.fence, DONE), Commit(flow.fence, DONE, 1)]))
    assert store.sweep().orphans_stopped == 1
    assert store.renew(W, [second.fence]).stop == (second.fence,)


def test_deadlines_that_were_moved_are_told(store: PostgresStore) -> None:
    (flow,) = flows(store)
    (callee,) = begin(store, [flow])
    store.extend(callee.fence, 5 * HOUR)
    store.extend(flow.fence, 50 * HOUR)
    done, _ = store.commit_and_claim(step(flow, callee, 1, call("1")), request())
    check(store, done)


def test_a_task_is_put_together_as_it_was_then(store: PostgresStore) -> None:
    (flow,) = flows(store)
    (callee,) = begin(store, [flow])
    ended, first = store.commit(step(flow, callee, 1))
    (second,) = store.commit([Commit(flow.fence, DONE, 2)])
    assert (first.task.state, first.task.commits) == (State.RUNNING, 2)
    assert (second.task.state, second.task.commits) == (State.CLOSED, 3)
    assert pickle.loads(pickle.dumps(ended)) == ended


def test_ids_of_the_caller_are_kept(store: PostgresStore) -> None:
    (flow,) = flows(store)
    mine = SystemIds().new_id()
    spec = TaskSpec("tool", "tool", id=mine)  # type: ignore[arg-type]
    done, (claim,) = store.commit_and_claim(
        [Commit(flow.fence, Continue(), calls=(call("0", spec),))], request()
    )
    check(store, done)
    assert claim.task.id == mine
    with pytest.raises(BadRequest, match="task with this id"):
        store.commit([Commit(flow.fence, Continue(), 1, calls=(call("1", spec),))])


def knowing(player: PostgresStore, store: PostgresStore) -> PostgresStore:
    """A player that knows what the store has claimed."""
    player._held = copy.deepcopy(store._held)
    return player


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "rollback"])
class TestAtOnce:
    def test_two_callees_of_one_flow(self, url: str, store: PostgresStore, commit: bool) -> None:
        (flow,) = flows(store)
        _, (one, two) = store.commit_and_claim(
            [Commit(flow.fence, Suspend(), calls=(call("1"), call("2")))], request(2)
        )
        with two_players(url) as table:
            (ended,) = knowing(table.first, store).commit([Commit(one.fence, DONE)])
            assert isinstance(ended, Stepped)
            knowing(table.second, store)
            second = table.second_starts(lambda s: s.commit([Commit(two.fence, DONE)]))
            assert not second.done()
            table.end_first(commit=commit)
            check(store, second.result())
        (again,) = store.claim(request(1, ("flow",)))
        assert len(again.replies) == 1 + commit

    def test_a_stop_and_a_step(self, url: str, store: PostgresStore, commit: bool) -> None:
        (flow,) = flows(store)
        (callee,) = begin(store, [flow])
        with two_players(url) as table:
            assert table.first.stop(flow.task.id) is Stopped.REQUESTED
            knowing(table.second, store)
            second = table.second_starts(lambda s: s.commit(step(flow, callee, 1)))
            assert not second.done()
            table.end_first(commit=commit)
            check(store, second.result(), short=not commit)
        assert store.renew(W, [flow.fence]).stop == ((flow.fence,) if commit else ())

    def test_a_step_and_a_reply(self, url: str, store: PostgresStore, commit: bool) -> None:
        (flow,) = flows(store)
        (callee,) = begin(store, [flow])
        with two_players(url) as table:
            knowing(table.first, store).commit(step(flow, callee, 1))
            second = table.second_starts(lambda s: s.reply(call_of(callee), CallStatus.ERROR))
            assert not second.done()
            table.end_first(commit=commit)
            assert second.result() is not commit
        answered = store.get_call(call_of(callee))
        assert answered is not None
        assert answered.applied is commit

    def test_the_same_steps_twice(self, url: str, store: PostgresStore, commit: bool) -> None:
        (flow,) = flows(store)
        (callee,) = begin(store, [flow])
        commits = step(flow, callee, 1, call("1"))
        with two_players(url) as table:
            knowing(table.first, store).commit_and_claim(commits, request(token="t"))
            knowing(table.second, store)
            second = table.second_starts(
                lambda s: s.commit_and_claim(commits, request(token="t"), writes=note("once"))
            )
            assert not second.done()
            table.end_first(commit=commit)
            done, claims = second.result()
        check(store, done, short=not commit)
        assert len(claims) == 1
        assert notes(store) == ([] if commit else ["once"])
        assert len(store.calls_of(flow.task.id)) == 2


def every_step(store: PostgresStore) -> None:
    """The short way with all that it can do."""
    held = flows(store, 2)
    calls = [Commit(flow.fence, Continue(), calls=(call("0"),)) for flow in held]
    done, callees = store.commit_and_claim(calls, request(2))
    assert_short(done)
    ends = [Commit(callee.fence, DONE) for callee in callees]
    flow = Commit(held[0].fence, Continue(), 1, calls=(call("1"),), applied=(call_of(callees[0]),))
    done, (callee, other) = store.commit_and_claim(
        [*ends, flow, Commit(held[1].fence, Suspend(), 1, calls=(call("1"),))], request(2)
    )
    assert_short(done)
    (again,) = store.claim(request(1, ("flow",)))
    applied = tuple(reply.id for reply in again.replies)
    last = Commit(again.fence, DONE, applied=applied)
    step_ = Commit(held[0].fence, Suspend(), 2)
    assert_short(store.commit([Commit(callee.fence, DONE), last, step_]))
    assert_short(store.commit([Commit(other.fence, DONE)]))
    for flow_ in store.claim(request(9, ("flow",))):
        applied = tuple(reply.id for reply in flow_.replies)
        assert_short(store.commit([Commit(flow_.fence, DONE, applied=applied)]))


@pytest.mark.parametrize("analyze", [False, True])
def test_no_step_reads_everything(url: str, analyze: bool) -> None:
    plans = Plans()
    with (
        psycopg.connect(url, autocommit=True) as admin,
        PostgresStore.connect(url, max_size=1) as store,
        PostgresStore(Database(url, max_size=1, prepare=plans.watch)) as watched,
    ):
        row = admin.execute("select rolsuper from pg_roles where rolname = current_user").fetchone()
        if row != (True,):
            pytest.skip("looking at plans needs a superuser")
        store.register(WorkerSpec(W, "w", handlers=("flow", "tool"), lease=HOUR))
        for _ in range(4):
            every_step(store)
        if analyze:
            admin.execute("analyze")
        every_step(watched)
        every_step(watched)
    assert len(plans.seen) > 50
    assert plans.whole_scans() == []
