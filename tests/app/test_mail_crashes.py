"""Workers that die between any two steps of sending and receiving: nothing is lost, and nothing is
done twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from afl import App
from afl.app import mailroom
from afl.app.agents import Agents
from afl.app.mailing import mailboxes
from afl.app.services import Services
from afl.base.settings import Settings
from afl.bridges import mail_room
from afl.messaging.coordinator import MessageCoordinator
from afl.messaging.models import AgentId, MessageType
from tests.app.mailing import answer, at_mail, message, post, received, sent_to, until

FLOW = """\
namespace post {
  event facet Think() prompt { template "x" }

  workflow Tell(to: String) => (id: String) andThen {
    sent = afl.mail.Send(to = $.to, payload = "hello")
    yield Tell(id = sent.message_id)
  }

  workflow Ask(to: String) => (answer: Json) andThen {
    asked = afl.mail.Ask(to = $.to, payload = "what?")
    yield Ask(answer = asked.payload)
  }
}
"""
AT_ONCE = timedelta(0)
#: What is in the memory of a process dies with it.
pytestmark = pytest.mark.parametrize("mail_place", ["postgres", "mongo", "redis"], indirect=True)
ROOT = Path(__file__).parents[2]


class Fuse:
    """Mailboxes at which somebody gets stuck, before or after one thing was done there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, method: str, *, is_done: bool) -> None:
        self.blown = threading.Event()
        self._method = method
        self._is_done = is_done
        monkeypatch.setattr(mailroom, "mailboxes", self._mailboxes)

    @asynccontextmanager
    async def _mailboxes(self, services: Services, settings: Settings) -> AsyncIterator[object]:
        async with mailboxes(services, settings) as mail:
            yield _Fused(mail, self)

    async def blow(self, mail: MessageCoordinator, *args: object) -> None:
        if self._is_done:
            await getattr(mail, self._method)(*args)
        self.blown.set()
        await asyncio.Event().wait()

    def guards(self, method: str) -> bool:
        return method == self._method


class _Fused:
    def __init__(self, mail: MessageCoordinator, fuse: Fuse) -> None:
        self._mail = mail
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever mailboxes have
        if not self._fuse.guards(name):
            return getattr(self._mail, name)
        return lambda *args: self._fuse.blow(self._mail, *args)


@pytest.fixture
def app(mail_place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    (tmp_path / "model.json").write_text('{"replies": [{"text": "done"}]}', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AFL_MODEL", "scripted:model.json")
    monkeypatch.setattr(mail_room, "_VISIBILITY_SECONDS", 0.5)
    made = App("post", mail_place)
    made.client().deploy(FLOW)
    yield made
    made.close()


def dies(app: App, monkeypatch: pytest.MonkeyPatch, method: str, *, is_done: bool) -> None:
    """A worker that dies at the mailboxes, before or after this was done there."""
    with monkeypatch.context() as patched:
        fuse = Fuse(patched, method, is_done=is_done)
        worker = app.worker()
        worker.start()
        try:
            assert fuse.blown.wait(30)
        finally:
            worker.stop(AT_ONCE)


@pytest.mark.parametrize("is_done", [False, True])
def test_a_worker_dies_while_it_sends(
    app: App, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    run = app.client().submit("post.Tell", {"to": "clerk"})
    dies(app, monkeypatch, "send_message", is_done=is_done)
    assert sent_to(app, "clerk") == int(is_done)
    with app.worker():
        id_ = run.result("30s")["id"]
    assert received(app, "clerk").message_id == id_
    assert sent_to(app, "clerk") == 1


@pytest.mark.parametrize("is_done", [False, True])
def test_a_worker_dies_while_it_asks(
    app: App, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    run = app.client().submit("post.Ask", {"to": "clerk"})
    dies(app, monkeypatch, "send_message", is_done=is_done)
    with app.worker():
        answer(app, received(app, "clerk"), {"n": 1})
        assert run.result("30s") == {"answer": {"n": 1}}
    assert sent_to(app, "clerk") == 1


@pytest.mark.parametrize("is_done", [False, True])
def test_a_mailroom_dies_between_the_answer_and_its_receipt(
    app: App, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    run = app.client().submit("post.Ask", {"to": "clerk"})
    with app.worker():
        question = received(app, "clerk")
        until(lambda: "waits for the answer" in run.why().sentence)
    assert question.reply_to is not None
    replies = question.reply_to
    answer(app, question, {"n": 1})
    dies(app, monkeypatch, "ack", is_done=is_done)
    with app.worker():
        assert run.result("30s") == {"answer": {"n": 1}}
        until(lambda: at_mail(app, lambda mail: mail.counts(replies)).acked == 1)


@pytest.mark.parametrize("kind", [MessageType.EVENT, MessageType.REQUEST])
def test_a_mailroom_dies_between_a_turn_and_the_receipt(
    app: App, monkeypatch: pytest.MonkeyPatch, kind: MessageType
) -> None:
    agents, writer = Agents(app.services), AgentId(type="writer")
    agents.set("writer")
    post(app, message("writer", {"instruction": "write"}, kind))
    dies(app, monkeypatch, "ack", is_done=False)
    with app.worker():
        until(lambda: at_mail(app, lambda mail: mail.counts(writer)).acked == 1)
        if kind is MessageType.REQUEST:
            assert received(app, "tester").payload == {"text": "done"}
        until(lambda: [turn.outcome for turn in agents.turns("writer")] == ["success"])
    assert sent_to(app, "tester") == int(kind is MessageType.REQUEST)


@pytest.mark.parametrize("is_done", [False, True])
def test_a_worker_dies_while_it_responds(
    app: App, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    agents = Agents(app.services)
    agents.set("writer")
    post(app, message("writer", {"instruction": "write"}, MessageType.REQUEST))
    dies(app, monkeypatch, "send_message", is_done=is_done)
    with app.worker():
        assert received(app, "tester").payload == {"text": "done"}
        until(lambda: letters_open(app) == 0)
    assert sent_to(app, "tester") == 1
    assert len(agents.turns("writer")) == 1


def letters_open(app: App) -> int:
    """How many messages wait for the end of a turn."""
    tasks = app.services.persistence.kernel.find_tasks(limit=1000)
    return sum(task.name == "afl:letter" and task.outcome is None for task in tasks)


def test_a_killed_process_has_sent_once(
    app: App, mail_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # workers without models serve mail too
    monkeypatch.delenv("AFL_MODEL")
    run = app.client().submit("post.Tell", {"to": "clerk"})
    command = [sys.executable, "-m", "tests.app.mail_process", mail_place]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "sent\n"
        finally:
            process.kill()
    with app.worker():
        assert received(app, "clerk").message_id == run.result("30s")["id"]
    assert sent_to(app, "clerk") == 1
