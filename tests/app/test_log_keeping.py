"""The log lines of a worker: of handlers and of commands, through the database and through NATS."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from afl.app.context import Context
from afl.app.engines import known_engine
from afl.app.log_handler import HandlerLogs
from afl.app.log_keeping import CannotKeepLogs, LogKeeping, default_folder, secrets_of
from afl.app.log_reading import stored_logs
from afl.app.migrating import migrate
from afl.base.settings import Settings
from afl.kernel.memory import MemoryStore
from afl.kernel.model import Json, TaskSpec
from afl.kernel.port import Store
from afl.logs.memory_store import MemoryLogStore
from afl.logs.model import Line
from afl.logs.reading import Shown
from afl.logs.spool import Bounds
from afl.runtime.handler_table import HandlerTable, Invocation
from afl.testing.clock import SequentialIds, VirtualClock
from afl.turns import cards
from afl.turns.journal import ResultStatus, Thought, ToolResult
from afl.turns.model import Price, Reply, Text, ToolUse
from afl.turns.sayings import say as say_turn
from tests.chaos.nats_server import PrivateNats, nats_is_installed
from tests.kernel.mongo import databases as mongo
from tests.kernel.postgres import databases as postgres
from tests.logs.records import RUN, gaps_of, lines_of, read, slices_of, spool_in

LONG = timedelta(seconds=60)


def invocation(run: str = RUN, attempt: int = 1) -> Invocation:
    store = MemoryStore(VirtualClock(), SequentialIds())
    (task,) = store.enqueue([TaskSpec("event", "demo.Work")])
    given: dict[str, Json] = {"run": run, "step": "0/work", "facet": "demo.Work", "params": {}}
    return Invocation(replace(task, input=given), {}, attempt)


@pytest.fixture(scope="module", params=[postgres, mongo], ids=["postgres", "mongo"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if not request.param.server_is_there():
        pytest.skip("there is no database to test with")
    with request.param.empty_database() as made:
        migrate(made)
        yield made


@pytest.fixture
def spoken(tmp_path: Path) -> Iterator[HandlerLogs]:
    """What handlers say goes to a spool while a test lasts."""
    log = logging.getLogger("afl.handler")
    before = log.level
    log.setLevel(logging.DEBUG)
    kept = HandlerLogs(spool_in(tmp_path))
    kept.attach()
    yield kept
    kept.detach()
    log.setLevel(before)
    kept._spool.close()
    kept._spool.release()


def shown(logs: HandlerLogs) -> list[Shown]:
    store = MemoryLogStore()
    store.append(slices_of(logs._spool, store))
    return read(store)


def test_what_a_turn_does_travels_the_same_road(
    spoken: HandlerLogs, capsys: pytest.CaptureFixture[str]
) -> None:
    task = invocation(attempt=2).task
    reply = Reply((Text("Let me look."), ToolUse("1", "Fetch", '{"n": 1}')), "tool_call", "m:x")
    thought = Thought(0, reply, Price(Decimal("0.1"), "v"), "sha256:0")
    answer = ToolResult(0, 1, "k", "Fetch", "1", ResultStatus.ERROR, "y" * 600)
    say_turn(task, [cards.write(thought), cards.write(answer)])
    told = shown(spoken)
    assert [(each.key.path, each.key.name) for each in told] == [("0/work", "log")] * 3
    said, called, answered = (line.decode() for line in lines_of(told))
    assert said == "agent: Let me look."
    assert called == 'agent: Fetch({"n": 1})'
    assert answered.startswith("tool: Fetch answers error: yyy")
    assert len(answered) < 520
    assert [each.item.level for each in told if isinstance(each.item, Line)] == [20, 20, 30]
    assert capsys.readouterr().err == ""


def test_a_handler_has_a_stream_that_ends_with_it(spoken: HandlerLogs) -> None:
    table = HandlerTable()

    def work(invoked: Invocation) -> dict[str, object]:
        context = Context(invoked)
        context.log.info("hello %s", "you")
        context.progress(1, 2, "half")
        return {}

    async def wait(invoked: Invocation) -> dict[str, object]:
        await asyncio.sleep(0)
        Context(invoked).log.error("from a coroutine")
        return {}

    table.register("work", work)  # type: ignore[arg-type]
    table.register("wait", wait)  # type: ignore[arg-type]
    kept = table.changed(spoken.around)
    for name, attempt in (("work", 1), ("work", 2), ("wait", 3)):
        handler = kept.find(name)
        assert handler is not None
        answer = handler.function(invocation(attempt=attempt))
        if not isinstance(answer, dict):
            asyncio.run(answer)  # type: ignore[arg-type]
    lines = shown(spoken)
    assert [
        (each.key.attempt, data) for each, data in zip(lines, lines_of(lines), strict=True)
    ] == [
        (1, b"hello you"),
        (1, b"1 of 2 done: half"),
        (2, b"hello you"),
        (2, b"1 of 2 done: half"),
        (3, b"from a coroutine"),
    ]
    assert spoken._streams == {}
    store = MemoryLogStore()
    store.append(slices_of(spoken._spool, store))
    assert all(stream.closed_us is not None for stream in store.streams(RUN))


def test_who_speaks_too_late_is_heard(spoken: HandlerLogs) -> None:
    context = Context(invocation())
    context.log.warning("nobody waits for this")
    context.log.warning("nor for\nthis")
    assert lines_of(shown(spoken)) == [b"nobody waits for this", b"nor for", b"this"]
    assert gaps_of(shown(spoken)) == []


def test_a_handler_never_fails_by_what_it_says(
    spoken: HandlerLogs, capsys: pytest.CaptureFixture[str]
) -> None:
    context = Context(invocation())
    said = {"msg": "lone \ud800 surrogate", "levelno": logging.INFO}
    spoken.emit(logging.makeLogRecord({**said, "run": RUN, "step": "0", "attempt": 1}))
    spoken._spool.close()
    context.log.info("after the end")  # told on standard error, as logging does
    assert "SpoolClosed" in capsys.readouterr().err
    assert lines_of(shown(spoken)) == [b"lone ? surrogate"]


def test_what_no_line_may_show() -> None:
    settings = Settings(
        database_url="postgresql://afl:one%20two@host/db", nats_url="nats://nobody", redis_url=None
    )
    variables = {"GITHUB_TOKEN": "three", "Db_Password": "four", "PATH": "five", "MONKEY": "six"}
    assert secrets_of(settings, variables) == ["one two", "three", "four"]


def test_the_folder_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert default_folder() == Path("/state/afl/spool")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert default_folder() == Path.home() / ".local/state/afl/spool"


@contextmanager
def store_at(url: str) -> Iterator[Store]:
    engine = known_engine(url)
    with engine.connect(engine.persistence, url, max_size=2) as persistence:
        yield persistence.kernel


def keeping(url: str, folder: Path, settings: Settings, kernel: Store) -> LogKeeping:
    return LogKeeping(url, kernel, settings, folder, "worker", bounds=Bounds(sync_seconds=0.05))


def say(logs: LogKeeping, run: str) -> None:
    """A command with two pipes, each read by a thread."""
    with logs.lines(invocation(run)) as sink:

        def pump(stream: str) -> None:
            for number in range(100):
                data = b"%s %d" % (stream.encode(), number)
                sink.line(stream, data, partial=False, time=datetime.now(UTC))

        threads = [threading.Thread(target=pump, args=(name,)) for name in ("stdout", "stderr")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("road", ["direct", "nats"])
def test_lines_of_commands_are_stored(url: str, tmp_path: Path, road: str) -> None:
    if road == "nats" and not nats_is_installed():
        pytest.skip("there is no nats-server to start")
    with store_at(url) as kernel:
        if road == "nats":
            with closing(PrivateNats(tmp_path / "nats")) as nats:
                settings = Settings(nats_url=nats.url)
                logs = keeping(url, tmp_path / "spools", settings, kernel)
                logs.start()
                say(logs, road)
                assert logs.stop(LONG)
        else:
            logs = keeping(url, tmp_path / "spools", Settings(), kernel)
            logs.start()
            say(logs, road)
            assert logs.stop(LONG)
    with stored_logs(url) as store:
        found = read(store, road)
        assert all(stream.closed_us for stream in store.streams(road))
    assert gaps_of(found) == []
    for name in ("stdout", "stderr"):
        its = lines_of([each for each in found if each.key.name == name])
        assert its == [b"%s %d" % (name.encode(), number) for number in range(100)]
    assert list((tmp_path / "spools").glob("*/*")) == []


def test_a_folder_that_cannot_be_used_is_told(url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        store_at(url) as kernel,
        pytest.raises(CannotKeepLogs, match="--spool"),
    ):
        keeping(url, tmp_path / "file", Settings(), kernel)
