"""Mailboxes in Redis pass the suite that all mailboxes pass."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from afl.testing.mail_conformance.harness import Harness
from afl.testing.mail_conformance.machine import mail_machine
from afl.testing.mail_conformance.suite import MailSuite
from tests.messaging.redis_mailboxes import RedisHarness, needs_redis

_GAMES = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class TaggedHarness(RedisHarness):
    """The keys of a cluster on one server."""

    key_style = "tagged"


@needs_redis
class TestRedis(MailSuite):
    @pytest.fixture
    def harness(self) -> Iterator[Harness]:
        harness = RedisHarness()
        yield harness
        harness.close()


@needs_redis
class TestRedisGames(mail_machine(RedisHarness).TestCase):  # type: ignore[misc]
    settings = _GAMES


@needs_redis
class TestTaggedGames(mail_machine(TaggedHarness).TestCase):  # type: ignore[misc]
    settings = _GAMES
