"""Mailboxes in memory are mailboxes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import settings

from afl.messaging.coordinator import MessageCoordinator, MessageMetrics
from afl.messaging.memory_coordinator import MemoryMailboxes, MemoryMessageCoordinator
from afl.testing.clock import VirtualClock
from afl.testing.mail_conformance.harness import Harness, LoopHarness
from afl.testing.mail_conformance.machine import mail_machine
from afl.testing.mail_conformance.suite import MailSuite


class MemoryHarness(LoopHarness):
    """Its answers cannot be lost, and its process is ours."""

    def __init__(self) -> None:
        super().__init__()
        self._clock = VirtualClock(tick=timedelta(microseconds=1))
        self._mailboxes = MemoryMailboxes(self._clock)

    def coordinator(self, metrics: MessageMetrics | None = None) -> MessageCoordinator:
        return self.keep(MemoryMessageCoordinator(self._mailboxes, metrics))

    def advance(self, seconds: float) -> None:
        self._clock.advance(timedelta(seconds=seconds))

    def lose_answer(self, coordinator: MessageCoordinator) -> None:
        pass

    def die_after(self, coordinator: MessageCoordinator, commands: int) -> None:
        pass


class TestMemoryCoordinator(MailSuite):
    @pytest.fixture
    def harness(self) -> Iterator[Harness]:
        harness = MemoryHarness()
        yield harness
        harness.close()


TestMemoryGames = mail_machine(MemoryHarness).TestCase
TestMemoryGames.settings = settings(max_examples=60, deadline=None)
