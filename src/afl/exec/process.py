"""Runs one command, to its end or to the end of its time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic

from afl.exec.child import Child
from afl.exec.errors import CannotStart, ExecError, KeeperLost
from afl.exec.lines import DroppedLines, LineSink
from afl.exec.model import Command, Outcome, exit_of
from afl.exec.pump import STDERR, STDOUT

#: How long the end of a command is awaited that was killed.
_KILL_SECONDS = 10.0


class WorkerEnds(ExecError):
    """The worker ends, and its commands with it."""

    code = "exec.worker_ends"
    retryable = True


class Children:
    """The commands that a worker runs, to end them all at once. Threads share it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._children: set[Child] = set()
        self.has_ended = False

    def __len__(self) -> int:
        return len(self._children)

    def end(self, timeout_seconds: float = _KILL_SECONDS) -> bool:
        """Kills all of them, and lets no more start; tells whether all are gone."""
        with self._changed:
            self.has_ended = True
            for child in self._children:
                child.kill()
            return self._changed.wait_for(lambda: not self._children, timeout_seconds)

    @contextmanager
    def keeping(self, child: Child) -> Iterator[None]:
        """One of them, while it runs."""
        with self._changed:
            self._children.add(child)
            if self.has_ended:
                child.kill()
        try:
            yield
        finally:
            with self._changed:
                self._children.discard(child)
                self._changed.notify_all()


def run(
    command: Command,
    *,
    sink: LineSink | None = None,
    stop: threading.Event | None = None,
    children: Children | None = None,
) -> Outcome:
    """Runs a command and waits for its end.

    At the end of its time, and when `stop` is set, its group gets SIGTERM; what is left after the
    grace is killed. So is what a command leaves behind that has ended by itself: at once, or after
    the linger time if it still holds the pipes. Nothing that a command has started outlives it.

    Raises:
        CannotStart: it cannot be started here.
        KeeperLost: its keeper was killed, and it with it; how it ended is not known.
        WorkerEnds: it was killed by `children.end()`.
    """
    for text in (*command.argv, *command.env, *command.env.values(), command.cwd or ""):
        if "\0" in text:
            raise CannotStart("A command, its environment and its folder can have no NUL byte.")
    if not command.argv or not command.argv[0]:
        raise CannotStart("A command needs the name of a program.")
    child = Child(command, sink or DroppedLines())
    begun = monotonic()
    try:
        with (Children() if children is None else children).keeping(child):
            timed_out, stopped = _to_the_end(child, command, begun, stop)
    finally:
        child.close()
    if child.pump.error is not None:
        raise child.pump.error
    if child.was_killed:
        raise WorkerEnds
    assert child.status is not None
    exit_code, signal = exit_of(child.status)
    return Outcome(
        exit_code=exit_code,
        signal=signal,
        stdout=child.pump.captured(STDOUT),
        stderr=child.pump.captured(STDERR),
        duration_seconds=monotonic() - begun,
        usage=child.usage,
        timed_out=timed_out,
        stopped=stopped,
        out_of_memory=child.out_of_memory,
        answer=child.pump.answer,
    )


def _to_the_end(
    child: Child, command: Command, begun: float, stop: threading.Event | None
) -> tuple[bool, bool]:
    """Whether it ran out of time, and whether it was asked to stop."""
    limit = inf if command.timeout_seconds is None else begun + command.timeout_seconds
    timed_out = stopped = False
    if child.await_end(limit, stop):
        child.pump.wait(command.linger_seconds)
    else:
        stopped = stop is not None and stop.is_set()
        timed_out = not stopped and child.pump.error is None
        child.ask_to_end()
        child.await_end(monotonic() + command.grace_seconds, None)
    child.clear()
    if not child.await_end(monotonic() + _KILL_SECONDS, None) and child.pump.error is None:
        raise KeeperLost(f"`{command.argv[0]}` cannot be killed; it may hang in the kernel.")
    return timed_out, stopped
