"""The suite for mailboxes, as one pytest class to inherit from. Needs pytest.

class TestMemory(MailSuite):
    @pytest.fixture
    def harness(self) -> Iterator[Harness]:
        harness = MemoryHarness()
        yield harness
        harness.close()
"""

from __future__ import annotations

import pytest

# Before the cases are imported, so that a failing assert in them shows its values.
pytest.register_assert_rewrite("afl.testing.mail_conformance.cases")

from afl.testing.mail_conformance.cases.dead_letters import DeadLetterCases  # noqa: E402
from afl.testing.mail_conformance.cases.faults import FaultCases  # noqa: E402
from afl.testing.mail_conformance.cases.receiving import OrderCases, ReceiveCases  # noqa: E402
from afl.testing.mail_conformance.cases.sending import BroadcastCases, SendCases  # noqa: E402
from afl.testing.mail_conformance.cases.settings import SettingCases  # noqa: E402
from afl.testing.mail_conformance.cases.settling import (  # noqa: E402
    DeadlineCases,
    MetricCases,
    RetryCases,
)
from afl.testing.mail_conformance.cases.subscriptions import SubscriptionCases  # noqa: E402
from afl.testing.mail_conformance.cases.waiting import RequestCases, WaitCases  # noqa: E402


class MailSuite(
    SendCases,
    BroadcastCases,
    ReceiveCases,
    OrderCases,
    DeadlineCases,
    RetryCases,
    MetricCases,
    DeadLetterCases,
    SubscriptionCases,
    SettingCases,
    FaultCases,
    WaitCases,
    RequestCases,
):
    """Inherit, and override the fixture `harness` with one that has empty mailboxes."""
