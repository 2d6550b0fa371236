"""The log lines of a server, as `afl.logs.reading` reads them from a database."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from afl.app.remote.http import Connection
from afl.app.remote.reads import listed, mapped, part
from afl.app.remote.records import decode
from afl.logs.merging import order_of
from afl.logs.model import Chunk, ChunkHead
from afl.logs.store import Stream

#: How many places in streams a URL has room for.
_PLACES = 50


class RemoteLogs:
    """See `logs.store.LogLines` for what each method promises. Used by one thread."""

    def __init__(self, connection: Connection) -> None:
        self._http = connection
        self._runs: dict[str, str] = {}
        self._now_us = 0

    @classmethod
    def connect(cls, url: str, token: str | None) -> Self:
        """The lines of the server at this URL."""
        return cls(Connection(url, token))

    def streams(self, run: str) -> list[Stream]:
        told = mapped(self._http.get(f"{_path(run)}/streams"))
        self._now_us = decode(int, told["now_us"])
        found = [decode(Stream, each) for each in listed(told["streams"])]
        self._runs.update((stream.id, run) for stream in found)
        return found

    def heads(self, since: Mapping[str, int]) -> list[ChunkHead]:
        found: list[ChunkHead] = []
        for run, places in self._places(since.items()):
            told = self._http.get(f"{_path(run)}/chunks", since=places)
            found += [decode(ChunkHead, each) for each in listed(told)]
        return sorted(found, key=order_of)

    def bodies(self, heads: Sequence[ChunkHead]) -> Iterable[Chunk]:
        found: dict[str, str] = {}
        for run, places in self._places((head.stream, head.first) for head in heads):
            told = mapped(self._http.get(f"{_path(run)}/chunks/bodies", chunk=places))
            found.update((place, str(body)) for place, body in told.items())
        for head in heads:
            # one that is missing has been removed for its age
            body = found.get(f"{head.stream}:{head.first}")
            if body is not None:
                yield Chunk(head, b64decode(body))

    def now_us(self) -> int:
        """As it was at the last look."""
        return self._now_us

    def _places(self, given: Iterable[tuple[str, int]]) -> Iterable[tuple[str, list[str]]]:
        """Places in streams by run, as many as a request has room for."""
        by_run: dict[str, list[str]] = {}
        for stream, line in given:
            by_run.setdefault(self._runs[stream], []).append(f"{stream}:{line}")
        for run, places in by_run.items():
            for at in range(0, len(places), _PLACES):
                yield run, places[at : at + _PLACES]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.close()


def _path(run: str) -> str:
    return f"/records/runs/{part(run)}"
