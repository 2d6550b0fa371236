"""What watchers of agents see: the subjects, and feeds in memory or without anybody who listens.

Nothing depends on a feed: what is lost is lost. `nats_feed` is the one between processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from urllib.parse import quote

from afl.kernel.model import Json, Task

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
