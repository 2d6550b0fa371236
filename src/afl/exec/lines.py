"""Lines of output: how they are cut from what is read, and the port to whoever keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

#: Longer lines are split, so that no line needs more memory than this.
LINE_BYTES = 64 << 10


class LineSink(Protocol):
    """Takes the lines of a command in the order in which they were read."""

    def line(self, stream: str, data: bytes, *, partial: bool, time: datetime) -> None:
        """A line of `stdout` or `stderr`, exact, without its newline.

        `partial`: the line goes on with the next one of the stream. May block to slow the command
        down, though not for ever: a command that was told to stop waits for it too. One that raises
        ends the command, and whoever runs it gets the error.
        """
        ...


class DroppedLines:
    """A sink for those who need no log."""

    def line(self, stream: str, data: bytes, *, partial: bool, time: datetime) -> None:
        pass


class LineSplitter:
    """Cuts one stream into lines, of which it holds one at a time."""

    def __init__(self, longest: int = LINE_BYTES) -> None:
        self._longest = longest
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """The lines that end with this data, each with whether it goes on."""
        *ended, rest = data.split(b"\n")
        if ended:
            ended[0] = self._rest + ended[0]
        else:
            rest = self._rest + rest
        for line in ended:
            yield from self._pieces(line)
        # a line of just the longest length is not known to go on
        while len(rest) > self._longest:
            yield rest[: self._longest], True
            rest = rest[self._longest :]
        self._rest = rest

    def close(self) -> Iterator[tuple[bytes, bool]]:
        """What is left when the stream has ended without a newline."""
        if self._rest:
            yield from self._pieces(self._rest)
            self._rest = b""

    def _pieces(self, line: bytes) -> Iterator[tuple[bytes, bool]]:
        while len(line) > self._longest:
            yield line[: self._longest], True
            line = line[self._longest :]
        yield line, False
