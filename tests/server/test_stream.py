"""The stream of changes: over real HTTP, cut off and taken up again, for those who may."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from afl.base.settings import Settings
from afl.kernel.model import (
    CardSpec,
    ClaimRequest,
    Commit,
    Continue,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.logs.model import StreamKey
from afl.logs.postgres_store import PostgresLogStore
from afl.server.application import API, create_app
from afl.server.backend import Backend
from afl.server.serving import open_backend
from afl.server.watching.marks import Marks
from afl.server.watching.topics import Topic
from afl.server.watching.watcher import Listener, Watcher, known_marks
from tests.logs.records import slices_of, spool_in
from tests.server.calling import token_for
from tests.server.processes import ServerProcess, server_process
from tests.server.shop import Shop, pay

#: Much longer than anything here takes.
PATIENCE = 60

ASKING = """
namespace shop {
  event facet Agree() => (yes: Boolean) with Human(group = "shop")
  workflow Ask() => (yes: Boolean) andThen {
    it = Agree()
    yield Ask(yes = it.yes)
  }
}
"""


@dataclass(frozen=True, slots=True)
class Event:
    id: str
    topic: str
    mark: str


@contextmanager
def events(url: str, *topics: str, last: str | None = None) -> Iterator[Iterator[Event]]:
    """The events of a stream as they come; it is cut afterwards."""
    headers = {} if last is None else {"Last-Event-ID": last}
    params = {"topic": topics}
    path = f"{url}{API}/stream"
    with httpx.stream("GET", path, params=params, headers=headers, timeout=PATIENCE) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _events(answer.iter_lines())


def _events(lines: Iterator[str]) -> Iterator[Event]:
    fields: dict[str, str] = {}
    end = time.monotonic() + PATIENCE
    for line in lines:
        # signs of life come also when nothing else does
        assert time.monotonic() < end, "what is waited for is not told"
        name, colon, value = line.partition(": ")
        if colon:
            fields[name] = value
        elif not line and "data" in fields:
            assert fields["event"] == "mark"
            yield Event(fields["id"], **json.loads(fields["data"]))
            fields = {}


def take(found: Iterator[Event], count: int) -> list[Event]:
    return [next(found) for _ in range(count)]


@pytest.fixture(scope="module")
def server(server_database: str) -> Iterator[ServerProcess]:
    with server_process(server_database) as server:
        yield server


@pytest.fixture
def shop(empty_url: str) -> Iterator[Shop]:
    with open_backend(empty_url, Settings()) as backend:
        yield Shop(backend)


class TestOverHttp:
    def test_it_tells_what_changes(self, server: ServerProcess, shop: Shop) -> None:
        operations = shop.backend.client.operations
        one, two = shop.run(drive=False).id, shop.run(drive=False).id
        topics = (f"run:{one}", f"run:{two}", "inbox", "dev")
        with events(server.url, *topics) as found:
            first = {each.topic: each.mark for each in take(found, len(topics))}
            assert set(first) == set(topics)
            operations.pause(one)
            changed = next(found)
            assert changed.topic == f"run:{one}"
            assert changed.mark != first[changed.topic]
            operations.pause(two)
            assert next(found).topic == f"run:{two}"

    def test_who_was_cut_off_is_told_exactly_what_has_changed(
        self, server: ServerProcess, shop: Shop
    ) -> None:
        operations = shop.backend.client.operations
        runs = [shop.run(drive=False).id for _ in range(3)]
        topics = [*(f"run:{run}" for run in runs), "inbox", "runs"]
        with events(server.url, *topics) as found:
            known = take(found, len(topics))[-1].id
        operations.pause(runs[1])
        with events(server.url, *topics, last=known) as found:
            told = take(found, 2)
            assert {each.topic for each in told} == {topics[1], "runs"}
            # whatever else were told would have come by now: it was read with these
            operations.resume(runs[1])
            again = take(found, 2)
            assert {each.topic for each in again} == {topics[1], "runs"}
            known = again[-1].id
        operations.cancel(runs[0])
        with events(server.url, *topics[:3], last=known) as found:
            assert next(found).topic == topics[0]
            operations.cancel(runs[2])
            assert next(found).topic == topics[2]

    def test_an_id_of_nowhere_says_that_nothing_is_known(
        self, server: ServerProcess, shop: Shop
    ) -> None:
        with events(server.url, "runs", "dev", last="what is this?") as found:
            assert {each.topic for each in take(found, 2)} == {"runs", "dev"}

    def test_lines_of_a_log_are_news(
        self, server: ServerProcess, shop: Shop, tmp_path: Path
    ) -> None:
        run = shop.run(drive=False).id
        logs = shop.backend.logs
        assert isinstance(logs, PostgresLogStore)
        with events(server.url, f"run:{run}") as found:
            take(found, 1)
            spool = spool_in(tmp_path)
            spool.open(StreamKey(run, "0/paid", 1, "stdout")).line(b"hello")
            logs.append(slices_of(spool, logs))
            assert next(found).topic == f"run:{run}"

    def test_a_turn_is_told_as_it_goes(self, server: ServerProcess, shop: Shop) -> None:
        turn = _turn(shop.backend)
        with events(server.url, f"turn:{turn}") as found:
            take(found, 1)
            kernel = shop.backend.services.persistence.kernel
            kernel.register(WorkerSpec(WorkerId("w"), "w"))
            (claim,) = kernel.claim(ClaimRequest(WorkerId("w"), ("agent",)))
            assert next(found).topic == f"turn:{turn}"
            kernel.commit([Commit(claim.fence, Continue(), cards=(CardSpec("note", "hello"),))])
            assert next(found).topic == f"turn:{turn}"

    def test_a_server_that_ends_lets_go(self, server_database: str) -> None:
        with server_process(server_database) as server:
            with events(server.url, "runs") as found:
                next(found)
                server.process.send_signal(signal.SIGTERM)
                assert list(found) == []
            assert server.process.wait(PATIENCE) in (0, -signal.SIGTERM)


def _turn(backend: Backend, tenant: str = "default", run: str | None = None) -> str:
    spec = TaskSpec("turn", "agent", tenant=tenant, input=None if run is None else {"run": run})
    return backend.services.persistence.kernel.enqueue([spec])[0].id


class TestAccess:
    def test_topics_that_are_none_are_refused(self, admin: TestClient) -> None:
        for topic in ("weather", "run", "run:", "runs:x", "inbox:1"):
            refused = admin.get(f"{API}/stream", params={"topic": topic})
            assert (refused.status_code, refused.json()["code"]) == (422, "server.bad_form")
        many = {"topic": [f"run:{number}" for number in range(51)]}
        assert admin.get(f"{API}/stream", params=many).status_code == 422
        assert admin.get(f"{API}/stream").status_code == 422

    def test_what_is_of_another_tenant_is_not_there(self, memory_backend: Backend) -> None:
        shop = Shop(memory_backend)
        run, turn = shop.run(tenant="a").id, _turn(memory_backend, "a")
        called = _turn(memory_backend, "b", run)
        headers = token_for(memory_backend, "admin", "b")
        client = TestClient(create_app(memory_backend), headers=headers)
        names = (f"run:{run}", f"turn:{turn}", f"turn:{called}", "run:nothing", "turn:nothing")
        for topic in names:
            assert client.get(f"{API}/stream", params={"topic": topic}).status_code == 404
        nobody = TestClient(create_app(memory_backend))
        assert nobody.get(f"{API}/stream", params={"topic": "runs"}).status_code == 401


class TestMarks:
    def test_they_change_with_what_they_name(self, backend: Backend) -> None:
        shop, marks = Shop(backend, {"Pay": pay}), Marks(backend)
        run = shop.run(drive=False)
        kernel = backend.services.persistence.kernel
        topics = [Topic("run", run.id), Topic("runs"), Topic("home"), Topic("workers")]

        def changed() -> set[str]:
            before = dict(seen)
            seen.update({topic.kind: marks.of(topic) for topic in topics})
            return {kind for kind, mark in seen.items() if before[kind] != mark}

        # a sign of life is news after a while, and no test waits for that
        seen = {topic.kind: marks.of(topic) for topic in topics}
        shop.drive()
        assert {"run", "runs", "home"} <= changed()
        assert changed() <= {"workers", "home"}
        # who is there is part of why a run waits
        kernel.register(WorkerSpec(WorkerId("w"), "w", handlers=("Pack",)))
        assert changed() == {"run", "workers", "home"}
        kernel.claim(ClaimRequest(WorkerId("w"), ("Pack",)))
        assert changed() >= {"run", "workers"}
        backend.client.operations.cancel(run.id)
        assert changed() >= {"run", "runs", "home"}

    def test_what_people_are_asked_for_is_of_their_tenant(self, backend: Backend) -> None:
        shop, marks = Shop(backend), Marks(backend)
        backend.client.deploy(ASKING, "asking")
        own, other = Topic("inbox", tenant="a"), Topic("inbox", tenant="b")
        before = marks.of(own), marks.of(other)
        backend.client.operations.submit("shop.Ask", program="asking", tenant="a")
        shop.drive()
        assert marks.of(own) != before[0]
        assert marks.of(other) == before[1]

    def test_who_is_alive_is_read_once_for_many_runs(self, backend: Backend) -> None:
        shop, marks = Shop(backend), _Looks(backend)
        topics = [Topic("run", shop.run(drive=False).id) for _ in range(3)]
        apart = [marks.of(topic) for topic in topics]
        assert marks.looks == 3
        with marks.together():
            assert [marks.of(topic) for topic in topics] == apart
        assert marks.looks == 4
        kernel = backend.services.persistence.kernel
        kernel.register(WorkerSpec(WorkerId("w"), "w", handlers=("Pack",)))
        with marks.together():
            assert not {marks.of(topic) for topic in topics} & set(apart)
        assert marks.looks == 5


class _Looks(Marks):
    """Marks that count how often they look who is alive."""

    looks = 0

    def _alive(self) -> str:
        self.looks += 1
        return super()._alive()


class _Counted(Marks):
    """Marks that are counted as they are read."""

    reads = 0

    def of(self, topic: Topic) -> str:
        self.reads += 1
        return super().of(topic)


class TestWatcher:
    def test_one_reads_for_all_and_none_for_nobody(self, memory_backend: Backend) -> None:
        shop, marks = Shop(memory_backend), _Counted(memory_backend)
        topic = Topic("run", shop.run().id)

        async def watch() -> None:
            watcher = Watcher(marks)
            with ExitStack() as stack:
                listening = [
                    stack.enter_context(watcher.listening([topic], {})) for _ in range(100)
                ]
                heard = [await each.news(PATIENCE) for each in listening]
                memory_backend.client.operations.pause(topic.id)
                after = [await each.news(PATIENCE) for each in listening]
                assert [told == heard[0] for told in heard] == [True] * 100
                assert [told == after[0] for told in after] == [True] * 100
                assert heard[0] != after[0]
                assert marks.reads < len(listening)
            # nobody watches: what reads the marks ends
            others = asyncio.all_tasks() - {asyncio.current_task()}
            _, left = await asyncio.wait(others, timeout=PATIENCE)
            assert not left
            watcher.end()

        asyncio.run(watch())

    def test_who_listens_slowly_is_told_the_last_mark_alone(self) -> None:
        async def listen() -> None:
            listener = Listener([Topic("runs"), Topic("home")], {})
            for number in range(1000):
                listener.tell("runs", f"{number:012x}")
            listener.tell("home", "0" * 12)
            told = await listener.news(PATIENCE)
            assert told is not None
            assert [(topic, mark) for topic, mark, _ in told] == [
                ("runs", f"{999:012x}"),
                ("home", "0" * 12),
            ]
            again = Listener([Topic("home"), Topic("runs")], known_marks(told[-1][2]))
            again.tell("runs", f"{999:012x}")
            assert await again.news(0.01) == []

        asyncio.run(listen())
