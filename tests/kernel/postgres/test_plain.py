"""The short ways answer what the long ways would."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from afl.kernel.errors import BadRequest, Fenced
from afl.kernel.model import (
    CallSpec,
    CallStatus,
    ClaimRequest,
    Close,
    Commit,
    Committed,
    Outcome,
    Retry,
    RunId,
    Stopped,
    Suspend,
    TaskSpec,
    Wake,
    WorkerId,
    WorkerSpec,
    WorkerState,
)
from afl.kernel.postgres.plain import Ended
from afl.kernel.postgres.store import PostgresStore

W = WorkerId("w")
HOUR = timedelta(hours=1)
DONE = Close(Outcome.SUCCESS, result={"done": [1]}, error="but")
ONE = ClaimRequest(W, ("a",))


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with PostgresStore.connect(url, max_size=2) as store:
        store.register(WorkerSpec(W, "w", handlers=("a",), lease=HOUR))
        yield store


@pytest.mark.parametrize(
    "spec",
    [
        TaskSpec("test", "a"),
        TaskSpec("test", "n.a", RunId("r"), "t", "l", None, False, 3, HOUR, 2 * HOUR, Wake.ANY),
        TaskSpec("test", "a", retry=Retry(3, HOUR, 1.5, timedelta(days=36_500), False), trace="x"),
    ],
)
def test_tasks_that_are_made_alike_are_what_was_stored(
    store: PostgresStore, spec: TaskSpec
) -> None:
    tasks = store.enqueue([spec, spec])
    assert tasks == [store.get_task(task.id) for task in tasks]
    assert len({task.id for task in tasks}) == 2


def test_an_id_is_given_once(store: PostgresStore) -> None:
    (task,) = store.enqueue([TaskSpec("test", "a")])
    with pytest.raises(BadRequest, match="task with this id"):
        store.enqueue([TaskSpec("test", "a", id=task.id)])


def test_an_ending_is_what_was_stored(store: PostgresStore) -> None:
    store.enqueue([TaskSpec("test", "a", timeout=HOUR, input={"n": 1})] * 3)
    claims = store.claim(ClaimRequest(W, ("a",), n=3))
    store.extend(claims[1].fence, 5 * HOUR)
    assert isinstance(claims[0].task.input, dict)
    claims[0].task.input["n"] = "changed by a handler"
    ended = store.commit([Commit(claim.fence, DONE) for claim in reversed(claims)])
    assert all(isinstance(each, Ended) for each in ended)
    assert [each.task.id for each in ended] == [claim.task.id for claim in reversed(claims)]
    assert [each.task for each in ended] == [store.get_task(each.task.id) for each in ended]


def test_an_ending_is_a_committed_like_others(store: PostgresStore) -> None:
    store.enqueue([TaskSpec("test", "a")])
    (ended,) = store.commit([Commit(store.claim(ONE)[0].fence, DONE)])
    other = Committed(ended.task, {}, ())
    assert ended == other
    assert other == ended
    assert pickle.loads(pickle.dumps(ended)) == other
    assert ended != Committed(ended.task, {"k": "c"}, ())  # type: ignore[dict-item]


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("token", [None, "t"])
def test_what_is_taken_with_an_ending_is_what_was_stored(
    store: PostgresStore, n: int, token: str | None
) -> None:
    full = TaskSpec(
        "test", "n.a", RunId("r"), "t", "default", None, False, -3, timedelta(0), HOUR, Wake.ANY,
        Retry(3, timedelta(0), 1.5, HOUR, False), 7, {"n": [1]}, trace="x",
    )  # fmt: skip
    store.enqueue([TaskSpec("test", "a"), full])
    (first,) = store.claim(ONE)
    (failing,) = store.claim(ONE)
    store.commit([Commit(failing.fence, Close(Outcome.FAILED, error={"no": 1}))])
    _, claims = store.commit_and_claim(
        [Commit(first.fence, DONE)], ClaimRequest(W, ("a",), n=n, token=token)
    )
    (claim,) = claims
    assert claim.task == store.get_task(failing.task.id)
    assert (claim.fence, claim.task.error, claim.task.failures) == (claim.task.fence, {"no": 1}, 1)
    assert claim.task.claim_token == token


def test_what_is_taken_with_an_ending_brings_its_answers(store: PostgresStore) -> None:
    store.enqueue([TaskSpec("test", "a")])
    (caller,) = store.claim(ONE)
    asks = CallSpec("k", TaskSpec("test", "b"), HOUR)
    (waits,) = store.commit([Commit(caller.fence, Suspend(), calls=(asks,))])
    store.enqueue([TaskSpec("test", "c")])
    (other,) = store.claim(ClaimRequest(W, ("c",)))
    store.reply(waits.calls["k"], CallStatus.OK, {"n": 1})
    _, (claim,) = store.commit_and_claim([Commit(other.fence, DONE)], ONE)
    assert claim.task == store.get_task(caller.task.id)
    assert [reply.reply for reply in claim.replies] == [{"n": 1}]


def test_an_ending_with_nothing_to_take_is_what_was_stored(store: PostgresStore) -> None:
    store.enqueue([TaskSpec("test", "a", timeout=HOUR)])
    (claim,) = store.claim(ONE)
    store.extend(claim.fence, 5 * HOUR)
    (ended,), claims = store.commit_and_claim([Commit(claim.fence, DONE)], ONE)
    assert claims == []
    assert isinstance(ended, Ended)
    assert ended.task == store.get_task(claim.task.id)


@pytest.mark.parametrize("n", [1, 2])
def test_a_token_is_answered_with_what_it_took(store: PostgresStore, n: int) -> None:
    store.enqueue([TaskSpec("test", "a")] * 4)
    first, second = store.claim(ClaimRequest(W, ("a",), n=2))
    request = ClaimRequest(W, ("a",), n=n, token="t")
    _, taken = store.commit_and_claim([Commit(first.fence, DONE)], request)
    (ended,), again = store.commit_and_claim([Commit(second.fence, DONE)], request)
    assert again == taken
    assert len(taken) == n
    assert ended.task == store.get_task(second.task.id)


def test_a_worker_that_is_lost_takes_nothing_with_an_ending(store: PostgresStore) -> None:
    store.enqueue([TaskSpec("test", "a")] * 2)
    (claim,) = store.claim(ONE)
    store.set_worker_state(W, WorkerState.SHUTDOWN)
    (ended,), claims = store.commit_and_claim([Commit(claim.fence, DONE)], ONE)
    assert claims == []
    assert ended.task == store.get_task(claim.task.id)


@pytest.mark.parametrize("n", [1, 2])
def test_what_came_in_below_a_floor_is_taken_with_an_ending(
    url: str, store: PostgresStore, n: int
) -> None:
    store.enqueue([TaskSpec("test", "a")] * 2)
    (claim,) = store.claim(ONE)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "insert into afl.claim_floor "
            "(list, short_name, priority, run_at, id, noted_at, look_at, tend_at) "
            "select 'default', 'a', 0, now() + interval '1 hour', gen_random_uuid(), t, t, t "
            "from (select now() - interval '1 minute' as t) as x"
        )
    _, claims = store.commit_and_claim([Commit(claim.fence, DONE)], ClaimRequest(W, ("a",), n=n))
    assert len(claims) == 1


def test_what_is_asked_to_stop_takes_the_long_way(store: PostgresStore) -> None:
    (task,) = store.enqueue([TaskSpec("test", "a")])
    (claim,) = store.claim(ONE)
    assert store.stop(task.id, error="why") is Stopped.REQUESTED
    (closed,) = store.commit([Commit(claim.fence, DONE)])
    assert not isinstance(closed, Ended)
    assert closed.task == store.get_task(task.id)


def test_the_second_time_takes_the_long_way(store: PostgresStore) -> None:
    store.enqueue([TaskSpec("test", "a")] * 2)
    (claim,) = store.claim(ONE)
    (first,), (following,) = store.commit_and_claim([Commit(claim.fence, DONE)], ONE)
    (second,) = store.commit([Commit(claim.fence, DONE)])
    assert second == first
    store.stop(following.task.id, force=True)
    with pytest.raises(Fenced):
        store.commit([Commit(following.fence, DONE)])


def test_what_the_server_has_forgotten_is_prepared_again(store: PostgresStore) -> None:
    for _ in range(2):
        store.enqueue([TaskSpec("test", "a")])
        store._database.run(lambda cursor: cursor.execute("deallocate all"))
    assert len(store.find_tasks()) == 2
