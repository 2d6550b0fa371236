"""What handlers say through their context, and what turns do, as lines of streams."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from afl.base.log_names import HANDLER_LOG, TURN_LOG
from afl.logs.model import StreamKey
from afl.logs.spool import Spool, StreamWriter, WhenFull
from afl.runtime.handler_table import Handler, Invocation

#: The name of the stream of what a handler says through its context.
LOG = "log"
_HIGHEST_LEVEL = 255
_MICROSECONDS = 1_000_000


def key_of(invocation: Invocation, name: str) -> StreamKey:
    """The stream of a name that belongs to an attempt at a step."""
    task = invocation.task
    given = task.input if isinstance(task.input, dict) else {}
    run, step = given.get("run") or task.run, given.get("step") or ""
    return StreamKey(str(run), str(step), invocation.attempt, name)


class HandlerLogs(logging.Handler):
    """Writes what handlers say to a spool. Never waits for room and never fails a handler: when the
    spool is full, lines are dropped, and a gap says so."""

    def __init__(self, spool: Spool) -> None:
        super().__init__()
        self._spool = spool
        #: streams of handlers that are at work; None while they have said nothing
        self._streams: dict[StreamKey, StreamWriter | None] = {}
        self._streams_lock = Lock()

    def attach(self) -> None:
        """Hears all handlers and all turns of this process from now on."""
        logging.getLogger(HANDLER_LOG).addHandler(self)
        turns = logging.getLogger(TURN_LOG)
        turns.addHandler(self)
        turns.setLevel(logging.INFO)
        # what models say is for the log of the run, and not for the terminal of a worker
        turns.propagate = False

    def detach(self) -> None:
        logging.getLogger(HANDLER_LOG).removeHandler(self)
        turns = logging.getLogger(TURN_LOG)
        turns.removeHandler(self)
        turns.setLevel(logging.NOTSET)
        turns.propagate = True

    def around(self, handler: Handler) -> Handler:
        """The handler with a stream that ends with each of its attempts."""
        return handler.within(self._attempt)

    @contextmanager
    def _attempt(self, invocation: Invocation) -> Iterator[None]:
        key = key_of(invocation, LOG)
        with self._streams_lock:
            self._streams[key] = None
        try:
            yield
        finally:
            with self._streams_lock:
                stream = self._streams.pop(key, None)
            if stream is not None:
                stream.close()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            said: dict[str, Any] = record.__dict__
            key = StreamKey(str(said["run"]), str(said["step"]), int(said["attempt"]), LOG)
            level = min(record.levelno, _HIGHEST_LEVEL)
            time_us = int(record.created * _MICROSECONDS)
            with self._streams_lock:
                # somebody who speaks after the end of the attempt gets a stream of one saying
                at_work = key in self._streams
                stream = self._streams.get(key) or self._spool.open(key, WhenFull.DROP)
                if at_work:
                    self._streams[key] = stream
                for line in _text(record).splitlines() or [""]:
                    stream.line(line.encode(errors="replace"), level=level, time_us=time_us)
            if not at_work:
                stream.close()
        except Exception:  # noqa: BLE001 - a line that cannot be kept must not stop the work
            self.handleError(record)


def _text(record: logging.LogRecord) -> str:
    """What was said, without the run and the step: the stream has them."""
    text = record.getMessage()
    said = record.__dict__
    text = text.removeprefix(f"[{said['run']} {said['step']}] ")
    if record.exc_info and record.exc_info[1] is not None:
        text += "\n" + "".join(traceback.format_exception(record.exc_info[1])).rstrip()
    return text
