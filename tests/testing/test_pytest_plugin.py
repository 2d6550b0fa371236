from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

FLOW = """\
namespace demo {
  event facet Charge(cents: Int) => (receipt: String)
  workflow Pay(cents: Int) => (receipt: String) andThen {
    nap = afl.time.Sleep(duration = 3d)
    done = Charge(cents = $.cents) after nap
    yield Pay(receipt = done.receipt)
  }
}
"""

TESTS = """\
import pytest
from pathlib import Path

@pytest.fixture(autouse=True)
def flows(engine):
    engine.compile(Path("flows"))

def test_run(engine, stub):
    charge = stub("demo.Charge", returns={"receipt": "r-1"})
    assert engine.run("demo.Pay", {"cents": 5}).outputs == {"receipt": "r-1"}
    assert charge.calls == [{"cents": 5}]

def test_clock(engine, stub, clock):
    stub("Charge", returns={"receipt": "r"})
    run = engine.start("demo.Pay", {"cents": 5})
    clock.advance("2d")
    assert engine.get(run.id).state == "running"
    clock.advance("1d")
    assert engine.get(run.id).state == "completed"

def test_raises(engine, stub):
    stub("Charge", raises=ValueError("declined"))
    assert engine.run("demo.Pay", {"cents": 5}).error["message"] == "declined"

def test_simulate(stub, simulate):
    stub("Charge", returns={"receipt": "r"})
    assert simulate("demo.Pay", {"cents": 5}).outputs == {"receipt": "r"}

def test_that_fails(engine):
    engine.run("demo.Pay", {"cents": 5})
"""


def test_the_fixtures_work_in_a_project_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "demo.afl").write_text(FLOW)
    (tmp_path / "test_pay.py").write_text(dedent(TESTS))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "afl.testing.pytest_plugin"],
        cwd=tmp_path,
        env={name: text for name, text in os.environ.items() if not name.startswith("PYTEST")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "4 passed" in done.stdout, done.stdout
    assert "1 failed" in done.stdout
    assert 'Stub it: stub("demo.Charge", returns={...}).' in done.stdout
