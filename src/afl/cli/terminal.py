"""Where a command writes: data to stdout, talk to stderr, each with colour or without."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import TextIO

from afl.base.settings import ColorMode

_BOLD_RED = "1;31"
_BOLD_CYAN = "1;36"
_DIM = "2"
_FALLBACK_SIZE = (100, 24)


@dataclass(slots=True)
class Terminal:
    """Both streams of a command, and what its user wants of them.

    The streams are looked up at each use, so that a test may put its own in their place.
    """

    color: ColorMode = ColorMode.AUTO
    debug: bool = False
    _data: TextIO | None = None
    """Where data goes while what others print is talk."""

    @property
    def width(self) -> int:
        return shutil.get_terminal_size(_FALLBACK_SIZE).columns

    @property
    def colour_out(self) -> bool:
        """Whether data may be coloured."""
        return self._colours(sys.stdout)

    @property
    def colour_err(self) -> bool:
        """Whether talk may be coloured."""
        return self._colours(sys.stderr)

    def data(self, text: str) -> None:
        """Write data as it is; a text for people ends with a line break."""
        (self._data or sys.stdout).write(text)

    def data_now(self, text: str) -> None:
        """Write data that somebody waits for."""
        self.data(text)
        (self._data or sys.stdout).flush()

    @contextmanager
    def others_talk(self) -> Iterator[None]:
        """While this lasts, what the code of users prints is talk; our data stays data."""
        self._data = sys.stdout
        try:
            with redirect_stdout(sys.stderr):
                yield
        finally:
            self._data = None

    def json(self, value: object) -> None:
        """Write a JSON value, readable by people too."""
        self.data(json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def say(self, line: str) -> None:
        """Tell the user something, after all data so far: both streams may end in one place."""
        (self._data or sys.stdout).flush()
        sys.stderr.write(f"{line}\n")

    def error(self, message: str) -> None:
        """Tell the user what failed."""
        self.say(f"{_painted(_BOLD_RED, 'error:', self.colour_err)} {message}")

    def help(self, message: str) -> None:
        """Tell the user what to do about it, or what to do next."""
        self.say(f"{_painted(_BOLD_CYAN, 'help:', self.colour_err)} {message}")

    def dim(self, text: str) -> str:
        """A part of data that stands back behind the rest."""
        return _painted(_DIM, text, self.colour_out)

    def _colours(self, stream: TextIO) -> bool:
        if self.color is ColorMode.AUTO:
            return stream.isatty()
        return self.color is ColorMode.ALWAYS


def _painted(style: str, text: str, colour: bool) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if colour else text


def prepare_streams() -> None:
    """What goes to a file or a pipe is UTF-8, as sources are; a terminal gets what it can show."""
    for stream in (sys.stdout, sys.stderr):
        # whatever stands in for a stream without being one knows its own encoding
        if hasattr(stream, "reconfigure"):
            if stream.isatty():
                stream.reconfigure(errors="backslashreplace")
            else:
                stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def count(number: int, what: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
