"""Redis is killed, comes back empty and is flushed while flows with turns run.

Flows are in PostgreSQL, so none of them is lost or waits for Redis. Mailboxes are in Redis, so what
was in them is gone, and everybody is told what to do; the page on mailboxes says so.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import redis
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from afl import Client, Run
from afl.messaging.errors import MessageCoordinatorError, MessageRefused
from afl.messaging.models import AgentId, AgentMessage, MailboxCounts, MessageType
from afl.messaging.redis_coordinator import RedisMessageCoordinator
from tests.cli.deployed import deployed_database
from tests.cli.runner import AFL, plain_environment
from tests.kernel.postgres.databases import server_is_there
from tests.messaging.redis_servers import Server, needs_redis_server, server

FLOW = """\
namespace demo {
  event facet Count(text: String) => (n: Int)
  event facet Hold(name: String) => (name: String)

  event facet Explain(name: String) => (text: String)
    prompt { template "Explain {name}." tools [Hold] }

  workflow Do(name: String) => (n: Int, text: String) andThen {
    counted = Count(text = $.name)
    said = Explain(name = $.name) after counted
    again = Count(text = said.text)
    yield Do(n = again.n, text = said.text)
  }
}
"""

#: The tool of the model is held until the test lets go, so a turn is in the middle of its work.
HANDLERS = """\
import time
from pathlib import Path

import afl

app = afl.App("demo")


@app.handler("demo.Count")
def count(text: str) -> int:
    return len(text)


@app.handler("demo.Hold")
def hold(name: str) -> str:
    Path(f"held-{name}").touch()
    while not Path(f"go-{name.partition('-')[0]}").exists():
        time.sleep(0.02)
    return name
"""

SCRIPT = """\
from afl.turns.model import AgentSaid, UserSays
from afl.turns.models.scripted import Answer, Call


def replies(request):
    asked = [each.text for each in request.messages if isinstance(each, UserSays)][-1]
    name = asked.removeprefix("Explain ").removesuffix(".")
    if not any(isinstance(each, AgentSaid) for each in request.messages):
        return Answer("Let me see.", calls=(Call("Hold", {"name": name}),))
    return Answer(text=f"seen {name}")
"""

BUYER, SELLER = AgentId(type="buyer"), AgentId(type="seller")
PATIENCE_SECONDS = 60.0

pytestmark = [
    needs_redis_server,
    pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in (("handlers.py", HANDLERS), ("model.py", SCRIPT)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


class Mail:
    """A user of mailboxes, who keeps its connection through everything."""

    def __init__(self, port: int) -> None:
        self._loop = asyncio.Runner()
        self._redis = Redis(host="127.0.0.1", port=port, retry=Retry(NoBackoff(), 0))
        self._mailboxes = RedisMessageCoordinator(self._redis)

    def send(self, message_id: str) -> bool:
        message = AgentMessage(
            message_id=message_id,
            sender=BUYER,
            recipient=SELLER,
            message_type=MessageType.EVENT,
        )
        result = self._loop.run(self._mailboxes.send_message(BUYER, SELLER, message))
        return result.delivered

    def take(self) -> str | None:
        """Receives and acknowledges."""

        async def work() -> str | None:
            received = await self._mailboxes.receive(SELLER)
            if received is None or not await self._mailboxes.ack(SELLER, received.token):
                return None
            return received.queue_message.message.message_id

        return self._loop.run(work())

    def counts(self) -> MailboxCounts:
        return self._loop.run(self._mailboxes.counts(SELLER))

    def close(self) -> None:
        self._loop.run(self._mailboxes.close())
        self._loop.run(self._redis.aclose())
        self._loop.close()


@contextmanager
def worker(project: Path, url: str, redis_url: str) -> Iterator[None]:
    """`afl worker` as a process, with turns, once it serves."""
    settings = {
        "AFL_DATABASE_URL": url,
        "AFL_REDIS_URL": redis_url,
        "AFL_MODEL": f"scripted:{project / 'model.py'}",
    }
    with (
        (project / "worker.log").open("w") as log,
        subprocess.Popen(
            [AFL, "worker", "--handlers", "handlers", "--slots", "16", "--json"],
            cwd=project,
            env={**plain_environment(), **settings},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as running,
    ):
        try:
            assert running.stdout is not None
            started = json.loads(running.stdout.readline())
            assert started["answers"] == ["demo.Explain"]
            yield
            assert running.poll() is None, "the worker is there to the end"
        finally:
            running.kill()


def submit(client: Client, phase: str) -> dict[str, Run]:
    names = [f"{phase}-{number}" for number in range(3)]
    return {name: client.submit("demo.Do", {"name": name}) for name in names}


def judge(runs: dict[str, Run]) -> None:
    """Every flow has come to what it should."""
    for name, run in runs.items():
        text = f"seen {name}"
        assert run.result("60s") == {"n": len(text), "text": text}


def let_go(project: Path, phase: str) -> None:
    (project / f"go-{phase}").touch()


def wait_until_held(project: Path, runs: dict[str, Run]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not all((project / f"held-{name}").exists() for name in runs):
        assert time.monotonic() < end, (project / "worker.log").read_text()
        time.sleep(0.02)


def flush(own: Server) -> None:
    with redis.Redis(port=own.port) as client:
        client.flushall()


def test_no_flow_is_lost_when_redis_is_killed_and_flushed(project: Path) -> None:
    with (
        deployed_database(FLOW) as url,
        server(project / "redis") as own,
        closing(Mail(own.port)) as mail,
        worker(project, url, own.url),
        Client(url) as client,
    ):
        assert mail.send("before-1")
        let_go(project, "early")
        judge(submit(client, "early"))
        through_the_outage, through_the_flush = submit(client, "outage"), submit(client, "flush")
        wait_until_held(project, {**through_the_outage, **through_the_flush})

        own.stop()
        with pytest.raises(MessageCoordinatorError, match="do it again when Redis is back") as told:
            mail.send("during-1")
        assert told.value.retryable
        assert not isinstance(told.value, MessageRefused)
        with pytest.raises(MessageCoordinatorError, match="Redis cannot be reached"):
            mail.take()
        let_go(project, "outage")
        let_go(project, "during")
        judge({**through_the_outage, **submit(client, "during")})

        own.start()
        assert mail.take() is None, "without persistence, what was sent before is gone"
        assert mail.send("before-1"), "and is sent again, since its id is forgotten too"
        flush(own)
        assert mail.counts() == MailboxCounts()
        assert mail.send("before-1")
        assert mail.send("during-1")
        assert (mail.take(), mail.take(), mail.take()) == ("before-1", "during-1", None)
        assert mail.counts() == MailboxCounts(sent=2, acked=2)
        let_go(project, "flush")
        let_go(project, "late")
        judge({**through_the_flush, **submit(client, "late")})
