"""The short ways answer what the long ways would."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import timedelta

import pytest

from afl.kernel.errors import BadRequest, Fenced
from afl.kernel.model import (
    ClaimRequest,
    Close,
    Commit,
    Committed,
    Outcome,
    Retry,
    RunId,
    Stopped,
    TaskSpec,
    Wake,
    WorkerId,
    WorkerSpec,
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
