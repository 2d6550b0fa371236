"""What every case is given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from afl.testing.conformance.driver import Driver
from afl.testing.conformance.harness import Harness
from afl.testing.conformance.invariants import check


class Cases:
    """Tests that use a `driver`; whatever a test does, the invariants hold when it ends."""

    @pytest.fixture
    def harness(self) -> Harness:
        raise NotImplementedError("give the suite a fixture `harness` with a fresh store")

    @pytest.fixture
    def driver(self, harness: Harness) -> Iterator[Driver]:
        driver = Driver(harness)
        driver.register("w", "work", "caller")
        yield driver
        assert check(driver.store, trimmed=driver.trimmed) == []
