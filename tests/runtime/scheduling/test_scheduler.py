"""Schedules on both stores: what is due is started once, and what becomes of the rest is noted."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from afl.kernel.errors import Fenced, StoreUnavailable
from afl.kernel.port import Transaction
from afl.runtime.errors import (
    BadInputs,
    BadSchedule,
    UnknownFacet,
    UnknownProgram,
    UnknownSchedule,
)
from afl.runtime.schedule import CatchUp, Firing, Outcome, Overlap, Schedule, Times
from afl.runtime.scheduling.scheduler import Scheduler
from afl.runtime.scheduling.service import Scheduling
from afl.testing.clock import START
from tests.runtime.driving import World
from tests.runtime.kept import HOUR, Kept, write

FLOW = """
namespace demo {
  event facet Fetch(url: String) => (body: String)
  workflow Mirror(url: String = "a") => (body: String) andThen {
    page = Fetch(url = $.url)
    yield Mirror(body = page.body)
  }
  workflow Strict(n: Int) => () andThen { sys.log(n = $.n) }
}
"""
HOURLY = Times(every=HOUR)


@pytest.fixture
def world(kept: Kept) -> World:
    world = World(kept)
    world.deploy(FLOW)
    return world


@pytest.fixture
def schedules(world: World) -> Scheduling:
    return world.operations.schedules


def hourly(name: str = "s", **fields: object) -> Schedule:
    return Schedule(name, "demo.Mirror", HOURLY, **fields)  # type: ignore[arg-type]


def fire(world: World) -> None:
    """Ticks until nothing is due."""
    while world.operations.schedules.scheduler.tick() == 0:
        pass


def outcomes(world: World, name: str = "s") -> list[tuple[int, str]]:
    """The hours since the start and what became of them, the first first."""
    found = reversed(world.operations.schedules.history(name))
    return [((each.fire_at - START) // HOUR, each.outcome.value) for each in found]


def finish_all(world: World) -> None:
    world.handlers["Fetch"] = lambda url: {"body": url}
    world.driver.drive()
    del world.handlers["Fetch"]


def test_a_fire_time_starts_one_run_with_its_key_and_labels(
    world: World, kept: Kept, schedules: Scheduling
) -> None:
    made = schedules.create(hourly(inputs={"url": "b"}))
    assert (made.next_fire, made.look_at, made.state) == (START + HOUR, START + HOUR, "active")
    assert 3599 < (schedules.scheduler.tick() or 0) < 3600
    assert world.operations.list() == []
    kept.advance(HOUR)
    fire(world)
    (run,) = world.operations.list()
    assert run.workflow == "demo.Mirror"
    assert run.inputs == {"url": "b"}
    assert run.key == "s@2030-01-01T01:00:00Z"
    assert run.labels == {"afl.schedule": "s", "afl.fire_time": "2030-01-01T01:00:00Z"}
    (firing,) = schedules.history("s")
    assert (firing.outcome, firing.run, firing.note) == (Outcome.STARTED, run.id, "")
    assert schedules.last_run("s") == run.id
    assert schedules.get("s").next_fire == START + 2 * HOUR
    assert world.operations.rerun(run.id).labels == {}


def test_what_is_asked_for_and_cannot_be(world: World, schedules: Scheduling) -> None:
    schedules.create(hourly())
    with pytest.raises(BadSchedule, match="already"):
        schedules.create(hourly())
    with pytest.raises(UnknownFacet, match=r"Did you mean `demo\.Mirror`"):
        schedules.create(replace(hourly("t"), workflow="demo.Miror"))
    with pytest.raises(UnknownProgram, match="No program is deployed as `other`"):
        schedules.create(hourly("t", program="other"))
    with pytest.raises(BadInputs):
        schedules.create(replace(hourly("t"), workflow="demo.Strict"))
    with pytest.raises(BadSchedule, match="never fire"):
        schedules.create(replace(hourly("t"), times=Times(at=START - HOUR)))
    with pytest.raises(BadSchedule, match="cannot be the name"):
        schedules.create(hourly("a b"))
    with pytest.raises(UnknownSchedule, match=r"Did you mean `s`|afl schedules list"):
        schedules.pause("ss")
    assert [each.name for each in schedules.list()] == ["s"]


def test_replacing_one_keeps_its_history(world: World, kept: Kept, schedules: Scheduling) -> None:
    schedules.create(hourly())
    kept.advance(HOUR)
    fire(world)
    schedules.create(replace(hourly(), times=Times(every=2 * HOUR)), replace_it=True)
    assert schedules.get("s").next_fire == START + 2 * HOUR
    assert outcomes(world) == [(1, "started")]


@pytest.mark.parametrize(
    ("catch_up", "within", "expected"),
    [
        (CatchUp.NONE, 24, [(1, "missed"), (10, "started")]),
        (CatchUp.LAST, 24, [(1, "missed"), (10, "started")]),
        (CatchUp.ALL, 24, [(hour, "started") for hour in range(1, 11)]),
        (CatchUp.ALL, 3, [(1, "missed"), *((hour, "started") for hour in range(7, 11))]),
    ],
)
def test_after_a_missed_window(
    world: World,
    kept: Kept,
    schedules: Scheduling,
    catch_up: CatchUp,
    within: int,
    expected: list[tuple[int, str]],
) -> None:
    """Nobody was there for ten hours; the tenth fire time is just due."""
    schedules.create(
        hourly(
            overlap=Overlap.ALLOW,
            catch_up=catch_up,
            catch_up_within=within * HOUR + timedelta(minutes=1),
        )
    )
    kept.advance(10 * HOUR)
    fire(world)
    assert outcomes(world) == expected
    assert len(world.operations.list()) == sum(outcome == "started" for _, outcome in expected)
    missed = [each for each in schedules.history("s") if each.outcome is Outcome.MISSED]
    for each in missed:
        assert each.until is not None
        assert each.count == (each.until - each.fire_at) // HOUR + 1
    assert sum(each.count for each in schedules.history("s")) == 10
    assert schedules.get("s").next_fire == START + 11 * HOUR


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        (CatchUp.NONE, [(1, "missed")]),
        (CatchUp.LAST, [(1, "missed"), (10, "started")]),
        (CatchUp.ALL, [(hour, "started") for hour in range(1, 11)]),
    ],
)
def test_when_even_the_last_one_is_late(
    world: World,
    kept: Kept,
    schedules: Scheduling,
    catch_up: CatchUp,
    expected: list[tuple[int, str]],
) -> None:
    schedules.create(hourly(overlap=Overlap.ALLOW, catch_up=catch_up))
    kept.advance(10 * HOUR + timedelta(minutes=30))
    fire(world)
    assert outcomes(world) == expected
    assert sum(each.count for each in schedules.history("s")) == 10


def test_a_very_long_time_away_is_gone_through_in_pieces(
    world: World, kept: Kept, schedules: Scheduling
) -> None:
    schedules.create(replace(hourly(), times=Times(every=timedelta(seconds=1))))
    kept.advance(timedelta(seconds=5_000, milliseconds=1))
    fire(world)
    history = schedules.history("s")
    assert sum(each.count for each in history) == 5_000
    assert Counter(each.outcome for each in history)[Outcome.MISSED] == 5
    assert schedules.get("s").next_fire == START + timedelta(seconds=5_001)


def test_overlap_skip(world: World, kept: Kept, schedules: Scheduling) -> None:
    schedules.create(hourly(overlap=Overlap.SKIP))
    for _ in range(3):
        kept.advance(HOUR)
        fire(world)
    finish_all(world)
    kept.advance(HOUR)
    fire(world)
    assert outcomes(world) == [(1, "started"), (2, "skipped"), (3, "skipped"), (4, "started")]
    assert schedules.history("s")[1].note == "the run before it has not ended"


def test_overlap_queue(world: World, kept: Kept, schedules: Scheduling) -> None:
    schedules.create(hourly(overlap=Overlap.QUEUE))
    for _ in range(3):
        kept.advance(HOUR)
        fire(world)
    assert outcomes(world) == [(1, "started"), (3, "skipped")]
    assert schedules.get("s").waiting == START + 2 * HOUR
    finish_all(world)
    kept.advance(timedelta(seconds=2))
    fire(world)
    assert outcomes(world) == [(1, "started"), (3, "skipped"), (2, "started")]
    assert schedules.get("s").waiting is None
    assert schedules.get("s").look_at == START + 4 * HOUR


def test_overlap_cancel(world: World, kept: Kept, schedules: Scheduling) -> None:
    schedules.create(hourly(overlap=Overlap.CANCEL))
    for _ in range(2):
        kept.advance(HOUR)
        fire(world)
    assert outcomes(world) == [(1, "started"), (2, "started")]
    assert [run.state for run in world.operations.list()] == ["created", "canceled"]
    # of several that are due at once only the last is begun
    schedules.create(hourly("t", overlap=Overlap.CANCEL, catch_up=CatchUp.ALL), replace_it=True)
    kept.advance(3 * HOUR)
    fire(world)
    assert [each for _, each in outcomes(world, "t")] == ["skipped", "skipped", "started"]


def test_overlap_allow(world: World, kept: Kept, schedules: Scheduling) -> None:
    schedules.create(hourly(overlap=Overlap.ALLOW))
    for _ in range(3):
        kept.advance(HOUR)
        fire(world)
    assert outcomes(world) == [(1, "started"), (2, "started"), (3, "started")]


def test_a_paused_one_does_not_fire_and_goes_on_with_the_next(
    world: World, kept: Kept, schedules: Scheduling
) -> None:
    schedules.create(hourly(catch_up=CatchUp.ALL))
    assert schedules.pause("s").state == "paused"
    kept.advance(3 * HOUR + timedelta(minutes=1))
    fire(world)
    assert world.operations.list() == []
    resumed = schedules.resume("s")
    assert (resumed.state, resumed.next_fire) == ("active", START + 4 * HOUR)
    (missed,) = schedules.history("s")
    assert (missed.count, missed.until, missed.note) == (3, START + 3 * HOUR, "it was paused")
    again = schedules.resume("s")
    assert len(schedules.history("s")) == 1, "resuming what is not paused misses nothing"
    assert again.next_fire == START + 4 * HOUR


def test_a_single_time_ends_the_schedule(world: World, kept: Kept, schedules: Scheduling) -> None:
    schedules.create(replace(hourly(), times=Times(at=START + HOUR)))
    kept.advance(HOUR)
    fire(world)
    assert outcomes(world) == [(1, "started")]
    ended = schedules.get("s")
    assert (ended.state, ended.next_fire, ended.look_at) == ("ended", None, None)
    assert schedules.next("s") == []


def test_jitter_delays_what_is_started_and_not_its_fire_time(
    world: World, kept: Kept, schedules: Scheduling
) -> None:
    made = schedules.create(
        replace(hourly(), times=Times(every=HOUR, jitter=timedelta(minutes=30)))
    )
    assert made.look_at is not None
    delay = made.look_at - (START + HOUR)
    assert timedelta(0) < delay < timedelta(minutes=30)
    kept.advance(HOUR)
    fire(world)
    assert outcomes(world) == []
    kept.advance(delay)
    fire(world)
    assert outcomes(world) == [(1, "started")]


def test_trigger_starts_one_beside_the_fire_times(
    world: World, kept: Kept, schedules: Scheduling
) -> None:
    schedules.create(hourly())
    schedules.pause("s")
    firing = schedules.trigger("s")
    assert (firing.outcome, firing.note) == (Outcome.STARTED, "triggered")
    assert [run.id for run in world.operations.list()] == [firing.run]
    assert schedules.get("s").paused
    schedules.resume("s")
    kept.advance(HOUR)
    fire(world)
    assert outcomes(world)[-1] == (1, "skipped"), "the triggered one still runs"


def test_backfill_starts_each_missing_one_once(
    world: World, kept: Kept, schedules: Scheduling
) -> None:
    schedules.create(hourly(overlap=Overlap.ALLOW, catch_up=CatchUp.NONE))
    kept.advance(HOUR)
    fire(world)
    kept.advance(4 * HOUR + timedelta(minutes=30))
    fire(world)
    assert outcomes(world) == [(1, "started"), (2, "missed")]
    start, end = START + HOUR, START + 100 * HOUR
    plan = schedules.backfill("s", start, end, dry_run=True)
    assert plan.missing == [START + hour * HOUR for hour in range(2, 6)]
    assert (plan.known, plan.started) == ([START + HOUR], [])
    assert len(world.operations.list()) == 1
    done = schedules.backfill("s", start, end)
    assert [each.note for each in done.started] == ["backfilled"] * 4
    assert len(world.operations.list()) == 5
    again = schedules.backfill("s", start, end)
    assert (again.missing, again.started) == ([], [])
    assert len(again.known) == 5
    with pytest.raises(BadSchedule, match="ends before it starts"):
        schedules.backfill("s", end, start)


def test_a_fire_time_that_was_backfilled_ahead_is_not_started_again(
    world: World, kept: Kept, schedules: Scheduling
) -> None:
    schedules.create(hourly(overlap=Overlap.ALLOW))
    kept.advance(HOUR)
    schedules.backfill("s", START + HOUR, START + HOUR)
    fire(world)
    assert len(world.operations.list()) == 1
    assert outcomes(world) == [(1, "started")]
    assert schedules.get("s").next_fire == START + 2 * HOUR


def test_one_that_cannot_be_started_says_so_and_goes_on(
    world: World, kept: Kept, schedules: Scheduling
) -> None:
    schedules.create(hourly())
    world.deploy("namespace demo { workflow Other() => () andThen { sys.log(a = 1) } }")
    kept.advance(HOUR)
    fire(world)
    (failed,) = schedules.history("s")
    assert failed.outcome is Outcome.FAILED
    assert "no workflow `demo.Mirror`" in failed.note
    assert schedules.get("s").next_fire == START + 2 * HOUR
    with pytest.raises(UnknownFacet):
        schedules.trigger("s")


def test_delete_takes_its_history_along(world: World, kept: Kept, schedules: Scheduling) -> None:
    schedules.create(hourly())
    kept.advance(HOUR)
    fire(world)
    schedules.delete("s")
    assert schedules.list() == []
    assert kept.store.get_firings("s") == []
    assert len(world.operations.list()) == 1
    with pytest.raises(UnknownSchedule):
        schedules.delete("s")


def test_one_who_was_overtaken_is_refused(world: World, kept: Kept, schedules: Scheduling) -> None:
    old = schedules.create(hourly())
    schedules.pause("s")
    with pytest.raises(Fenced):
        write(kept, lambda transaction: kept.store.write_schedule(transaction, old))
    with pytest.raises(Fenced):
        schedules.scheduler.start(old, START + HOUR)
    assert world.operations.list() == []
    schedules.delete("s")
    with pytest.raises(Fenced):
        write(kept, lambda transaction: kept.store.write_schedule(transaction, old))
    schedules.create(hourly())
    with pytest.raises(Fenced):
        write(kept, lambda transaction: kept.store.write_schedule(transaction, old))


def test_what_one_has_taken_others_leave_alone_for_a_while(
    world: World, kept: Kept, schedules: Scheduling
) -> None:
    schedules.create(hourly())
    schedules.create(hourly("t"))
    kept.advance(HOUR)
    first = kept.store.take_due(timedelta(seconds=10), 1)
    second = kept.store.take_due(timedelta(seconds=10), 10)
    assert sorted(each.name for each in (*first.schedules, *second.schedules)) == ["s", "t"]
    assert kept.store.take_due(timedelta(seconds=10), 10).schedules == []
    kept.advance(timedelta(seconds=11))
    fire(world)
    assert len(world.operations.list()) == 2


def test_one_that_fails_does_not_keep_the_others(
    world: World,
    kept: Kept,
    schedules: Scheduling,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    schedules.create(hourly("a"))
    schedules.create(hourly("b"))
    kept.advance(HOUR)
    start = Scheduler.start

    def broken(self: Scheduler, schedule: Schedule, fire_at: datetime, **more: object) -> Firing:
        if schedule.name == "a":
            raise RuntimeError("on purpose")
        return start(self, schedule, fire_at, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "afl.schedules"):
        patch.setattr(Scheduler, "start", broken)
        fire(world)
    assert "the schedule a cannot go on" in caplog.text
    assert outcomes(world, "b") == [(1, "started")]
    assert outcomes(world, "a") == []
    kept.advance(timedelta(seconds=11))
    fire(world)
    assert outcomes(world, "a") == [(1, "started")]


def test_a_store_that_is_away_is_told(
    world: World, kept: Kept, schedules: Scheduling, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedules.create(hourly())
    kept.advance(HOUR)

    def away(*_args: object, **_more: object) -> None:
        raise StoreUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "start", away)
        with pytest.raises(StoreUnavailable):
            schedules.scheduler.tick()


def test_schedules_come_back_as_they_were_stored(
    world: World, kept: Kept, schedules: Scheduling
) -> None:
    times = Times(
        cron="0 3 * * mon-fri",
        zone="Europe/Berlin",
        start=START + HOUR,
        end=START + 1000 * HOUR,
        jitter=timedelta(seconds=90, milliseconds=5),
    )
    schedule = Schedule(
        "x/y.Z",
        "demo.Mirror",
        times,
        {"url": "ü"},
        overlap=Overlap.QUEUE,
        catch_up=CatchUp.ALL,
        catch_up_within=timedelta(days=400, microseconds=7),
    )
    made = schedules.create(schedule)
    expected = replace(
        schedule,
        next_fire=made.next_fire,
        look_at=made.look_at,
        version=made.version,
        created_at=made.created_at,
    )
    assert made == expected
    assert made.created_at is not None
    assert made.next_fire is not None
    assert made.next_fire.tzinfo is UTC
    assert schedules.list(after="x/y") == [made]
    assert schedules.list(after="x/y.Z") == []
    assert kept.store.find_schedules(owner="default") == []


def test_firings_are_forgotten_with_runs(world: World, kept: Kept, schedules: Scheduling) -> None:
    schedules.create(hourly())
    kept.advance(HOUR)
    fire(world)
    kept.store.forget_runs(2 * HOUR)
    assert outcomes(world) == [(1, "started")]
    kept.advance(3 * HOUR)
    kept.store.forget_runs(2 * HOUR)
    assert outcomes(world) == []


def test_a_transaction_that_fails_leaves_the_schedule_as_it_was(
    kept: Kept, schedules: Scheduling
) -> None:
    made = schedules.create(hourly())

    def broken(transaction: Transaction) -> None:
        kept.store.write_schedule(transaction, replace(made, paused=True))
        kept.store.write_firings(transaction, [Firing("s", START, Outcome.SKIPPED)])
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        write(kept, broken)
    assert schedules.get("s") == made
    assert schedules.history("s") == []
