"""Nothing that can be written makes the front-end raise, hang or go silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lang.fuzz import Result, make_input, run_chunk, run_torture, write_failures
from tests.lang.torture import CASES

INPUTS = 5_000
PARTS = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_random_inputs_end_in_a_program_or_diagnostics(part: int) -> None:
    share = INPUTS // PARTS
    result = run_chunk(7, part * share, (part + 1) * share)
    assert result.failures == []
    assert result.inputs == share
    # inputs that are all right, or all wrong, would prove little
    assert share // 20 < result.programs < share * 19 // 20
    assert result.with_diagnostics > share // 2


@pytest.mark.parametrize("name", CASES)
def test_torture(name: str) -> None:
    assert run_torture(name).failures == []


def test_an_input_is_the_same_every_time() -> None:
    assert [make_input(3, n) for n in range(20)] == [make_input(3, n) for n in range(20)]


def test_a_failing_input_is_stored(tmp_path: Path) -> None:
    failed = Result(failures=[("seed 1 index 2", "took long"), ("1 MB of '('", "raised")])
    lines = list(write_failures(failed, tmp_path))
    assert "took long" in lines
    assert "raised" in lines
    text = make_input(1, 2)[1][0][1]
    stored = (tmp_path / "failure-0-part0.afl").read_bytes().decode("utf-8", "surrogatepass")
    assert stored == text
    assert (tmp_path / "failure-1-torture.afl").stat().st_size == 1_000_000
