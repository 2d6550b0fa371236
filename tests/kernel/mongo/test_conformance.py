from __future__ import annotations

import pytest

from afl.testing.conformance.harness import Harness
from afl.testing.conformance.suite import ConformanceSuite
from tests.kernel.mongo.databases import MongoHarness


class TestMongo(ConformanceSuite):
    @pytest.fixture
    def harness(self, harness: MongoHarness) -> Harness:
        return harness
