"""The conformance suite for kernel stores, as one pytest class to inherit from. Needs pytest."""

from __future__ import annotations

import pytest

# Before the cases are imported, so that a failing assert in them shows its values.
pytest.register_assert_rewrite("afl.testing.conformance.cases")

from afl.testing.conformance.cases.answers import AnswerCases  # noqa: E402
from afl.testing.conformance.cases.calls import CallCases  # noqa: E402
from afl.testing.conformance.cases.claims import ClaimCases, WorkerCases  # noqa: E402
from afl.testing.conformance.cases.commits import CommitCases, EagerCases  # noqa: E402
from afl.testing.conformance.cases.endings import (  # noqa: E402
    CrashCases,
    DeadlineCases,
    RetryCases,
    StopCases,
)
from afl.testing.conformance.cases.enqueue import EnqueueCases  # noqa: E402
from afl.testing.conformance.cases.handovers import HandoverCases  # noqa: E402
from afl.testing.conformance.cases.lanes import LaneCases  # noqa: E402
from afl.testing.conformance.cases.shelves import (  # noqa: E402
    CardCases,
    LockCases,
    OutboxCases,
    QueryCases,
    RotationCases,
)
from afl.testing.conformance.cases.signs_of_life import ExtendCases, StrayCases  # noqa: E402


class ConformanceSuite(
    EnqueueCases,
    ClaimCases,
    WorkerCases,
    CommitCases,
    EagerCases,
    HandoverCases,
    ExtendCases,
    StrayCases,
    CallCases,
    AnswerCases,
    LaneCases,
    RetryCases,
    CrashCases,
    StopCases,
    DeadlineCases,
    CardCases,
    OutboxCases,
    LockCases,
    QueryCases,
    RotationCases,
):
    """Inherit, and override the fixture `harness` with one that has a fresh store."""
