"""`RateLimit`: at most so many starts in any stretch of time, whoever starts them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from afl.kernel.model import Task
from afl.runtime.driver import Driver
from afl.runtime.persistence import RateWish
from afl.runtime.reasons import WhyCode
from afl.testing.clock import SequentialIds
from tests.runtime.driving import World
from tests.runtime.kept import HOUR, Kept

SECOND = timedelta(seconds=1)
FLOW = """
namespace t {
  event facet Call(n: Int, who: String) => (r: Int)
    with RateLimit(max = 2, per = 10s, key = $.who) with Timeout(seconds = 3)
  event facet Free(n: Int) => (r: Int)

  workflow Many(ns: [Int], who: String) => (rs: [Int]) andThen foreach n in $.ns {
    a = Call(n = $.n, who = $.who)
    yield Many(rs = [a.r])
  }
  workflow Looser() => (r: Int) andThen {
    a = Call(n = 1, who = "x") with RateLimit(max = 5, per = 1s)
    b = Free(n = 1)
    yield Looser(r = a.r + b.r)
  }
}
"""


@pytest.fixture
def world(kept: Kept) -> World:
    world = World(kept)
    world.deploy(FLOW)
    world.handlers["Call"] = lambda n, who: {"r": n}
    world.handlers["Free"] = lambda n: {"r": n}
    return world


def delays(world: World, name: str = "t.Call") -> list[int]:
    """After how many seconds each task may start, in the order of their making."""
    tasks = [task for task in world.kept.store.kernel.find_tasks() if task.name == name]
    return sorted(round((task.run_at - task.created_at) / SECOND) for task in tasks)


def seconds(slots: list[timedelta]) -> list[int]:
    return [round(slot / SECOND) for slot in slots]


def test_slots_of_a_facet_and_a_key(kept: Kept) -> None:
    reserve = kept.store.reserve_slots
    two = RateWish("t.F", "a", 2, 10 * SECOND)
    assert seconds(reserve(two, 5)) == [0, 0, 10, 10, 20]
    assert seconds(reserve(RateWish("t.F", "b", 2, 10 * SECOND))) == [0]
    assert seconds(reserve(RateWish("t.G", "a", 2, 10 * SECOND))) == [0]
    kept.advance(15 * SECOND)
    # the fourth slot was at 10, the fifth at 20
    assert seconds(reserve(two, 2)) == [5, 15]
    kept.advance(HOUR)
    assert seconds(reserve(two, 3)) == [0, 0, 10]


def test_a_looser_limit_does_not_forget_what_a_tighter_one_needs(kept: Kept) -> None:
    reserve = kept.store.reserve_slots
    tight, loose = RateWish("t.F", "", 1, 10 * SECOND), RateWish("t.F", "", 3, 10 * SECOND)
    assert seconds(reserve(loose, 3)) == [0, 0, 0]
    assert seconds(reserve(tight)) == [10]
    # the third before it is the second of all, at 0
    assert seconds(reserve(loose)) == [10]


def test_old_slots_are_forgotten(kept: Kept) -> None:
    two = RateWish("t.F", "a", 1, 10 * SECOND)
    kept.store.reserve_slots(two, 3)
    kept.store.forget_runs(timedelta(0))
    assert seconds(kept.store.reserve_slots(two)) == [30]
    kept.advance(HOUR)
    kept.store.forget_runs(HOUR / 2)
    assert seconds(kept.store.reserve_slots(two, 2)) == [0, 10]


def test_many_processes_share_the_slots(server_kept: Kept) -> None:
    wish = RateWish("t.F", "", 3, 10 * SECOND)
    with ThreadPoolExecutor(4) as pool:
        taken = pool.map(lambda _: server_kept.store.reserve_slots(wish, 2), range(30))
        slots = sorted(round(slot / SECOND) for each in taken for slot in each)
    assert slots == sorted(10 * (number // 3) for number in range(60))


def test_tasks_start_when_their_slots_come(world: World) -> None:
    run = world.operations.submit("t.Many", {"ns": [1, 2, 3, 4, 5], "who": "x"})
    world.drive(run)
    assert len(world.done) == 2
    assert delays(world) == [0, 0, 10, 10, 20]
    for done in (4, 5):
        world.kept.advance(10 * SECOND)
        world.drive(run)
        assert len(world.done) == done
    assert world.operations.result(run.id) == {"rs": [1, 2, 3, 4, 5]}


def test_the_wait_is_not_part_of_the_time_of_an_attempt(world: World) -> None:
    """It may take three seconds, and some to spare, and waits for twenty."""
    run = world.operations.submit("t.Many", {"ns": [1, 2, 3, 4, 5], "who": "x"})
    world.drive(run)
    last = max(_calls(world), key=lambda task: task.run_at)
    assert last.deadline is not None
    assert 3 * SECOND < last.deadline - last.run_at < 10 * SECOND


def test_the_limit_holds_across_runs_and_for_each_key(world: World) -> None:
    for who in ("x", "x", "y"):
        world.drive(world.operations.submit("t.Many", {"ns": [1, 2], "who": who}))
    assert delays(world) == [0, 0, 0, 0, 10, 10]


def test_a_run_that_is_advanced_again_only_wastes_slots(world: World) -> None:
    """Whoever dies before the commit has taken the slot already."""
    run = world.operations.submit("t.Many", {"ns": [1], "who": "x"})
    kernel = world.kept.store.kernel
    other = Driver(world.kept.store, lambda task: None, SequentialIds(1 << 41))
    (ready,) = kernel.find_tasks()
    claim = kernel.take(other._worker, ready.id)
    assert claim is not None
    other.evaluator.evaluate(claim)
    world.kept.advance(HOUR)
    world.drive(run)
    assert delays(world) == [0]
    assert world.operations.result(run.id) == {"rs": [1]}


def test_a_policy_at_the_call_wins(world: World) -> None:
    assert world.run("t.Looser").outputs == {"r": 2}
    assert delays(world, "t.Free") == [0]


def test_why_says_that_it_is_rate_limited(world: World) -> None:
    run = world.operations.submit("t.Many", {"ns": [1, 2, 3], "who": "x"})
    world.drive(run)
    answer = world.operations.why(run.id).answers[0]
    assert answer.code is WhyCode.SCHEDULED
    assert "`t.Call` is rate limited until 20" in answer.sentence
    assert answer.sentence.endswith("it may start 2 times in 10s.")
    assert answer.until is not None


def _calls(world: World) -> list[Task]:
    return [task for task in world.kept.store.kernel.find_tasks() if task.name == "t.Call"]
