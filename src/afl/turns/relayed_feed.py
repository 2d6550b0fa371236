"""What live feeds through a database have in common, where there is no NATS.

Ears say every few seconds in which turns they want to hear the model, and feeds tell what is said
in those and nothing else: a model that nobody listens to costs the database nothing. Each end has
one connection of its own and one thread, which puts together what is said in a tenth of a second.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from enum import Enum
from time import monotonic
from typing import Protocol

from afl.kernel.model import Json
from afl.turns.chunks import TOOL, Chunk, OpenAnswers, read_chunk
from afl.turns.feed import Hearers
from afl.turns.ports import Hear

#: How long what is said waits for more while somebody listens, and while nobody does.
_BEAT_SECONDS = 0.1
_IDLE_SECONDS = 0.5
#: How often a wish is told, and how long it holds.
_TELL_SECONDS = 2.0
_WISH_SECONDS = 7.0
_PAUSE_SECONDS = 1.0
_CLOSE_SECONDS = 5.0
_MOST_WAITING = 10_000
#: PostgreSQL takes less than 8000 bytes.
_MOST_BYTES = 7900
#: A character takes at most twelve bytes of JSON, and what is around a text a few hundred.
_MOST_CHARACTERS = 600
_MOST_TURNS = 100


class Topic(Enum):
    """What is told through the database."""

    #: in which turns somebody wants to hear the model
    WISHES = "wishes"
    #: what models say in those
    CHUNKS = "chunks"


class Line(Protocol):
    """A connection that hears of one topic."""

    def tell(self, topic: Topic, payload: str) -> None:
        """To all lines that hear of the topic."""
        ...

    def hear(self, seconds: float) -> Iterable[str]:
        """What has come; waits so long for the first of it."""
        ...


#: A new line, which hears what is told from then on.
Connect = Callable[[Topic], AbstractContextManager[Line]]


class _Keeper:
    """Works on a line in a thread, and on a new one when that is lost."""

    def __init__(
        self,
        connect: Callable[[], AbstractContextManager[Line]],
        lost: type[Exception],
        name: str,
        work: Callable[[Line, threading.Event], None],
    ) -> None:
        """`work` goes on until the event says that it is over; `lost` is what it raises then."""
        self._connect = connect
        self._lost = lost
        self._work = work
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                with self._connect() as line:
                    self._work(line, self._closed)
            except self._lost:  # nothing depends on it
                self._closed.wait(_PAUSE_SECONDS)


class RelayedFeed:
    """Tells what models say in this process to the ears that wish to hear it."""

    def __init__(self, connect: Connect, lost: type[Exception]) -> None:
        """`lost` is what is raised when a connection is lost."""
        self._lock = threading.Lock()
        self._open = OpenAnswers()
        #: turns that somebody listens to, and until when that is taken for granted
        self._wished: dict[str, float] = {}
        self._waiting: deque[Chunk] = deque(maxlen=_MOST_WAITING)
        self._keeper = _Keeper(lambda: connect(Topic.WISHES), lost, "afl-feed", self._work)

    def publish(self, subject: str, body: dict[str, Json]) -> None:
        """Never fails and never waits."""
        if (chunk := read_chunk(body)) is None:
            return
        with self._lock:
            self._open.note(chunk)
            if self._wished.get(chunk.turn, 0.0) > monotonic():
                self._waiting.append(chunk)

    def close(self) -> None:
        self._keeper.close()

    def _work(self, line: Line, closed: threading.Event) -> None:
        while not closed.is_set():
            for payload in line.hear(_BEAT_SECONDS if self._wished else _IDLE_SECONDS):
                self._hear_wishes(payload)
            with self._lock:
                said, self._waiting = self._waiting, deque(maxlen=_MOST_WAITING)
                now = monotonic()
                self._wished = {turn: end for turn, end in self._wished.items() if end > now}
            for payload in payloads(said):
                line.tell(Topic.CHUNKS, payload)

    def _hear_wishes(self, payload: str) -> None:
        told = _object(payload)
        turns, new = _names(told.get("turns")), _names(told.get("new"))
        with self._lock:
            for turn in turns:
                if turn in new or turn not in self._wished:
                    self._waiting.extend(self._open.so_far(turn))
                self._wished[turn] = monotonic() + _WISH_SECONDS


class RelayedEar:
    """Hears what models say in other processes."""

    def __init__(self, connect: Connect, lost: type[Exception]) -> None:
        """`lost` is what is raised when a connection is lost."""
        self._hearers = Hearers()
        self._lock = threading.Lock()
        #: turns that feeds have not heard of
        self._new: set[str] = set()
        self._keeper = _Keeper(lambda: connect(Topic.CHUNKS), lost, "afl-ear", self._work)

    def listen(self, agent: str, turn: str, hear: Hear) -> Callable[[], None]:
        stop = self._hearers.add(turn, hear)
        with self._lock:
            self._new.add(turn)
        return stop

    def close(self) -> None:
        self._keeper.close()

    def _work(self, line: Line, closed: threading.Event) -> None:
        with self._lock:
            self._new.update(self._hearers.turns())
        due = 0.0
        while not closed.is_set():
            if self._new or monotonic() >= due:
                due = monotonic() + _TELL_SECONDS
                self._tell_wishes(line)
            for payload in line.hear(_BEAT_SECONDS):
                for body in _list(payload):
                    if (chunk := read_chunk(body)) is not None:
                        self._hearers.tell(chunk)

    def _tell_wishes(self, line: Line) -> None:
        with self._lock:
            new, self._new = self._new, set()
        turns = self._hearers.turns()
        for start in range(0, len(turns), _MOST_TURNS):
            some = turns[start : start + _MOST_TURNS]
            told = {"turns": some, "new": [turn for turn in some if turn in new]}
            line.tell(Topic.WISHES, json.dumps(told))


def payloads(said: Sequence[Chunk]) -> Iterator[str]:
    """What was said, in as few notices as hold it."""
    held: list[str] = []
    size = 2
    for chunk in _split(_merged(said)):
        text = json.dumps(chunk.body(), separators=(",", ":"))
        if held and size + len(text) + 1 > _MOST_BYTES:
            yield f"[{','.join(held)}]"
            held, size = [], 2
        held.append(text)
        size += len(text) + 1
    if held:
        yield f"[{','.join(held)}]"


def _merged(said: Iterable[Chunk]) -> list[Chunk]:
    """Pieces that follow one another as one."""
    last: dict[str, int] = {}
    merged: list[Chunk] = []
    for chunk in said:
        before = merged[last[chunk.turn]] if chunk.turn in last else None
        if before is not None and _follows(before, chunk):
            text = before.text + chunk.text
            merged[last[chunk.turn]] = replace(before, text=text, next=chunk.next)
        else:
            last[chunk.turn] = len(merged)
            merged.append(chunk)
    return merged


def _follows(before: Chunk, chunk: Chunk) -> bool:
    return (
        (before.epoch, before.request, before.kind, before.next)
        == (chunk.epoch, chunk.request, chunk.kind, chunk.index)
        and chunk.kind != TOOL
        and before.index > 0  # not with what was said so far, which others know already
    )


def _split(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    for chunk in chunks:
        text = chunk.text
        while len(text) > _MOST_CHARACTERS:
            # the same number goes on
            yield replace(chunk, text=text[:_MOST_CHARACTERS], next=chunk.index)
            text = text[_MOST_CHARACTERS:]
        yield replace(chunk, text=text)


def _object(payload: str) -> dict[str, Json]:
    found = _parsed(payload)
    return found if isinstance(found, dict) else {}


def _list(payload: str) -> list[Json]:
    found = _parsed(payload)
    return found if isinstance(found, list) else []


def _parsed(payload: str) -> Json:
    """Others may use the same channel: what is no JSON is none of ours."""
    try:
        found: Json = json.loads(payload)
    except ValueError:
        return None
    return found


def _names(found: Json) -> list[str]:
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
