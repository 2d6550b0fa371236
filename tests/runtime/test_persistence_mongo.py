"""What only the MongoDB store promises: indexes, a schema with guards, runs that go in parts."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from pymongo import DeleteMany, UpdateOne
from pymongo.errors import BulkWriteError

from afl.kernel.model import CallStatus, Commit, Json, Suspend, TaskId
from afl.kernel.mongo import migrate as kernel_migrate
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.transaction import MongoTransaction
from afl.runtime.entities import Fork
from afl.runtime.mongo import forgetting
from afl.runtime.mongo.migrate import migrate, migrations, status
from afl.runtime.persistence import Await, LogLine, Needed, RateWish, Wait
from afl.runtime.run_search import RunFilter
from afl.runtime.schedule import Firing, Outcome, Schedule, Times
from afl.runtime.states import StepState
from afl.runtime.step import WorkflowId
from afl.runtime.step_windows import StepMatch
from afl.runtime.superseded import Superseded
from tests.kernel.mongo.databases import empty_database, server_is_there
from tests.kernel.mongo.profiling import Profile, profiled
from tests.runtime.kept import HOUR, MongoKept, begin, call, changes, claim, end, save, step, write

#: Looked through whole: they have only what is wrong, or wanted, right now.
SMALL = {"forgotten_run", "deployment", "loss", "orphan", "migration"}


@pytest.fixture
def profile(mongo_kept: MongoKept) -> Iterator[Profile]:
    with profiled(mongo_kept.database) as made:
        yield made


def _write_everything(kept: MongoKept) -> WorkflowId:
    """A run with a bit of all that a run can have."""
    store = kept.store
    origin = begin(kept, workflow="shop.Order", key="Key-1", labels={"env": "prod", "team": "a"})
    run = begin(kept, parent=origin, fork=Fork(origin))
    made = changes(step(run, ""), step(run, "0/a", yields_to=""), step(run, "0/pay"))
    made.add_created_step(step(run, "0/b", state=StepState.STATEMENT_ERROR, error={"message": "m"}))
    made.waits.append(Wait("0/a", "1"))
    made.logs.append(LogLine("0/a", {"x": 1}))
    made.awaits.append(Await("0/pay", "order", "7"))
    write(kept, lambda transaction: store.write_changes(transaction, run, made))
    kept.store.kernel.stop(TaskId(origin))
    call(kept, "0/pay")
    store.emit("order", "7", {"n": 1})
    assert store.match_events() == [(run, "0/pay", {"n": 1})]
    store.settle_event(run, "0/pay")
    store.note_superseded([Superseded(run, "0/a", "w", CallStatus.OK, 1)])
    store.put_memo("F", "k", {"r": 1}, HOUR)
    store.reserve_slots(RateWish("F", "k", 2, HOUR), 3)
    now = store.now()
    schedule = Schedule("s", "w", Times(every=HOUR), next_fire=now, look_at=now, owner="default")
    write(kept, lambda transaction: store.write_schedule(transaction, schedule))
    fired = [Firing("s", now, Outcome.STARTED, run), Firing("s", now, Outcome.MISSED)]
    write(kept, lambda transaction: store.write_firings(transaction, fired))
    return run


def _read_everything(kept: MongoKept, run: WorkflowId) -> None:
    store = kept.store
    store.newest_programs(5)
    store.get_sources("p")
    store.deployment_history("default")
    every_kind = Needed(frozenset(["0/a"]), frozenset([""]), frozenset(["0/a"]))
    assert len(store.load(run, every_kind).yields) == 1
    for read in (store.get_steps_by_workflow, store.count_steps, store.get_logs, store.tally):
        assert read(run)
    store.get_steps_by_state(run, StepState.CREATED)
    store.get_unended_steps(run, "0")
    assert store.child_steps(run, "0", after="0/a")
    assert store.have_children(run, ["", "0", "0/a"]) == {"", "0"}
    assert store.problem_steps(run)
    store.scan_steps(run, StepMatch(text="pay"))
    store.step_times(run, ["0/a"])
    store.change_mark(run)
    assert store.open_work(run)
    store.dead_work(run)
    assert store.history(run)
    store.history(run, problems_only=True)
    store.get_memo("F", "k")
    store.human_tasks("finance")
    store.find_schedules(owner="default")
    store.find_schedules()
    assert store.get_firings("s")
    assert store.open_runs("s") == [run]
    assert store.started_between("s", store.now() - HOUR, store.now())
    store.take_due(HOUR, 10)


def _look_for_runs(kept: MongoKept, run: WorkflowId) -> None:
    store = kept.store
    row = store.get_run(run)
    assert row is not None
    assert row.parent is not None
    assert store.forks_of(row.parent)
    store.get_runs([run])
    for asked in (
        {"state": "created"},
        {"state": "failed"},
        {"workflow": "w"},
        {"labels": {"env": "prod", "team": "a"}},
        {"parent": row.parent},
        {},
    ):
        store.find_runs(**asked)
    store.stale_runs(None, 10)
    store.ended_runs(store.now() - HOUR)
    store.search_runs(RunFilter(since=store.now() - HOUR, until=store.now()))
    for wanted in (
        RunFilter(),
        RunFilter(state="paused"),
        RunFilter(workflow="w", state="created"),
        RunFilter(labels={"env": "prod", "team": "a"}, state="created"),
        RunFilter(tenant="acme"),
        RunFilter(top_only=True, state="failed"),
        RunFilter(parent=row.parent),
        RunFilter(text="order", state="created"),
    ):
        store.search_runs(wanted, before=run)
        store.count_runs(wanted)


def test_nothing_is_looked_for_from_end_to_end(profile: Profile, mongo_kept: MongoKept) -> None:
    run = _write_everything(mongo_kept)
    _read_everything(mongo_kept, run)
    _look_for_runs(mongo_kept, run)
    mongo_kept.store.delete_schedule("s")
    end(mongo_kept, run)
    mongo_kept.advance(HOUR)
    mongo_kept.store.forget_runs(timedelta(0))
    assert [each for each in profile.whole(most=30) if each[0] not in SMALL] == []
    assert len(profile.questions()) > 100


def test_a_load_reads_what_it_is_asked_for(profile: Profile, mongo_kept: MongoKept) -> None:
    run = begin(mongo_kept)
    numbers = range(2000)
    save(mongo_kept, *(step(run, f"0/{n}", yields_to=f"{n}") for n in numbers))
    asked = Needed(frozenset(f"0/{n}" for n in range(5)), frozenset(["7", "8"]))
    assert len(mongo_kept.store.load(run, asked).steps) == 5
    seen = profile.questions()[-1]
    assert seen["command"]["find"] == "step"
    assert seen["docsExamined"] <= 7
    assert seen["keysExamined"] <= 20


def test_a_large_value_that_stays_is_not_sent_again(mongo_kept: MongoKept) -> None:
    run = begin(mongo_kept)
    numbers: Json = [(n * 7919) % 1_000_003 for n in range(100_000)]
    large = step(run, "0/a", params={"numbers": numbers})
    save(mongo_kept, large)
    stored = mongo_kept.database.find_one("step", {"run": run})
    assert stored is not None
    assert isinstance(stored["params"], dict), "it stands beside the document"
    mongo_kept.database.write("blob", [DeleteMany({})])
    large.state = StepState.EVENT_TRANSMIT
    made = changes()
    made.add_updated_step(large)
    made.same_params.add("0/a")
    write(mongo_kept, lambda tx: mongo_kept.store.write_changes(tx, run, made))
    again = mongo_kept.database.find_one("step", {"run": run})
    assert again is not None
    assert (again["params"], again["state"]) == (stored["params"], StepState.EVENT_TRANSMIT)
    assert mongo_kept.database.find("blob", {}) == []


@pytest.mark.parametrize(
    ("collection", "change"),
    [
        ("run", {"state": "completed"}),
        ("run", {"state": "nonsense"}),
        ("run", {"word": "paused"}),
        ("run", {"finished_at": 1}),
        ("signal", {"state": "taken"}),
        ("signal", {"run": "r"}),
        ("schedule", {"cron": "* * * * *"}),
        ("schedule_firing", {"outcome": "nonsense"}),
        ("step", {"has_error": False}),
    ],
)
def test_the_schema_refuses_what_cannot_be(
    mongo_kept: MongoKept, collection: str, change: dict[str, object]
) -> None:
    store = mongo_kept.store
    run = begin(mongo_kept)
    save(mongo_kept, step(run, ""))
    store.emit("n", "k", 1)
    schedule = Schedule("s", "w", Times(every=HOUR))
    fired = Firing("s", store.now(), Outcome.STARTED, run)
    write(mongo_kept, lambda transaction: store.write_schedule(transaction, schedule))
    write(mongo_kept, lambda transaction: store.write_firings(transaction, [fired]))
    assert len(mongo_kept.database.find(collection, {})) == 1
    with pytest.raises(BulkWriteError, match="failed validation"):
        mongo_kept.database.write(collection, [UpdateOne({}, {"$set": change})])


def test_forgetting_goes_on_after_a_crash(
    mongo_kept: MongoKept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of a run that is gone goes with the next look."""
    store, database = mongo_kept.store, mongo_kept.database
    run = begin(mongo_kept)
    save(mongo_kept, step(run, ""), step(run, "0/a"))
    end(mongo_kept, run)

    def crash(*_given: object) -> None:
        raise RuntimeError("on purpose")

    with monkeypatch.context() as patched:
        patched.setattr("afl.runtime.mongo.forgetting.MongoForgetting._forget_rest", crash)
        with pytest.raises(RuntimeError, match="on purpose"):
            store.forget_runs(timedelta(0))
    assert store.get_run(run) is None
    assert len(database.find("step", {})) == 2
    assert store.forget_runs(timedelta(0)) == 0
    left = ("step", "step_tally", "forgotten_run", "run")
    assert [database.find(name, {}) for name in left] == [[], [], [], []]


def test_a_fork_that_is_made_meanwhile_keeps_its_origin(mongo_kept: MongoKept) -> None:
    """Whoever forgets a run and whoever forks it write the same document."""
    store = mongo_kept.store
    origin = begin(mongo_kept)
    end(mongo_kept, origin)
    mongo_kept.advance(HOUR)
    forked: list[WorkflowId] = []
    forget = forgetting._forget

    def slow_forget(transaction: MongoTransaction, runs: list[str], most: int) -> int:
        gone = forget(transaction, runs, most)
        if not forked:
            # the fork is there before this one has ended, which is done anew then
            with ThreadPoolExecutor(1) as pool:
                pool.submit(lambda: forked.append(begin(mongo_kept, fork=Fork(origin)))).result()
        return gone

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(forgetting, "_forget", slow_forget)
        assert store.forget_runs(timedelta(0)) == 0
    assert store.get_run(origin) is not None
    assert [run.id for run in store.forks_of(origin)] == forked


def test_the_history_is_one() -> None:
    if not server_is_there():
        pytest.skip("there is no MongoDB to test with")
    numbers = [each.number for each in migrations()]
    own = [number for number in numbers if number > 100]
    assert numbers == sorted(numbers)
    assert own == [*range(101, 101 + len(own))]
    with empty_database() as url:
        database = Database(url)
        kernel_migrate.migrate(database)
        assert [one.migration.number for one in status(database) if not one.applied_at] == own
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda _: migrate(database), range(3)))
        assert all(one.applied_at for one in status(database))
        assert migrate(database) == []
        database.close()


def test_a_transaction_of_another_store_is_refused(mongo_kept: MongoKept) -> None:
    run = begin(mongo_kept)
    held = claim(mongo_kept)

    class Other:
        pass

    with pytest.raises(TypeError, match="not one of the MongoDB store"):
        mongo_kept.store.kernel.commit(
            [Commit(held.fence, Suspend())],
            writes=lambda _: mongo_kept.store.write_changes(Other(), run, changes()),
        )
