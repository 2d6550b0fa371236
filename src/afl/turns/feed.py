"""What watchers of agents see: the subjects, and feeds within this process.

Nothing depends on a feed: what is lost is lost. `nats_feed`, `postgres_feed` and `mongo_feed` are
those between processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from urllib.parse import quote

from afl.kernel.model import Json, Task
from afl.turns.chunks import Chunk, OpenAnswers, read_chunk
from afl.turns.ports import Hear

Published = tuple[str, dict[str, Json]]


def token(name: str) -> str:
    """A name as one token of a subject: dots, stars and blanks are escaped as in an address."""
    return quote(name, safe="-_:@+=,!$~").replace(".", "%2E")


def state_subject(agent: str) -> str:
    return f"evt.agent.{token(agent)}.state"


def step_subject(agent: str) -> str:
    return f"evt.agent.{token(agent)}.step"


def task_subject(agent: str) -> str:
    return f"evt.agent.{token(agent)}.task"


def chunk_subject(agent: str) -> str:
    return f"str.agent.{token(agent)}.chunk"


def wakeup_subject(target: str) -> str:
    return f"cmd.agent.{token(target)}.wakeup"


def agent_of(task: Task) -> str:
    """Under which name a turn is watched: its agent, or the facet that it serves."""
    given = task.input.get("agent") if isinstance(task.input, dict) else None
    return given if isinstance(given, str) and given else task.name


class SilentFeed:
    """A feed that nobody listens to."""

    def publish(self, subject: str, body: dict[str, Json]) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class Hearers:
    """Who listens to which turns. Threads may share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hearers: dict[str, list[Hear]] = {}

    def add(self, turn: str, hear: Hear) -> Callable[[], None]:
        """What is returned takes it away again."""
        with self._lock:
            self._hearers.setdefault(turn, []).append(hear)
        return partial(self._remove, turn, hear)

    def turns(self) -> list[str]:
        with self._lock:
            return list(self._hearers)

    def tell(self, chunk: Chunk) -> None:
        with self._lock:
            listening = tuple(self._hearers.get(chunk.turn, ()))
        for hear in listening:
            hear(chunk)

    def _remove(self, turn: str, hear: Hear) -> None:
        with self._lock:
            hearers = self._hearers.get(turn, [])
            if hear in hearers:
                hearers.remove(hear)
            if not hearers:
                self._hearers.pop(turn, None)


class LocalFeed:
    """A feed and its ear within this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = OpenAnswers()
        self._hearers = Hearers()

    def publish(self, subject: str, body: dict[str, Json]) -> None:
        if (chunk := read_chunk(body)) is None:
            return
        # in one go, or one who begins to listen meanwhile would miss it or hear it twice
        with self._lock:
            self._open.note(chunk)
            self._hearers.tell(chunk)

    def listen(self, agent: str, turn: str, hear: Hear) -> Callable[[], None]:
        with self._lock:
            for chunk in self._open.so_far(turn):
                hear(chunk)
            return self._hearers.add(turn, hear)

    def close(self) -> None:
        """Others in this process may still use it."""


class MemoryFeed:
    """A feed that keeps what is published. Threads may share one."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._published: list[Published] = []

    def publish(self, subject: str, body: dict[str, Json]) -> None:
        with self._condition:
            self._published.append((subject, body))
            self._condition.notify_all()

    def published(self, subject: str | None = None) -> list[Published]:
        """Everything so far, or what was published under one subject."""
        with self._condition:
            return [each for each in self._published if subject in (None, each[0])]

    def wait_for(self, condition: Callable[[list[Published]], bool], seconds: float) -> bool:
        """Waits until what was published is as wanted; tells whether it is."""
        with self._condition:
            return self._condition.wait_for(lambda: condition(self._published), seconds)

    def close(self) -> None:
        """What was published can still be read."""
