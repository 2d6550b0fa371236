"""The pipes of one command: both streams read at once, its input written, in bounded memory."""

from __future__ import annotations

import os
import selectors
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

from afl.exec.capture import Capture
from afl.exec.lines import LineSink, LineSplitter
from afl.exec.model import Captured

_READ_BYTES = 64 << 10
_LOOK_SECONDS = 0.2
STDOUT, STDERR = "stdout", "stderr"


class Pump:
    """A thread that reads until both pipes are closed, or nothing more is to come."""

    def __init__(self, streams: Mapping[str, int], sink: LineSink, capture_bytes: int) -> None:
        """The pipes are closed by the pump, when it is done with them."""
        self._selector = selectors.DefaultSelector()
        self._sink = sink
        self._captures = {name: Capture(capture_bytes) for name in streams}
        self._splitters = {name: LineSplitter() for name in streams}
        self._answer: list[bytes] = []
        self._answer_room: int | None = None
        self._input = memoryview(b"")
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="afl-pump", daemon=True)
        #: what the sink has raised
        self.error: BaseException | None = None
        for name, fd in streams.items():
            self._watch(fd, selectors.EVENT_READ, name)

    def feed(self, fd: int, data: bytes) -> None:
        """Has data written to a pipe. Before `start`."""
        self._input = memoryview(data)
        self._watch(fd, selectors.EVENT_WRITE, "")

    def take_answer(self, fd: int, most: int) -> None:
        """Has an answer read from a pipe. Before `start`."""
        self._answer_room = most
        self._watch(fd, selectors.EVENT_READ, "answer")

    def start(self) -> None:
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Tells whether all pipes were closed by then."""
        self._thread.join(max(0.0, seconds))
        return not self._thread.is_alive()

    def finish(self) -> None:
        """Reads what is there, and waits for nothing that is yet to come."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()
        else:
            self._close_all()

    def captured(self, stream: str) -> Captured:
        return self._captures[stream].captured()

    @property
    def answer(self) -> bytes | None:
        """What came as the answer; None if it was too much."""
        too_much = self._answer_room is not None and self._answer_room < 0
        return None if too_much else b"".join(self._answer)

    def _watch(self, fd: int, events: int, name: str) -> None:
        os.set_blocking(fd, False)
        self._selector.register(fd, events, name)

    def _run(self) -> None:
        try:
            while any(key.data for key in self._selector.get_map().values()):
                ready = self._selector.select(_LOOK_SECONDS)
                for key, _ in ready:
                    if key.data:
                        self._read(key.fd, key.data)
                    else:
                        self._write(key.fd)
                if self._closing.is_set() and not any(key.data for key, _ in ready):
                    break
        finally:
            self._close_all()

    def _read(self, fd: int, name: str) -> None:
        try:
            data = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._close(fd)
        elif name == "answer":
            self._take(data)
        else:
            self._captures[name].feed(data)
            self._log(name, data)

    def _take(self, data: bytes) -> None:
        assert self._answer_room is not None
        self._answer_room -= len(data)
        if self._answer_room >= 0:
            self._answer.append(data)
        else:
            self._answer.clear()

    def _write(self, fd: int) -> None:
        try:
            written = os.write(fd, self._input[:_READ_BYTES])
        except BlockingIOError:
            return
        except BrokenPipeError:
            # not everybody reads what they are given
            written = len(self._input)
        self._input = self._input[written:]
        if not self._input:
            self._close(fd)

    def _log(self, name: str, data: bytes | None) -> None:
        """Hands lines to the sink; with None, what is left of the last one."""
        if self.error is not None:
            return
        splitter = self._splitters[name]
        now = datetime.now(UTC)
        try:
            for line, partial in splitter.close() if data is None else splitter.feed(data):
                self._sink.line(name, line, partial=partial, time=now)
        except Exception as error:  # noqa: BLE001 - it is told to whoever runs the command
            self.error = error

    def _close(self, fd: int) -> None:
        key = self._selector.unregister(fd)
        with suppress(OSError):
            os.close(fd)
        if key.data in self._splitters:
            self._log(key.data, None)

    def _close_all(self) -> None:
        for key in list(self._selector.get_map().values()):
            self._close(key.fd)
        self._selector.close()
