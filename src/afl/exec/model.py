"""A command to run, and what came of it."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field

#: How much of each stream a result holds: half of it from the beginning, half from the end.
CAPTURE_BYTES = 128 << 10
#: How long a command may take to end when it is told to, before it is killed.
GRACE_SECONDS = 5.0
#: How long processes that a command leaves behind may go on writing to its pipes.
LINGER_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command may use of this machine; None is: what the worker may."""

    cpu_seconds: int | None = None
    #: of address space, for each process
    memory_bytes: int | None = None
    #: of each file that it writes
    file_bytes: int | None = None
    open_files: int | None = None
    #: of the user that it runs as, all together
    processes: int | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments, and what it is given."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    #: None for the worker's own
    cwd: str | None = None
    stdin: bytes | None = None
    timeout_seconds: float | None = None
    limits: Limits = Limits()
    grace_seconds: float = GRACE_SECONDS
    linger_seconds: float = LINGER_SECONDS
    capture_bytes: int = CAPTURE_BYTES
    #: whether it may write an answer to descriptor 3, of so many bytes at most
    answer_bytes: int | None = None
    #: bytes that it can read from descriptor 4
    extra: bytes | None = None
    #: the user and group to become first; None to stay who we are
    user: int | None = None
    #: what it and all that it has started may have in memory together
    total_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Captured:
    """What is kept of a stream: its beginning and its end, and how much between them is not."""

    head: bytes = b""
    tail: bytes = b""
    cut_bytes: int = 0

    @property
    def text(self) -> str:
        """As text that any store takes, with a line that says what was cut."""
        if not self.cut_bytes:
            return _text(self.head + self.tail)
        return f"{_text(self.head)}\n... {self.cut_bytes} bytes cut ...\n{_text(self.tail)}"

    def last_lines(self, count: int) -> list[str]:
        """The last lines that are not empty."""
        text = _text(self.tail if self.cut_bytes else self.head + self.tail)
        return [line for line in text.splitlines() if line.strip()][-count:]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a command and its children have used."""

    cpu_seconds: float = 0.0
    max_rss_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command has ended. Whether that is a success, its caller knows."""

    #: 128 and the number of the signal for one that a signal has ended, as shells have it
    exit_code: int
    signal: str | None
    stdout: Captured
    stderr: Captured
    duration_seconds: float
    usage: Usage
    timed_out: bool = False
    #: whether it was ended because somebody had asked for that
    stopped: bool = False
    #: whether it was killed for the memory that it and what it started had together
    out_of_memory: bool = False
    #: what it wrote to descriptor 3; None if that was too much
    answer: bytes | None = b""


def exit_of(wait_status: int) -> tuple[int, str | None]:
    """The exit code and the name of the signal in a status of `wait`."""
    low = wait_status & 0x7F
    return (128 + low, _signal_name(low)) if low else (wait_status >> 8 & 0xFF, None)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
