from __future__ import annotations

import time

import pytest

from afl.kernel.model import Json
from afl.testing.engine import Engine, Stuck
from afl.testing.engine_simulation import Diverged, simulate
from afl.testing.engine_stubs import BadStub

FLOW = """
namespace demo {
  event facet Charge(cents: Int) => (receipt: String)
  event facet Shaky(n: Int) => (n: Int) with Retry(max_attempts = 3, delay = 1m, jitter = false)
  event facet Wire(cents: Int) => (ref: String) with Effect(kind = irreversible)
  workflow Pay(cents: Int) => (receipt: String) andThen {
    done = Charge(cents = $.cents)
    yield Pay(receipt = done.receipt)
  }
  workflow All(amounts: [Int]) => (receipts: [String]) andThen foreach cents in $.amounts {
    one = Pay(cents = $.cents)
    yield All(receipts = [one.receipt])
  }
  workflow Nap() => (ok: Boolean) andThen {
    a = afl.time.Sleep(duration = 30d)
    b = afl.time.Sleep(duration = 30d) after a
    yield Nap(ok = true)
  }
  workflow Again(n: Int) => (n: Int) andThen {
    s = Shaky(n = $.n)
    yield Again(n = s.n)
  }
  workflow Ask() => (answer: Json) andThen {
    got = afl.event.Wait(name = "answer")
    yield Ask(answer = got.payload)
  }
  workflow Slug(title: String) => (slug: String) script {
    result["low"] = params["title"].lower()
  } andThen {
    yield Slug(slug = $.low)
  }
  workflow Sent() => (ref: String) andThen {
    w = Wire(cents = 5)
    yield Sent(ref = w.ref)
  }
}
"""


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.compile(FLOW)
    return engine


def test_a_stub_answers_and_remembers(engine: Engine) -> None:
    charge = engine.stub("Charge", returns=lambda cents: {"receipt": f"r{cents}"})
    run = engine.run("demo.All", {"amounts": [1, 2, 3]})
    assert run.outputs == {"receipts": ["r1", "r2", "r3"]}
    assert charge.times == 3
    assert sorted(str(call["cents"]) for call in charge.calls) == ["1", "2", "3"]


def test_a_stub_may_fail(engine: Engine) -> None:
    engine.stub("demo.Charge", raises=ValueError("declined"))
    run = engine.run("demo.Pay", {"cents": 1})
    assert run.error == {"type": "ValueError", "message": "declined", "step": "0/done"}
    assert not run.success


def test_a_stub_that_does_not_fit_fails_the_test(engine: Engine) -> None:
    with pytest.raises(BadStub, match=r"Did you mean `demo\.Charge`"):
        engine.stub("demo.Chrage")
    engine.stub("demo.Charge", returns={"reciept": "x"})
    with pytest.raises(BadStub, match="did you mean `receipt`"):
        engine.run("demo.Pay", {"cents": 1})
    with pytest.raises(BadStub, match="no program to stub"):
        Engine().stub("x")


def test_where_a_flow_sleeps_the_clock_moves(engine: Engine) -> None:
    start = engine.clock.now()
    assert engine.run("demo.Nap").outputs == {"ok": True}
    assert (engine.clock.now() - start).days == 60


def test_time_passes_as_the_test_says(engine: Engine) -> None:
    run = engine.start("demo.Nap")
    engine.clock.advance("59d")
    assert engine.get(run.id).state == "running"
    engine.clock.advance("1d")
    assert engine.get(run.id).success


def test_retries_come_when_they_are_due(engine: Engine) -> None:
    failures = [ValueError("a"), ValueError("b")]

    def shaky(n: int) -> dict[str, Json]:
        if failures:
            raise failures.pop()
        return {"n": n}

    stub = engine.stub("Shaky", returns=shaky)
    start = engine.clock.now()
    assert engine.run("demo.Again", {"n": 4}).outputs == {"n": 4}
    assert stub.times == 3
    assert (engine.clock.now() - start).total_seconds() == 60 + 120


def test_what_nobody_does_is_told(engine: Engine) -> None:
    with pytest.raises(Stuck, match=r'Stub it: stub\("demo\.Charge", returns=\{\.\.\.\}\)'):
        engine.run("demo.Pay", {"cents": 1})


def test_an_event_that_does_not_come_is_told(engine: Engine) -> None:
    with pytest.raises(Stuck, match="`0/got` waits for the event `answer`"):
        engine.run("demo.Ask")
    engine.operations.emit("answer", payload=42)
    (waiting,) = engine.operations.list()
    assert engine.finish(waiting.id).outputs == {"answer": 42}


def test_scripts_run(engine: Engine) -> None:
    assert engine.run("demo.Slug", {"title": "Big News"}).outputs == {"slug": "big news"}


def test_two_engines_do_the_same(engine: Engine) -> None:
    def bundle() -> Json:
        other = Engine()
        other.compile(FLOW)
        other.stub("Charge", returns={"receipt": "r"})
        return other.operations.export(other.run("demo.All", {"amounts": [1, 2, 3]}).id)

    assert bundle() == bundle()


class TestSimulation:
    def test_a_flow_comes_to_the_same_end_wherever_it_is_killed(self, engine: Engine) -> None:
        charge = engine.stub("Charge", returns=lambda cents: {"receipt": f"r{cents}"})
        found = simulate(engine.prepare, "demo.All", {"amounts": [1, 2, 3]})
        assert found.outputs == {"receipts": ["r1", "r2", "r3"]}
        assert found.commits >= 6
        assert found.kills == 2 * found.commits
        assert charge.times > 3 * (found.commits + 1)

    def test_timers_and_retries_survive_too(self, engine: Engine) -> None:
        assert simulate(engine.prepare, "demo.Nap").outputs == {"ok": True}

    def test_a_flow_that_depends_on_when_it_runs_is_found_out(self, engine: Engine) -> None:
        calls = iter(range(1000))
        engine.stub("Charge", returns=lambda cents: {"receipt": str(next(calls))})
        with pytest.raises(Diverged, match="Killed before commit 0"):
            simulate(engine.prepare, "demo.Pay", {"cents": 1})

    def test_what_cannot_be_taken_back_is_done_once_each_time(self, engine: Engine) -> None:
        wire = engine.stub("Wire", returns={"ref": "w"})
        found = simulate(engine.prepare, "demo.Sent")
        assert found.outputs == {"ref": "w"}
        assert wire.times == found.kills + 1


def test_fifty_flows_test_in_under_ten_seconds() -> None:
    # of this process's own time: others may be busy
    start = time.process_time()
    for number in range(50):
        engine = Engine()
        engine.compile(FLOW)
        engine.stub("Charge", returns=lambda cents: {"receipt": str(cents)})
        run = engine.run("demo.All", {"amounts": [number, number + 1]})
        assert run.outputs == {"receipts": [str(number), str(number + 1)]}
    assert time.process_time() - start < 10
