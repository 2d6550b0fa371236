"""The watcher of a server: reads the marks of what is watched, and tells what has changed."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from afl.base.errors import AflError
from afl.server.watching.marks import WIDTH, Marks
from afl.server.watching.topics import Topic

_log = logging.getLogger("afl.server")
_KEY_WIDTH = 8
#: How many listen to one server at once.
_MOST = 2000


class Listener:
    """Somebody who watches some topics.

    Of each topic only the last mark waits to be told. So one who listens slowly is told less, and
    keeps nobody waiting.
    """

    def __init__(self, topics: Sequence[Topic], known: Mapping[str, str]) -> None:
        """`known` are marks that the listener has heard of before, by the keys of topics."""
        self._keys = {topic.name: _key(topic.name) for topic in topics}
        self._known = {key: known[key] for key in self._keys.values() if key in known}
        self._waiting: dict[str, str] = {}
        self._bell = asyncio.Event()
        self._is_over = False

    def tell(self, topic: str, mark: str) -> None:
        """Has the listener hear of a mark, unless it is known."""
        if self._known.get(self._keys[topic]) == mark:
            self._waiting.pop(topic, None)
        else:
            self._waiting[topic] = mark
            self._bell.set()

    def ring(self) -> None:
        """There is something to hear that has no mark."""
        self._bell.set()

    def end(self) -> None:
        """There is nothing more to hear."""
        self._is_over = True
        self._bell.set()

    async def news(self, seconds: float) -> list[tuple[str, str, str]] | None:
        """Topics and marks that are new, each with an id for all that is known with it; nothing
        if there was none for so long, and None if there is nothing more to come."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._bell.wait(), seconds)
        if self._is_over:
            return None
        self._bell.clear()
        told, self._waiting = self._waiting, {}
        return [(topic, mark, self._learn(topic, mark)) for topic, mark in told.items()]

    def _learn(self, topic: str, mark: str) -> str:
        self._known[self._keys[topic]] = mark
        return ".".join(f"{key}{mark}" for key, mark in self._known.items())


def known_marks(text: str | None) -> dict[str, str]:
    """What an id of `Listener.news` says is known; a text that is none says nothing."""
    found: dict[str, str] = {}
    for part in (text or "").split("."):
        if len(part) == _KEY_WIDTH + WIDTH:
            found[part[:_KEY_WIDTH]] = part[_KEY_WIDTH:]
    return found


def _key(topic: str) -> str:
    return hashlib.blake2b(topic.encode(), digest_size=_KEY_WIDTH // 2).hexdigest()


@dataclass(slots=True)
class _Watched:
    """A topic that somebody watches."""

    due: float = 0.0
    mark: str | None = None
    listeners: set[Listener] = field(default_factory=set)


class Watcher:
    """One for each server, used in its event loop. Marks are read by a thread of its own, those
    of topics that nobody watches not at all."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._watched: dict[Topic, _Watched] = {}
        self._bell = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "afl-watch")
        self._is_over = False
        self._listening = 0

    @property
    def is_full(self) -> bool:
        """Whether so many listen that no more can."""
        return self._listening >= _MOST

    @contextmanager
    def listening(self, topics: Sequence[Topic], known: Mapping[str, str]) -> Iterator[Listener]:
        """A listener that is told the marks of topics, and then every other mark that they get."""
        listener = Listener(topics, known)
        self._listening += 1
        for topic in topics:
            watched = self._watched.setdefault(topic, _Watched())
            watched.listeners.add(listener)
            if watched.mark is not None:
                listener.tell(topic.name, watched.mark)
        if self._is_over:
            listener.end()
        elif self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())
        self._bell.set()
        try:
            yield listener
        finally:
            self._listening -= 1
            for topic in topics:
                self._watched[topic].listeners.discard(listener)
                if not self._watched[topic].listeners:
                    del self._watched[topic]

    def end(self) -> None:
        """Ends all listening, now and from now on."""
        self._is_over = True
        for watched in self._watched.values():
            for listener in watched.listeners:
                listener.end()
        self._thread.shutdown(wait=False)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._watched and not self._is_over:
            self._bell.clear()
            now = loop.time()
            due = [topic for topic, each in self._watched.items() if each.due <= now]
            if due:
                found = await loop.run_in_executor(self._thread, self._read, due)
                self._tell(found, loop.time())
                continue
            rest = min(each.due for each in self._watched.values()) - now
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), rest)

    def _tell(self, found: Mapping[Topic, str | None], now: float) -> None:
        for topic, mark in found.items():
            watched = self._watched.get(topic)
            if watched is None:
                continue
            watched.due = now + topic.seconds
            if mark is not None and mark != watched.mark:
                watched.mark = mark
                for listener in watched.listeners:
                    listener.tell(topic.name, mark)

    def _read(self, topics: Sequence[Topic]) -> dict[Topic, str | None]:
        with self._marks.together():
            return {topic: self._mark(topic) for topic in topics}

    def _mark(self, topic: Topic) -> str | None:
        """The mark of a topic; None if it cannot be read now."""
        try:
            return self._marks.of(topic)
        except AflError as error:
            _log.warning("what `%s` is at cannot be read: %s", topic.name, error)
        except Exception:  # noqa: BLE001 - one topic must not keep the others from being told
            _log.exception("what `%s` is at cannot be read", topic.name)
        return None
