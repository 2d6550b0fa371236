"""A live feed through PostgreSQL's NOTIFY, where there is no NATS. Needs the extra `postgres`.

Ears say every few seconds in which turns they want to hear the model, and feeds tell what is said
in those and nothing else: a model that nobody listens to costs the database nothing. Each end has
one connection of its own and one thread, which puts together what is said in a tenth of a second.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from time import monotonic

import psycopg
from psycopg import Connection

from afl.kernel.model import Json
from afl.kernel.postgres.database import Row
from afl.turns.chunks import TOOL, Chunk, OpenAnswers, read_chunk
from afl.turns.feed import Hearers
from afl.turns.ports import Hear
from afl.turns.postgres.statements import SQL

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


class _Line:
    """Works on a connection in a thread, and on a new one when that is lost."""

    def __init__(
        self, url: str, name: str, work: Callable[[Connection[Row], threading.Event], None]
    ) -> None:
        """`work` goes on until the event says that it is over."""
        self._url = url
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
                # nothing is prepared: it may go through a pooler that cannot carry it
                with psycopg.connect(
                    self._url, autocommit=True, prepare_threshold=None
                ) as connection:
                    self._work(connection, self._closed)
            except psycopg.Error:  # nothing depends on it
                self._closed.wait(_PAUSE_SECONDS)


class PostgresFeed:
    """Tells what models say in this process to the ears that wish to hear it."""

    def __init__(self, url: str) -> None:
        self._lock = threading.Lock()
        self._open = OpenAnswers()
        #: turns that somebody listens to, and until when that is taken for granted
        self._wished: dict[str, float] = {}
        self._waiting: deque[Chunk] = deque(maxlen=_MOST_WAITING)
        self._line = _Line(url, "afl-feed", self._work)

    def publish(self, subject: str, body: dict[str, Json]) -> None:
        """Never fails and never waits."""
        if (chunk := read_chunk(body)) is None:
            return
        with self._lock:
            self._open.note(chunk)
            if self._wished.get(chunk.turn, 0.0) > monotonic():
                self._waiting.append(chunk)

    def close(self) -> None:
        self._line.close()

    def _work(self, connection: Connection[Row], closed: threading.Event) -> None:
        connection.execute(SQL["listen_wishes"])
        while not closed.is_set():
            pause = _BEAT_SECONDS if self._wished else _IDLE_SECONDS
            for notice in connection.notifies(timeout=pause, stop_after=1):
                self._hear_wishes(notice.payload)
            with self._lock:
                said, self._waiting = self._waiting, deque(maxlen=_MOST_WAITING)
                now = monotonic()
                self._wished = {turn: end for turn, end in self._wished.items() if end > now}
            for payload in payloads(said):
                connection.execute(SQL["tell_chunks"], {"payload": payload})

    def _hear_wishes(self, payload: str) -> None:
        told = _object(payload)
        turns, new = _names(told.get("turns")), _names(told.get("new"))
        with self._lock:
            for turn in turns:
                if turn in new or turn not in self._wished:
                    self._waiting.extend(self._open.so_far(turn))
                self._wished[turn] = monotonic() + _WISH_SECONDS


class PostgresEar:
    """Hears what models say in other processes."""

    def __init__(self, url: str) -> None:
        self._hearers = Hearers()
        self._lock = threading.Lock()
        #: turns that feeds have not heard of
        self._new: set[str] = set()
        self._line = _Line(url, "afl-ear", self._work)

    def listen(self, agent: str, turn: str, hear: Hear) -> Callable[[], None]:
        stop = self._hearers.add(turn, hear)
        with self._lock:
            self._new.add(turn)
        return stop

    def close(self) -> None:
        self._line.close()

    def _work(self, connection: Connection[Row], closed: threading.Event) -> None:
        connection.execute(SQL["listen_chunks"])
        with self._lock:
            self._new.update(self._hearers.turns())
        due = 0.0
        while not closed.is_set():
            if self._new or monotonic() >= due:
                due = monotonic() + _TELL_SECONDS
                self._tell_wishes(connection)
            for notice in connection.notifies(timeout=_BEAT_SECONDS, stop_after=1):
                for body in _list(notice.payload):
                    if (chunk := read_chunk(body)) is not None:
                        self._hearers.tell(chunk)

    def _tell_wishes(self, connection: Connection[Row]) -> None:
        with self._lock:
            new, self._new = self._new, set()
        turns = self._hearers.turns()
        for start in range(0, len(turns), _MOST_TURNS):
            some = turns[start : start + _MOST_TURNS]
            told = {"turns": some, "new": [turn for turn in some if turn in new]}
            connection.execute(SQL["tell_wishes"], {"payload": json.dumps(told)})


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
