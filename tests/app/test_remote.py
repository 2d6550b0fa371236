"""`Client` over HTTP: errors as they are on a database, tokens, and answers that get lost."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta

import pytest

from afl import App, Client
from afl.app.errors import BadDatabase
from afl.app.remote.errors import NeedsDatabase, RemoteError, ServerUnavailable, error_of
from afl.app.remote.operations import RemoteOperations
from afl.app.remote.records import decode, encode
from afl.base.errors import AflError
from afl.base.system import SystemIds
from afl.kernel.model import Task, Worker, WorkerId, WorkerSpec
from afl.runtime.driver import Driver
from afl.runtime.entities import Fork, Run
from afl.runtime.errors import (
    BadInputs,
    BadSchedule,
    NotForkable,
    NotSkippable,
    RunConflict,
    RunEnded,
    StillRunning,
    UnknownFacet,
    UnknownProgram,
    UnknownRun,
    UnknownSchedule,
)
from afl.runtime.operations import Operations
from afl.runtime.schedule import Schedule, Times
from afl.runtime.step import WorkflowId
from tests.app.api_server import ApiServer, api_server

FLOW = """namespace demo {
  event facet Greet(name: String) => (text: String)
  workflow Hello(name: String) => (text: String) andThen {
    hello = Greet(name = $.name)
    yield Hello(text = hello.text)
  }
}"""


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with api_server(f"memory:{secrets.token_hex(4)}") as made:
        made.backend.client.deploy(FLOW)
        yield made


@pytest.fixture
def client(server: ApiServer) -> Iterator[Client]:
    with Client(server.url) as made:
        yield made


def _submit(client: Client) -> str:
    return client.submit("demo.Hello", {"name": "ada"}).id


# The same words


def test_remote_operations_are_those_of_a_database() -> None:
    """All of them, but for what workers and tests do."""
    own = {name for name in vars(Operations) if not name.startswith("_")}
    assert own - set(vars(RemoteOperations)) == {"deliver_events"}


def test_records_come_back_as_they_were(server: ApiServer, client: Client) -> None:
    here, there = server.backend.client.operations, client.operations
    run = _submit(client)
    assert there.get(run) == here.get(run)
    assert there.why(run) == here.why(run)
    assert there.tree(run) == here.tree(run)
    assert list(there.tasks(run=run)) == list(here.tasks(run=run))
    assert there.export(run) == here.export(run)
    times = Times(every=timedelta(hours=1, microseconds=0), jitter=timedelta(seconds=3))
    made = Schedule("often", "demo.Hello", times, {"name": "x"})
    assert there.schedules.create(made) == here.schedules.get("often")
    assert list(there.schedules.next("often", 3)) == list(here.schedules.next("often", 3))
    there.schedules.delete("often")
    spec = WorkerSpec(WorkerId("w/1"), "w", handlers=("demo.Greet",), lease=timedelta(seconds=90))
    server.backend.services.persistence.kernel.register(spec)
    (worker,) = there.workers()
    assert isinstance(worker, Worker)
    assert worker.lease == timedelta(seconds=90)


def test_encoding_keeps_all_fields() -> None:
    fork = Fork(WorkflowId("o"), ("0/a",), {"0/a": {"n": [1, {"x": None}]}})
    now = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    run = Run(WorkflowId("r"), "p", "w", {"x": 1.5}, labels={"a": "b"}, fork=fork, created_at=now)
    assert decode(Run, encode(run)) == run
    assert {each.name for each in fields(Task)} >= {"retry", "reason"}


# Errors


def test_errors_are_what_they_are_on_a_database(client: Client) -> None:
    operations = client.operations
    run = _submit(client)
    with pytest.raises(UnknownRun, match="`afl runs list` shows the runs"):
        operations.get("01a1dfff-d2b3-763c-ac99-ccb012c58f3f")
    with pytest.raises(UnknownFacet, match=r"Did you mean `demo\.Hello`"):
        client.submit("demo.Hallo")
    with pytest.raises(BadInputs, match="name"):
        client.submit("demo.Hello")
    with pytest.raises(UnknownProgram):
        client.submit("demo.Hello", {"name": "x"}, program="none")
    with pytest.raises(BadInputs, match="has passed already"):
        client.submit("demo.Hello", {"name": "x"}, deadline=datetime(2020, 1, 1, tzinfo=UTC))
    with pytest.raises(StillRunning):
        client.run(run).result("0s")
    client.run(run).cancel(force=True)
    with pytest.raises(RunEnded, match="canceled already"):
        client.run(run).pause()
    client.submit("demo.Hello", {"name": "x"}, key="one")
    with pytest.raises(RunConflict):
        client.submit("demo.Hello", {"name": "x"}, key="one", conflict="reject")
    with pytest.raises(UnknownSchedule):
        client.schedules.pause("demo/none")
    with pytest.raises(BadSchedule):
        client.schedules.create("bad", "demo.Hello", {"name": "x"}, cron="every day")
    with pytest.raises(AflError):
        operations.redrive("01a1dfff-d2b3-763c-ac99-ccb012c58f3f")


def test_an_error_by_its_code() -> None:
    assert type(error_of("runtime.not_forkable", "No.")) is NotForkable
    unknown = error_of("server.of_tomorrow", "No.")
    assert (type(unknown), unknown.message) == (RemoteError, "No.")


def test_steps_are_answered(server: ApiServer, client: Client) -> None:
    driver = Driver(server.backend.services.persistence, lambda task: None, SystemIds())
    operations = client.operations
    done, failed, skipped = (_submit(client) for _ in range(3))
    driver.drive()
    with pytest.raises(BadInputs, match="text"):
        operations.continue_step(done, "0/hello", {"text": 3})
    assert operations.continue_step(done, "0/hello", {"text": "hi"})
    assert not operations.continue_step(done, "0/hello", {"text": "ho"})
    assert operations.fail_step(failed, "0/hello", "It broke.", "Broken")
    with pytest.raises(NotSkippable):
        operations.skip(skipped, "0/hello")
    driver.drive()
    assert client.run(done).result("0s") == {"text": "hi"}
    assert (operations.get(failed).error or {})["type"] == "Broken"


def test_what_a_server_does_not_have(client: Client) -> None:
    with pytest.raises(NeedsDatabase, match="the database itself"):
        client.operations.persistence.match_events()
    with pytest.raises(BadDatabase, match="need the database itself"):
        client.cost()


def test_a_worker_needs_the_database(server: ApiServer) -> None:
    with pytest.raises(BadDatabase, match="A worker needs the database itself"):
        App("demo", server.url).worker()


# Who asks


def test_tokens_and_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    with api_server(f"memory:{secrets.token_hex(4)}", auth=True) as server:
        url = server.url
        with Client(url) as nobody, pytest.raises(AflError, match="token"):
            nobody.runs()
        with Client(url, token=server.token("developer")) as developer:
            developer.deploy(FLOW)
        monkeypatch.setenv("AFL_DATABASE_URL", url)
        monkeypatch.setenv("AFL_TOKEN", server.token("operator", "a"))
        with Client.from_env() as ours:
            run = _submit(ours)
            assert ours.run(run).get().tenant == "a"
            with pytest.raises(AflError, match="developer"):
                ours.deploy(FLOW)
            with pytest.raises(AflError, match="whole installation"):
                ours.operations.workers()
        with Client(url, token=server.token("admin", "b")) as theirs:
            assert theirs.runs() == []
            with pytest.raises(UnknownRun):
                theirs.run(run)
            for look in ("tree", "why", "superseded", "export", "cancel"):
                with pytest.raises(UnknownRun):
                    getattr(theirs.operations, look)(run)
            with pytest.raises(UnknownRun):
                theirs.operations.persistence.get_logs(WorkflowId(run))


# What gets lost


@contextmanager
def _losing(target: str, answers: int) -> Iterator[str]:
    """A way to a server on which the first answers to POST requests get lost."""
    host, port = target.removeprefix("http://").split(":")
    left = [answers]
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            with near, socket.create_connection((host, int(port))) as far:
                near.settimeout(20)
                request = _message(near)
                far.sendall(request.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
                answer = b"".join(iter(lambda: far.recv(65536), b""))
                if request.startswith(b"POST") and left[0]:
                    left[0] -= 1
                    continue
                near.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        # wakes the one that waits for a connection
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _message(near: socket.socket) -> bytes:
    found = b""
    while b"\r\n\r\n" not in found:
        found += near.recv(65536)
    head, _, body = found.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    sizes = [int(each.split(b":")[1]) for each in lines if each.startswith(b"content-length")]
    while sizes and len(body) < sizes[0]:
        more = near.recv(65536)
        found, body = found + more, body + more
    return found


def test_an_action_whose_answer_is_lost_is_done_once(server: ApiServer, client: Client) -> None:
    run = _submit(client)
    client.run(run).cancel(force=True)
    before = len(client.runs(limit=500))
    with _losing(server.url, 2) as url, Client(url) as unlucky:
        made = unlucky.run(run).rerun()
    assert made.id != run
    assert len(client.runs(limit=500)) == before + 1


def test_a_submit_without_a_key_is_not_repeated(server: ApiServer, client: Client) -> None:
    before = len(client.runs(limit=500))
    lost = pytest.raises(ServerUnavailable, match="cannot be reached")
    with _losing(server.url, 1) as url, Client(url) as unlucky, lost:
        _submit(unlucky)
    assert len(client.runs(limit=500)) == before + 1
    with _losing(server.url, 1) as url, Client(url) as unlucky:
        unlucky.submit("demo.Hello", {"name": "x"}, key="lost")
    assert len(client.runs(limit=500)) == before + 2


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    away = pytest.raises(ServerUnavailable, match="afl serve")
    with Client(f"http://127.0.0.1:{port}") as client, away:
        client.runs()
