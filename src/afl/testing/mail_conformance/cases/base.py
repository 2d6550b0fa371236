"""What every case is given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from afl.testing.mail_conformance.driver import Driver, in_balance
from afl.testing.mail_conformance.harness import Harness


class Cases:
    """Tests that use a `driver`; whatever a test does, no message is unaccounted for at its end."""

    @pytest.fixture
    def harness(self) -> Iterator[Harness]:
        raise NotImplementedError("give the suite a fixture `harness` with empty mailboxes")

    @pytest.fixture
    def driver(self, harness: Harness) -> Iterator[Driver]:
        driver = Driver(harness)
        yield driver
        assert in_balance(Driver(harness).counts())
