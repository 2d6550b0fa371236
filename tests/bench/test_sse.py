"""The measurement of streams hears every change, and ends with its figures."""

from __future__ import annotations

import json

import pytest

from bench.sse import measure, report
from tests.bench.servers import SERVER, needs_postgres


@needs_postgres
@pytest.mark.slow
def test_every_client_hears_of_the_changes() -> None:
    result = measure(SERVER, 5, 1.0)
    assert result.changes >= 2
    assert result.fewest_events >= 1
    figures = json.loads(report(result).splitlines()[-1])
    assert figures["clients"] == 5
    assert 0 <= figures["cpu_share"] < 1
