"""What a model says is told while it says it: on every way from a worker to a server."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.testclient import TestClient

from afl import App
from afl.base.settings import Settings
from afl.kernel.model import TaskSpec
from afl.server.application import API, create_app
from afl.server.backend import Backend
from afl.server.models.agents import ChunkEvent
from afl.server.routes import stream
from afl.server.serving import open_backend
from afl.server.watching import speaking
from afl.server.watching.speaking import Speech
from afl.server.watching.topics import Topic
from afl.turns.chunks import CONTENT, END, START, Chunk
from afl.turns.feed import LocalFeed, chunk_subject
from afl.turns.ports import Hear, LiveFeed
from tests.server.calling import token_for
from tests.turns.slow_model import slow_model

PATIENCE = 60
NATS = ("127.0.0.1", 4222)
WORDS = ["The ", "month ", "is ", "closed ", "and ", "paid."]
#: The model waits before this word until the test has seen those before.
HELD = 3
FLOW = """\
namespace demo {
  event facet Sum(month: String) => (text: String)
    prompt { template "Sum up {month}." }
  workflow Report(month: String) => (text: String) andThen {
    it = Sum(month = $.month)
    yield Report(text = it.text)
  }
}
"""


@dataclass
class Told:
    """An answer as a page adds it up."""

    request: int = -1
    parts: list[tuple[str, str | None, str]] = field(default_factory=list)
    over: bool = False
    events: int = 0

    def take(self, event: dict[str, Any]) -> None:
        self.events += 1
        self.request, self.over = event["request"], event["over"]
        if event["fresh"]:
            self.parts = []
        for part in event["parts"]:
            kind, tool, text = part["kind"], part["tool"], part["text"]
            if tool is None and self.parts and self.parts[-1][0] == kind:
                _, before, so_far = self.parts.pop()
                self.parts.append((kind, before, so_far + text))
            else:
                self.parts.append((kind, tool, text))

    @property
    def text(self) -> str:
        return "".join(text for kind, _, text in self.parts if kind == "assistant")


class Reader:
    """Reads a stream from another thread, so that a test can wait for what it wants."""

    def __init__(self, url: str, *topics: str) -> None:
        self.told = Told()
        self.marks: list[str] = []
        self._news = threading.Condition()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(url, topics), daemon=True)
        self._thread.start()

    def wait(self, condition: Callable[[Told], bool]) -> None:
        with self._news:
            assert self._news.wait_for(lambda: condition(self.told), PATIENCE), self.told

    def close(self) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE)

    def _read(self, url: str, topics: tuple[str, ...]) -> None:
        path = f"{url}{API}/stream"
        with httpx.stream("GET", path, params={"topic": topics}, timeout=PATIENCE) as answer:
            assert answer.status_code == 200
            kind = ""
            for line in answer.iter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    with self._news:
                        if kind == "chunk":
                            self.told.take(json.loads(value))
                        else:
                            self.marks.append(value)
                        self._news.notify_all()
                if self._is_over.is_set():
                    return


@contextmanager
def served(backend: Backend) -> Iterator[str]:
    config = uvicorn.Config(create_app(backend), host="127.0.0.1", port=0, log_config=None)
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


def until(look: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


@pytest.fixture(params=["within", "postgres", "nats"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty database; what models say goes the way that the parameter says."""
    monkeypatch.delenv("AFL_NATS_URL", raising=False)
    if request.param == "within":
        return f"memory:{secrets.token_hex(4)}"
    if request.param == "nats":
        try:
            socket.create_connection(NATS, timeout=1).close()
        except OSError:
            pytest.skip("there is no NATS to test with")
        monkeypatch.setenv("AFL_NATS_URL", f"nats://{NATS[0]}:{NATS[1]}")
    return str(request.getfixturevalue("empty_url"))


def test_words_are_told_before_the_commit(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    # who reads notices at the next sign of life that the test is over
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.2)

    def before(number: int) -> None:
        if number == HELD:
            assert go_on.wait(PATIENCE)

    with ExitStack() as stack:
        model = stack.enter_context(slow_model(WORDS, '{"text": "All is well."}', before))
        monkeypatch.setenv("AFL_MODEL", model)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        backend = stack.enter_context(open_backend(place, Settings.load(), auth=False))
        url = stack.enter_context(served(backend))
        app = App("demo", place)
        stack.callback(app.close)
        client = app.client()
        client.deploy(FLOW)
        stack.enter_context(app.worker())
        run = client.submit("demo.Report", {"month": "May"})
        until(lambda: httpx.get(f"{url}{API}/runs/{run.id}/turns").json())
        turn = httpx.get(f"{url}{API}/runs/{run.id}/turns").json()[0]["id"]
        early = Reader(url, f"chunks:{turn}", f"turn:{turn}")
        stack.callback(early.close)
        early.wait(lambda told: told.text == "".join(WORDS[:HELD]))
        # nothing of it is committed
        transcript = httpx.get(f"{url}{API}/turns/{turn}").json()
        assert [line["kind"] for line in transcript["lines"]] == ["user"]
        assert not early.told.over
        # one who comes late is told everything
        late = Reader(url, f"chunks:{turn}")
        stack.callback(late.close)
        late.wait(lambda told: told.text == "".join(WORDS[:HELD]))
        go_on.set()
        assert run.result("60s") == {"text": "All is well."}
        for reader in (early, late):
            reader.wait(lambda told: told.over)
            assert reader.told.parts == [
                ("assistant", None, "".join(WORDS)),
                ("tool_call", "submit_result", '{"text": "All is well."}'),
            ]
        assert early.told.events >= 2
        # the transcript has the same under the same number
        said = httpx.get(f"{url}{API}/turns/{turn}").json()["lines"][1]
        assert (said["text"], said["request"]) == ("".join(WORDS), early.told.request)


def test_what_is_of_another_tenant_is_not_heard(memory_backend: Backend) -> None:
    kernel = memory_backend.services.persistence.kernel
    turn = kernel.enqueue([TaskSpec("turn", "agent", tenant="a")])[0].id
    topic = {"topic": f"chunks:{turn}"}
    app = create_app(memory_backend)
    other = TestClient(app, headers=token_for(memory_backend, "admin", "b"))
    assert other.get(f"{API}/stream", params=topic).status_code == 404
    assert other.get(f"{API}/turns/{turn}").status_code == 404
    assert TestClient(app).get(f"{API}/stream", params=topic).status_code == 401
    assert other.get(f"{API}/stream", params={"topic": "chunks"}).status_code == 422


class CountedEar(LocalFeed):
    """An ear that knows who listens."""

    def __init__(self) -> None:
        super().__init__()
        self.listening: list[str] = []
        self.is_closed = False

    def listen(self, agent: str, turn: str, hear: Hear) -> Callable[[], None]:
        self.listening.append(turn)
        stop = super().listen(agent, turn, hear)

        def forget() -> None:
            self.listening.remove(turn)
            stop()

        return forget

    def close(self) -> None:
        self.is_closed = True


def say(feed: LiveFeed, turn: str, *pieces: tuple[str, str]) -> None:
    for index, (kind, text) in enumerate(pieces):
        feed.publish(chunk_subject("ann"), Chunk(turn, 1, 0, kind, text, index, index + 1).body())


class TestSpeech:
    def test_it_listens_while_somebody_watches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(speaking, "LINGER_SECONDS", 0.05)
        ear, topic = CountedEar(), Topic("chunks", "t", agent="ann")

        async def watch() -> None:
            speech = Speech(lambda: ear)
            with speech.following([topic], lambda: None):
                with speech.following([topic], lambda: None):
                    assert ear.listening == ["t"]
                await asyncio.sleep(0.2)
                assert ear.listening == ["t"]
            # a page that comes back at once has missed nothing
            say(ear, "t", (START, ""), (CONTENT, "hi"))
            with speech.following([topic], lambda: None) as again:
                assert [each.parts[0].text for each in speech.news([topic], again)] == ["hi"]
            end = asyncio.get_running_loop().time() + PATIENCE
            while ear.listening or not ear.is_closed:
                assert asyncio.get_running_loop().time() < end
                await asyncio.sleep(0.01)
            await speech.end()

        asyncio.run(watch())

    def test_who_reads_slowly_is_told_more_at_a_time(self) -> None:
        ear, topic = LocalFeed(), Topic("chunks", "t", agent="ann")

        async def watch() -> list[ChunkEvent]:
            speech, rings = Speech(lambda: ear), []
            with speech.following([topic], lambda: rings.append(1)) as slow:
                say(ear, "t", (START, ""), *[(CONTENT, "x")] * 5000, (END, ""))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                # one ring for all of it, and one text
                assert rings == [1]
                told = speech.news([topic], slow)
                assert speech.news([topic], slow) == []
            await speech.end()
            return told

        (event,) = asyncio.run(watch())
        assert (event.fresh, event.over) == (True, True)
        assert [part.text for part in event.parts] == ["x" * 5000]

    def test_so_many_turns_are_listened_to_and_no_more(self) -> None:
        ear = CountedEar()
        topics = [Topic("chunks", str(number)) for number in range(201)]

        async def watch() -> None:
            speech = Speech(lambda: ear)
            with speech.following(topics, lambda: None) as follower:
                assert len(ear.listening) == 200
                for topic in topics[199:]:
                    say(ear, topic.id, (START, ""), (CONTENT, "hi"))
                told = speech.news(topics, follower)
                assert [each.topic for each in told] == ["chunks:199"]
            await speech.end()
            assert ear.listening == []

        asyncio.run(watch())
