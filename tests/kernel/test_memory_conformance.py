"""The memory store passes the suite that every store must pass."""

from __future__ import annotations

import pytest

from afl.testing.conformance.harness import Harness, MemoryHarness
from afl.testing.conformance.suite import ConformanceSuite


class TestMemory(ConformanceSuite):
    @pytest.fixture
    def harness(self) -> Harness:
        return MemoryHarness()
