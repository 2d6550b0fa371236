from __future__ import annotations

import pytest

from afl.testing.conformance.harness import Harness
from afl.testing.conformance.suite import ConformanceSuite
from tests.kernel.postgres.databases import PostgresHarness


class TestPostgres(ConformanceSuite):
    @pytest.fixture
    def harness(self, harness: PostgresHarness) -> Harness:
        return harness
