"""Mailboxes in MongoDB are mailboxes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from afl.testing.mail_conformance.harness import Harness
from afl.testing.mail_conformance.machine import mail_machine
from afl.testing.mail_conformance.suite import MailSuite
from tests.kernel.mongo.databases import server_is_there
from tests.messaging.mongo_harness import MongoMailHarness, Server, mail_database


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if not server_is_there():
        pytest.skip("there is no MongoDB to test with")
    with mail_database() as url:
        server = Server(url)
        yield server
        server.database.close()


class TestMongoCoordinator(MailSuite):
    @pytest.fixture
    def harness(self, server: Server) -> Iterator[Harness]:
        harness = MongoMailHarness(server)
        yield harness
        harness.close()


@pytest.mark.slow
def test_random_games_end_as_those_of_the_reference(server: Server) -> None:
    run_state_machine_as_test(
        mail_machine(lambda: MongoMailHarness(server)),
        settings=settings(max_examples=40, stateful_step_count=30, deadline=None),
    )
