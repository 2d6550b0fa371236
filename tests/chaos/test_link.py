"""A short version of `make chaos-link`."""

from __future__ import annotations

import pytest

from tests.chaos.hosts import can_make_hosts
from tests.chaos.link import Options, run
from tests.chaos.server import find_binaries


def test_a_worker_that_is_cut_off_stops_in_time() -> None:
    binaries = find_binaries()
    if binaries is None or not can_make_hosts():
        pytest.skip("there is no PostgreSQL to start, or there are no network namespaces")
    verdict = run(Options(rounds=2), binaries)
    assert verdict.ok, (verdict, verdict.problems, verdict.doubts)
