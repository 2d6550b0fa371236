"""A Redis that is away: flows go on, and mail does when it is back."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from afl import App
from afl.app.mailroom import Mailroom
from afl.runtime.errors import RunFailed
from tests.app.mailing import answer, received, until
from tests.messaging.redis_servers import Server, needs_redis_server

pytestmark = needs_redis_server

FLOW = """\
namespace post {
  event facet Double(n: Int) => (n: Int)

  workflow Count(n: Int) => (n: Int) andThen {
    d = Double(n = $.n)
    yield Count(n = d.n)
  }

  workflow Ask(to: String) => (answer: Json) andThen {
    asked = afl.mail.Ask(to = $.to, payload = "what?")
    yield Ask(answer = asked.payload)
  }

  workflow Once(to: String) => (id: String) andThen {
    sent = afl.mail.Send(to = $.to, payload = "x") with Retry(max_attempts = 1)
    yield Once(id = sent.message_id)
  }
}
"""


@pytest.fixture
def redis_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """One that is not started yet."""
    made = Server(tmp_path / "redis")
    monkeypatch.setenv("AFL_REDIS_URL", f"redis://127.0.0.1:{made.port}")
    yield made
    made.stop()


@pytest.fixture
def app(database: str) -> Iterator[App]:
    made = App("post", database)

    @made.handler("post.Double")
    def double(n: int) -> int:
        return 2 * n

    made.client().deploy(FLOW)
    yield made
    made.close()


def test_flows_go_on_while_redis_is_away(
    app: App,
    redis_server: Server,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("afl.app.mailroom._CONNECT_SECONDS", 0.1)
    client = app.client()
    caplog.set_level(logging.WARNING, "afl.mail")
    with app.worker():
        asked = client.submit("post.Ask", {"to": "clerk"})
        once = client.submit("post.Once", {"to": "clerk"})
        assert client.submit("post.Count", {"n": 1}).result("30s") == {"n": 2}
        with pytest.raises(RunFailed, match=r"The mailboxes do not answer.*Start the Redis"):
            once.result("30s")
        until(lambda: any("MailUnavailable" in each.sentence for each in asked.why().answers))
        redis_server.start()
        question = received(app, "clerk")
        # it goes away with what was received, and comes back with nothing
        redis_server.stop()
        assert client.submit("post.Count", {"n": 2}).result("30s") == {"n": 4}
        redis_server.start()
        answer(app, question, {"n": 1})
        assert asked.result("60s") == {"answer": {"n": 1}}
    told = [each.message for each in caplog.records if each.name == "afl.mail"]
    # once for each outage, however often it is tried
    assert 1 <= sum("the mailboxes do not answer" in each for each in told) <= 2
    assert 1 <= sum("mail is received again" in each for each in told) <= 2


def test_a_worker_ends_while_redis_is_away(app: App, redis_server: Server) -> None:
    worker = app.worker()
    assert isinstance(worker.mail, Mailroom)
    with worker:
        assert app.client().submit("post.Count", {"n": 1}).result("30s") == {"n": 2}
