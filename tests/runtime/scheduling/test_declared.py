"""What programs declare, as schedules of a deployment."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from afl.app.compiling import compile_program
from afl.ir.codec import dumps, loads
from afl.kernel.doorbell import LocalDoorbell
from afl.runtime.errors import BadSchedule
from afl.runtime.memory_store import MemoryStore
from afl.runtime.operations import Operations
from afl.runtime.schedule import CatchUp, Overlap, Schedule, Times
from afl.runtime.scheduling.declared import declared_schedules
from afl.runtime.scheduling.loop import SchedulerLoop
from afl.testing.clock import START, SequentialIds, VirtualClock
from tests.runtime.serving import PATIENCE_SECONDS, eventually

FLOW = """
namespace demo {
  workflow Tidy(days: Int = 30, span: Duration = 1h, names: [String] = []) => () andThen {
    sys.log(days = $.days)
  }
"""
MANY = """
  schedule plain = Tidy() every 15m
  schedule whole = Tidy(days = 6 + 1, span = 90s, names = ["a", "b"]) cron "0 4 * * sun"
    zone "Europe/Berlin" start "2030-06-01" end "2030-12-01T09:00Z" jitter 10m overlap queue
    catch_up all
  schedule once = Tidy() at "2030-01-31T09:00" zone "America/New_York"
}
"""


def test_all_that_can_be_declared_comes_through_the_stored_form() -> None:
    program = loads(dumps(compile_program(FLOW + MANY)))
    once, plain, whole = declared_schedules(program, "default")
    assert plain == Schedule(
        "demo.plain", "demo.Tidy", Times(every=timedelta(minutes=15)), owner="default"
    )
    assert once.times == Times(at=datetime(2030, 1, 31, 14, tzinfo=UTC), zone="America/New_York")
    assert whole.inputs == {"days": 7, "span": 90_000, "names": ["a", "b"]}
    assert whole.times == Times(
        cron="0 4 * * sun",
        zone="Europe/Berlin",
        start=datetime(2030, 5, 31, 22, tzinfo=UTC),
        end=datetime(2030, 12, 1, 9, tzinfo=UTC),
        jitter=timedelta(minutes=10),
    )
    assert (whole.overlap, whole.catch_up) == (Overlap.QUEUE, CatchUp.ALL)
    (other, *_) = declared_schedules(program, "test")
    assert (other.name, other.program, other.owner) == ("test/demo.once", "test", "test")


def test_a_schedule_that_is_as_it_was_keeps_its_place() -> None:
    clock = VirtualClock()
    operations = Operations(MemoryStore(clock, SequentialIds()))
    first = operations.deploy(compile_program(FLOW + MANY))
    assert first.before is None
    assert first.schedules.created == ["demo.once", "demo.plain", "demo.whole"]
    clock.advance(timedelta(minutes=5))
    changed = MANY.replace("6 + 1", "8").replace("every 15m", "every 10m")
    again = operations.deploy(compile_program(FLOW + changed))
    assert again.schedules.updated == ["demo.plain", "demo.whole"]
    assert operations.schedules.get("demo.plain").next_fire == START + timedelta(minutes=10)
    gone = operations.deploy(compile_program(FLOW + "}"))
    assert gone.schedules.removed == ["demo.once", "demo.plain", "demo.whole"]


def test_a_single_time_that_has_passed_is_deployed_and_never_fires() -> None:
    operations = Operations(MemoryStore(VirtualClock(), SequentialIds()))
    text = FLOW + '  schedule once = Tidy() at "2020-01-01"\n}'
    operations.deploy(compile_program(text))
    assert operations.schedules.get("demo.once").state == "ended"


def test_a_zone_that_is_none_is_refused_before_anything_is_deployed() -> None:
    operations = Operations(MemoryStore())
    text = FLOW + '  schedule s = Tidy() cron "0 0 * * *" zone "Mars/Base"\n}'
    with pytest.raises(BadSchedule, match="There is no time zone `Mars/Base`"):
        operations.deploy(compile_program(text))
    assert operations.persistence.deployments() == {}


def test_the_loop_looks_when_it_is_rung_for_and_ends_at_once() -> None:
    bell = LocalDoorbell()
    operations = Operations(MemoryStore(), doorbell=bell)
    operations.deploy(compile_program(FLOW + "}"))
    loop = SchedulerLoop(operations.schedules.scheduler, bell)
    loop.start()
    eventually(lambda: loop.health.last_success is not None, "a first look")
    often = Times(every=timedelta(seconds=1))
    operations.schedules.create(Schedule("often", "demo.Tidy", often))
    eventually(lambda: operations.schedules.last_run("often") is not None, "its run")
    bell.close()
    stopper = threading.Thread(target=loop.stop)
    stopper.start()
    stopper.join(PATIENCE_SECONDS)
    assert not stopper.is_alive()
    assert loop.health.errors == 0
