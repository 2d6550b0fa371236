"""`python -m tests.sim`: tables for people, one line for machines."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.architecture.repository import ROOT
from tests.sim.__main__ import main
from tests.sim.mutants import MUTANTS


def test_a_campaign_ends_with_its_figures() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim", "--schedules", "40"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["schedules"] == 40
    assert figures["failures"] == 0
    assert figures["mutants_killed"] == figures["mutants"] == len(MUTANTS)
    assert figures["schedules_per_second"] > 0
    assert sum(figures["faults"].values()) == figures["faults_injected"] > 0
    assert figures["tasks_recovered"] > 0


def test_one_schedule_is_told_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "0", "--only", ""]) == 0
    out = capsys.readouterr().out
    assert "w1         register w1.1 -> until" in out
    assert "with fence 1" in out
    assert out.endswith("seed 0: all promises kept\n")


def test_a_failing_schedule_is_shrunk_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "0", "--mutant", "ack before commit", "--shrink"]) == 1
    out = capsys.readouterr().out
    assert "seed 0: acknowledged is kept:" in out
    assert "1 pieces of work" in out
    assert 'python -m tests.sim --seed 0 --only ""' in out
