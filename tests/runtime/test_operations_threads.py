"""What several clients do to the same runs at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TypeVar

import pytest

from afl.kernel.doorbell import LocalDoorbell
from afl.runtime.errors import RunConflict
from afl.runtime.operations import Operations
from afl.runtime.settling import ENDED
from tests.runtime.driving import World
from tests.runtime.kept import Kept

T = TypeVar("T")
FLOW = """
namespace demo {
  workflow Wait(key: String) => (answer: Json) andThen {
    got = afl.event.Wait(name = "go", key = $.key)
    yield Wait(answer = got.payload)
  }
}
"""


@pytest.fixture
def world(kept: Kept) -> World:
    world = World(kept)
    world.deploy(FLOW)
    return world


def at_once(work: Callable[[int], T], count: int = 6) -> list[T]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def test_one_key_makes_one_run(world: World) -> None:
    def submit(number: int) -> str:
        ops = Operations(world.kept.store)
        return ops.submit("demo.Wait", {"key": str(number)}, key="k").id

    assert len(set(at_once(submit))) == 1
    assert len(world.operations.list()) == 1


def test_of_those_who_reject_one_wins(world: World) -> None:
    def submit(number: int) -> str | None:
        ops = Operations(world.kept.store)
        try:
            return ops.submit("demo.Wait", {"key": "x"}, key="k", conflict="reject").id
        except RunConflict:
            return None

    assert len([each for each in at_once(submit) if each is not None]) == 1


def test_of_those_who_replace_one_run_stays(world: World) -> None:
    first = world.operations.submit("demo.Wait", {"key": "x"}, key="k")

    def submit(number: int) -> str:
        ops = Operations(world.kept.store)
        return ops.submit("demo.Wait", {"key": "x"}, key="k", conflict="replace").id

    made = at_once(submit)
    assert len(set(made)) == len(made)
    runs = world.operations.list()
    assert len(runs) == len(made) + 1
    (left,) = [run for run in runs if run.state != "canceled"]
    assert left.id in made
    assert world.operations.get(first.id).state == "canceled"
    assert world.operations.submit("demo.Wait", {"key": "x"}, key="k").id == left.id


def test_an_event_is_delivered_once_however_many_deliver(world: World) -> None:
    runs = [world.run("demo.Wait", {"key": "x"}) for _ in range(4)]
    for number in range(3):
        world.kept.store.emit("go", "x", number)
    at_once(lambda _: world.operations.deliver_events())
    ended = [world.drive(run) for run in runs]
    answers = [run.outputs["answer"] for run in ended if run.outputs is not None]
    assert sorted(map(str, answers)) == ["0", "1", "2"]


def test_whoever_waits_hears_the_doorbell(world: World) -> None:
    doorbell = LocalDoorbell()
    waiting = Operations(world.kept.store, doorbell=doorbell)
    run = world.run("demo.Wait", {"key": "x"})
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(waiting.result, run.id, timedelta(seconds=60))
        world.operations.emit("go", "x", 1)
        world.drive(run)
        doorbell.ring([ENDED])
        assert result.result(60) == {"answer": 1}
