"""What pages about the whole installation read: the same of every store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from afl.kernel.model import ClaimRequest, State, TaskSpec, WorkerSpec
from afl.kernel.mongo.store import MongoStore
from afl.logs.mongo_store import MongoLogStore
from afl.logs.postgres_store import PostgresLogStore
from afl.logs.store import LogStore
from afl.runtime.calls import PEOPLE, TIMERS
from afl.server.store_reads import store_reads
from afl.server.store_reads.from_mongo import MongoReads
from afl.server.store_reads.port import Backlog, ListTotals
from tests.kernel.mongo import databases as mongo
from tests.logs.records import KEY, RUN, slices_of, spool_in
from tests.runtime.kept import WORKER, Kept, MemoryKept, MongoKept, PostgresKept, begin, end

LATER = timedelta(hours=1)
CAP = 100


@pytest.fixture
def mongo_kept(mongo_database: str) -> Iterator[MongoKept]:
    mongo.clear(mongo_database)
    with closing(MongoKept(mongo_database)) as made:
        yield made


@pytest.fixture(params=["memory", "postgres", "mongo"])
def kept(request: pytest.FixtureRequest) -> Iterator[Kept]:
    if request.param == "memory":
        yield MemoryKept()
    elif request.param == "mongo":
        yield request.getfixturevalue("mongo_kept")
    else:
        with closing(PostgresKept(str(request.getfixturevalue("empty_url")))) as made:
            yield made


def _enqueue(kept: Kept, name: str, **fields: object) -> str:
    (task,) = kept.store.kernel.enqueue([TaskSpec("event", name, **fields)])  # type: ignore[arg-type]
    return task.id


def _register(kept: Kept) -> None:
    kept.store.kernel.register(WorkerSpec(WORKER, "w", lists=("default", "other"), slots=9))


def test_backlogs_are_by_list_and_short_name(kept: Kept) -> None:
    first = _enqueue(kept, "shop.Pay", priority=-3)
    for priority in (0, 0, 5):
        _enqueue(kept, "shop.Pay", priority=priority)
    _enqueue(kept, "bank.Pay")
    _enqueue(kept, "Pay", delay=LATER)
    _enqueue(kept, "Plain")
    _enqueue(kept, "shop.Later", delay=LATER)
    _enqueue(kept, "shop.Pay", list="other")
    for list_ in (TIMERS, PEOPLE):
        _enqueue(kept, "shop.Pay", list=list_)
    found = store_reads(kept.store).backlogs(CAP)
    oldest = kept.store.kernel.get_task(first)  # type: ignore[arg-type]
    assert oldest is not None
    told = [(each.list, each.short_name, each.ready, each.later) for each in found]
    assert told == [
        ("default", "Later", 0, 1),
        ("default", "Pay", 5, 1),
        ("default", "Plain", 1, 0),
        ("other", "Pay", 1, 0),
    ]
    assert found[0].oldest_ready_at is None
    assert found[1].oldest_ready_at == oldest.run_at
    assert [sorted(each.names) for each in found] == [
        [],
        ["bank.Pay", "shop.Pay"],
        ["Plain"],
        ["shop.Pay"],
    ]


def test_counts_stop_at_the_cap(kept: Kept) -> None:
    kept.store.kernel.enqueue([TaskSpec("event", "shop.Pay", priority=n % 3) for n in range(90)])
    kept.store.kernel.enqueue([TaskSpec("event", "shop.Pay", delay=LATER) for n in range(30)])
    (all_,) = store_reads(kept.store).backlogs(CAP)
    assert (all_.ready, all_.later) == (90, 30)
    (some,) = store_reads(kept.store).backlogs(25)
    assert (some.ready, some.later) == (25, 25)


def test_a_store_without_tasks_has_no_backlog(kept: Kept) -> None:
    reads = store_reads(kept.store)
    assert reads.backlogs(CAP) == []
    assert reads.totals(CAP) == []
    assert reads.oldest("default", "Pay", 5) == []
    assert reads.in_state(State.READY, None, 5) == []
    assert reads.held([WORKER], 5) == {WORKER: []}


def test_what_is_claimed_is_held_and_counted(kept: Kept) -> None:
    _register(kept)
    kernel = kept.store.kernel
    kernel.enqueue([TaskSpec("event", "shop.Pay", list=name) for name in ("default", "other") * 2])
    kernel.enqueue([TaskSpec("event", "shop.Lane", lane="one") for _ in range(3)])
    claims = kernel.claim(ClaimRequest(WORKER, ("Pay", "Lane"), ("default", "other"), n=9))
    assert len(claims) == 5
    reads = store_reads(kept.store)
    assert reads.backlogs(CAP) == []
    assert reads.totals(CAP) == [ListTotals("default", 3, 2), ListTotals("other", 2)]
    held = reads.held([WORKER], 9)[WORKER]
    assert [task.id for task in held] == sorted(claim.task.id for claim in claims)
    assert len(reads.held([WORKER], 2)[WORKER]) == 2


def test_dead_letters_are_counted_until_they_are_driven_again(kept: Kept) -> None:
    _register(kept)
    kernel = kept.store.kernel
    dead = _enqueue(kept, "shop.Pay", max_crashes=0)
    assert kernel.claim(ClaimRequest(WORKER, ("Pay",)))
    kept.advance(LATER)
    kernel.sweep()
    reads = store_reads(kept.store)
    letters = kernel.dead_letters()
    assert [task.id for task in letters] == [dead]
    assert reads.totals(CAP) == [ListTotals("default", dead=1)]
    kernel.redrive(letters[0].id)
    assert reads.totals(CAP) == []
    assert [(each.short_name, each.ready) for each in reads.backlogs(CAP)] == [("Pay", 1)]


def test_the_oldest_come_first_whatever_their_priority(kept: Kept) -> None:
    ids = []
    for priority in (0, 7, -7, 0, 7):
        ids.append(_enqueue(kept, "shop.Pay", priority=priority))
        kept.advance(timedelta(seconds=1))
    _enqueue(kept, "shop.Pay", delay=LATER)
    _enqueue(kept, "shop.Pay", list="other")
    reads = store_reads(kept.store)
    assert [task.id for task in reads.oldest("default", "Pay", 10)] == ids
    assert [task.id for task in reads.oldest("default", "Pay", 3)] == ids[:3]


def test_tasks_of_a_state_are_read_page_by_page(kept: Kept) -> None:
    made = kept.store.kernel.enqueue([TaskSpec("event", "shop.Pay") for _ in range(5)])
    reads = store_reads(kept.store)
    first = reads.in_state(State.READY, None, 3)
    rest = reads.in_state(State.READY, first[-1].id, 3)
    assert [task.id for task in (*first, *rest)] == sorted(task.id for task in made)
    assert reads.in_state(State.RUNNING, None, 3) == []


def test_the_mark_of_runs_differs_when_something_happens_to_one(kept: Kept) -> None:
    reads = store_reads(kept.store)
    marks = [reads.runs_mark()]
    run = begin(kept)
    marks.append(reads.runs_mark())
    assert reads.runs_mark() == marks[-1]
    kept.store.kernel.commit((), writes=lambda given: kept.store.start_run(given, run))
    marks.append(reads.runs_mark())
    kept.store.set_pause(run, True)
    marks.append(reads.runs_mark())
    kept.store.set_pause(run, False)
    end(kept, run)
    marks.append(reads.runs_mark())
    assert len(set(marks)) == len(marks)


@pytest.mark.parametrize("database", ["postgres", "mongo"])
def test_the_mark_of_logs_differs_when_a_stream_says_more(
    database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    logs: LogStore
    if database == "postgres":
        kept: Kept = PostgresKept(str(request.getfixturevalue("empty_url")))
        logs = PostgresLogStore.connect(str(request.getfixturevalue("empty_url")))
    else:
        kept = request.getfixturevalue("mongo_kept")
        logs = MongoLogStore.connect(str(request.getfixturevalue("mongo_database")))
    spool = spool_in(tmp_path)
    with closing(kept), closing(logs):  # type: ignore[type-var]
        reads = store_reads(kept.store)
        marks = [reads.logs_mark(RUN)]
        stream = spool.open(KEY)
        for _ in range(2):
            stream.line(b"x")
            logs.append(slices_of(spool, logs))
            marks.append(reads.logs_mark(RUN))
        stream.close()
        logs.append(slices_of(spool, logs))
        marks += [reads.logs_mark(RUN)]
        assert len(set(marks)) == 4
        assert reads.logs_mark(RUN) == marks[-1]
        assert reads.logs_mark("another") == marks[0]
    spool.close()
    spool.release()


def test_a_large_backlog_is_not_read_to_know_what_there_is(
    mongo_kept: MongoKept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look goes to the ends of stretches of the index."""
    kernel = mongo_kept.store.kernel
    assert isinstance(kernel, MongoStore)
    names = [f"{space}.{name}" for space in ("a", "b") for name in ("One", "Two")]
    kernel.enqueue([TaskSpec("event", names[n % 4], priority=n % 2) for n in range(2000)])
    asked: list[dict[str, object]] = []
    plain = kernel.database.command

    def noted(name: str, value: object = 1, **more: object) -> dict[str, object]:
        if name == "find":
            options = {each: more[each] for each in more if each != "readConcern"}
            told = plain("explain", {name: value, **options}, verbosity="executionStats")
            asked.append(told["executionStats"])
        return plain(name, value, **more)

    monkeypatch.setattr(kernel.database, "command", noted)
    found: list[Backlog] = MongoReads(kernel).backlogs(50)
    assert [(each.short_name, each.ready) for each in found] == [("One", 50), ("Two", 50)]
    assert asked
    assert max(int(str(each["totalKeysExamined"])) for each in asked) <= 30
