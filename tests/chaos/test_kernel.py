"""A short storm. `make chaos-kernel` is the long one."""

from __future__ import annotations

import pytest

from tests.chaos.kernel import Options, run
from tests.chaos.server import find_binaries


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_overwritten_in_a_storm() -> None:
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("there is no PostgreSQL server on this machine")
    verdict = run(Options(roots=150, seconds=20, workers=6, seed=7), binaries)
    assert verdict.problems == ()
    # a run in which nothing broke would prove nothing
    assert verdict.doubts == []
    assert verdict.ok
    assert (verdict.roots, verdict.lost, verdict.duplicate_closed) == (150, 0, 0)
    assert verdict.stale_accepted == 0 < verdict.stale_refused
