"""A command and its keeper, as the worker holds them."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from time import monotonic

from afl.exec.errors import CannotStart, KeeperLost
from afl.exec.lines import LineSink
from afl.exec.model import Command, Usage
from afl.exec.pump import STDERR, STDOUT, Pump

_KEEPER = str(Path(__file__).with_name("keeper.py"))
_LOOK_SECONDS = 0.1
#: How long a keeper may take to start a command, and to end when it is told to. It gives up killing
#: before that.
_START_SECONDS, _GONE_SECONDS = 30.0, 10.0
#: Errors that may be gone at the next attempt.
_PASSING = (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE, errno.ETXTBSY)


class Child:
    """Used by the thread that runs the command, but for `kill`."""

    def __init__(self, command: Command, sink: LineSink) -> None:
        """Starts the keeper, which starts the command.

        Raises:
            CannotStart: the command cannot be started.
        """
        self._command = command
        self._words = b""
        self._pid: int | None = None
        self._lock = threading.Lock()
        #: the status of `wait`, once it has ended
        self.status: int | None = None
        self.usage = Usage()
        self.out_of_memory = False
        #: whether somebody else has killed it
        self.was_killed = False
        self._control, theirs = socket.socketpair()
        with self._control_on_error(), theirs:
            self._keeper, self.pump = _start_keeper(command, sink, self._control, theirs)
        try:
            self._await_start()
            self.pump.start()
        except BaseException:
            self.close()
            raise

    def await_end(self, until: float, stop: threading.Event | None) -> bool:
        """Waits for the end of the command; false if it has not ended by then, or is to stop.

        Raises:
            KeeperLost: the keeper is gone; all that we know of is killed.
        """
        while self.status is None:
            left = until - monotonic()
            if left <= 0 or (stop is not None and stop.is_set()) or self.pump.error is not None:
                return False
            self._hear(min(left, _LOOK_SECONDS))
        return True

    def ask_to_end(self) -> None:
        """Sends SIGTERM to the group of the command."""
        self._tell(b"T")

    def kill(self) -> None:
        """Ends the command at once, with all that it has started. Any thread may call it."""
        self.was_killed = self.status is None
        self._tell(b"K")

    def clear(self) -> None:
        """Kills what the command has left behind, and reads what it has written."""
        self._tell(b"K")
        with suppress(subprocess.TimeoutExpired):
            self._keeper.wait(_GONE_SECONDS)
        self.pump.finish()

    def close(self) -> None:
        """Lets go of everything; without us the keeper ends, and so does all that it keeps."""
        with self._lock:
            self._control.close()
        try:
            self._keeper.wait(_GONE_SECONDS)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        self.pump.finish()

    # The keeper

    def _await_start(self) -> None:
        until = monotonic() + _START_SECONDS
        while self._pid is None and monotonic() < until:
            self._hear(_LOOK_SECONDS)
        if self._pid is None:
            raise CannotStart(f"`{self._command.argv[0]}` did not start in {_START_SECONDS:g} s.")

    def _hear(self, seconds: float) -> None:
        ready, _, _ = select.select([self._control], [], [], seconds)
        if not ready:
            return
        data = self._control.recv(65536)
        if not data:
            self._lost()
        *lines, self._words = (self._words + data).split(b"\n")
        for line in lines:
            words = json.loads(line)
            if "failed" in words:
                raise _why_not_started(self._command, words["failed"])
            if "started" in words:
                self._pid = words["started"]
            elif "out_of_memory" in words:
                self.out_of_memory = True
            else:
                self.status = words["ended"]
                self.usage = Usage(words["cpu"], words["max_rss"])

    def _lost(self) -> None:
        if self._pid is not None:
            # its own death is certain; that of others in its group is not
            with suppress(OSError):
                os.killpg(self._pid, signal.SIGKILL)
        raise KeeperLost

    def _tell(self, word: bytes) -> None:
        with self._lock, suppress(OSError):
            self._control.sendall(word)

    def _control_on_error(self) -> _ClosedOnError:
        return _ClosedOnError(self._control)


class _ClosedOnError:
    def __init__(self, control: socket.socket) -> None:
        self._control = control

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._control.close()


def _start_keeper(
    command: Command, sink: LineSink, control: socket.socket, theirs: socket.socket
) -> tuple[subprocess.Popen[bytes], Pump]:
    passed = [theirs.fileno()]
    answer: tuple[int, int] | None = None
    extra: int | None = None
    if command.answer_bytes is not None:
        answer = os.pipe()
        passed.append(answer[1])
    if command.extra is not None:
        extra = os.memfd_create("afl-extra")
        os.write(extra, command.extra)
        os.lseek(extra, 0, os.SEEK_SET)
        passed.append(extra)
    try:
        keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", _KEEPER, str(theirs.fileno())],
            stdin=subprocess.DEVNULL if command.stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={},
            pass_fds=passed,
            start_new_session=True,
        )
    except BaseException:
        for fd in answer or ():
            os.close(fd)
        raise
    finally:
        if extra is not None:
            os.close(extra)
    _send_request(control, command, answer and answer[1], extra)
    return keeper, _pump_of(keeper, command, sink, answer)


def _send_request(
    control: socket.socket, command: Command, answer: int | None, extra: int | None
) -> None:
    limits = {name: each for name, each in asdict(command.limits).items() if each is not None}
    request = {
        "argv": list(command.argv),
        "env": dict(command.env),
        "cwd": command.cwd,
        "limits": limits,
        "user": command.user,
        "total_memory_bytes": command.total_memory_bytes,
        "answer": answer,
        "extra": extra,
    }
    data = json.dumps(request).encode()
    # a keeper that is gone is noticed when nothing comes from it
    with suppress(OSError):
        control.sendall(struct.pack("!I", len(data)) + data)


def _pump_of(
    keeper: subprocess.Popen[bytes],
    command: Command,
    sink: LineSink,
    answer: tuple[int, int] | None,
) -> Pump:
    assert keeper.stdout is not None
    assert keeper.stderr is not None
    # the descriptors become the pump's
    streams = {STDOUT: _detached(keeper.stdout), STDERR: _detached(keeper.stderr)}
    pump = Pump(streams, sink, command.capture_bytes)
    if keeper.stdin is not None:
        pump.feed(_detached(keeper.stdin), command.stdin or b"")
    if answer is not None:
        assert command.answer_bytes is not None
        os.close(answer[1])
        pump.take_answer(answer[0], command.answer_bytes)
    return pump


def _detached(file: object) -> int:
    """The descriptor of an unbuffered file, which is closed."""
    fd = os.dup(file.fileno())  # type: ignore[attr-defined]
    file.close()  # type: ignore[attr-defined]
    return fd


def _why_not_started(command: Command, failed: dict[str, object]) -> Exception:
    number = failed["errno"]
    what = os.strerror(number) if isinstance(number, int) else str(failed["error"])
    if number in _PASSING:
        return OSError(number, f"cannot start `{command.argv[0]}`: {what}")
    match failed["stage"], number:
        case "cwd", _:
            return CannotStart(f"The folder `{command.cwd}` cannot be worked in: {what}.")
        case "exec", errno.ENOENT:
            return CannotStart(
                f"There is no program `{command.argv[0]}` on this worker, or what its first line "
                "names is missing."
            )
        case _:
            return CannotStart(f"`{command.argv[0]}` cannot be started: {what}.")
