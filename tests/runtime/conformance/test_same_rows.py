"""Random programs leave the same rows behind on a server as in memory."""

from __future__ import annotations

import pytest

from tests.runtime.conformance.chance import ChanceDriver, programs, trace
from tests.runtime.kept import Kept


@pytest.mark.parametrize("seed", ["one", "two", "three"])
def test_a_run_leaves_the_same_rows(server_kept: Kept, seed: str) -> None:
    played = [
        (program, workflow.name, inputs, trace(ChanceDriver(program, seed), workflow.name, inputs))
        for program, workflow, inputs in programs(f"same rows {seed}", 8)
    ]
    # the one that has the most to do, and can be done in a moment
    program, workflow, inputs, expected = max(
        (each for each in played if len(each[3].steps) < 60), key=lambda each: len(each[3].steps)
    )
    assert len(expected.steps) > 10
    assert trace(ChanceDriver(program, seed, store=server_kept.store), workflow, inputs) == expected
