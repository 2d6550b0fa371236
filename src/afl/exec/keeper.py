"""The keeper of one command: a process between a worker and what it runs.

It starts the command in a session of its own, tells how it ended, and kills it together with all
that it has started, wherever that has moved to: when it is told to, and when the worker is gone,
however that came to be. If the keeper itself is killed, the command dies with it.

It runs as a script, without the package: `python -I -S keeper.py DESCRIPTOR`. On that socket it
gets a request (its length in 4 bytes, then JSON) and later single bytes: `T` has it send SIGTERM to
the group of the command, `K` has it kill everything and end. It answers with lines of JSON.
"""

from __future__ import annotations

import ctypes
import fcntl
import io
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

#: Where the command finds the pipe for its answer, and what else it may read.
ANSWER_FD, EXTRA_FD = 3, 4
#: Our own descriptors are moved above those of the command.
_LOWEST_OWN_FD = 10
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
#: How long we try to kill what does not go away, such as what waits for a dead disk.
_KILL_SECONDS = 5.0
_LOOK_SECONDS = 0.005
#: How often we look at the memory of a command that has a bound of it.
_MEMORY_SECONDS = 0.1
_PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_LIMITS = {
    "cpu_seconds": resource.RLIMIT_CPU,
    "memory_bytes": resource.RLIMIT_AS,
    "file_bytes": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
}

_Request = dict[str, Any]


class Keeper:
    """Keeps the command that it was started for."""

    def __init__(
        self, control: socket.socket, command: int, total_memory_bytes: int | None
    ) -> None:
        self._control = control
        self._command = command
        self._total = total_memory_bytes
        self._is_running = True

    def keep(self, woken: int) -> None:
        """Until it is told to end, or nobody is there any more to tell."""
        while True:
            wait_seconds = None if self._total is None else _MEMORY_SECONDS
            control = self._control.fileno()
            ready, _, _ = select.select([control, woken], [], [], wait_seconds)
            if self._total is not None and memory_of(descendants()) > self._total:
                tell(self._control, out_of_memory=True)
                self._end_all()
                return
            if woken in ready:
                os.read(woken, 4096)
                self._reap()
            if control in ready:
                told = self._told()
                if told in (b"", b"K"):
                    self._end_all()
                    return
                if self._is_running:
                    os.killpg(self._command, signal.SIGTERM)

    def _told(self) -> bytes:
        try:
            return self._control.recv(1)
        except OSError:
            return b""

    def _reap(self) -> None:
        """Takes note of all that has ended: the command, and what it has left to us."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._command:
                self._is_running = False
                cpu_seconds = used.ru_utime + used.ru_stime
                tell(self._control, ended=status, cpu=cpu_seconds, max_rss=used.ru_maxrss * 1024)

    def _end_all(self) -> None:
        deadline = time.monotonic() + _KILL_SECONDS
        while left := descendants():
            if self._is_running:
                # at once, so that a group that grows cannot outrun us
                os.killpg(self._command, signal.SIGKILL)
            for pid in left:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            self._reap()
            if time.monotonic() > deadline:
                return
            time.sleep(_LOOK_SECONDS)


def memory_of(pids: list[int]) -> int:
    """What processes have in memory together; what they share counts for each."""
    total = 0
    for pid in pids:
        with suppress(OSError), open(f"/proc/{pid}/statm", "rb") as file:
            total += int(file.read().split()[1]) * _PAGE_BYTES
    return total


def descendants() -> list[int]:
    """All processes below this one. Those without a parent of their own are below it too."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # the name of the program, in parentheses, may hold anything
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    rest = [os.getpid()]
    while rest:
        below = children.get(rest.pop(), [])
        found += below
        rest += below
    return found


def start(request: _Request) -> int:
    """The process of the command.

    Raises:
        _Failed: it cannot be started.
    """
    failed, failing = (_own(fd) for fd in os.pipe())
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(request, failing, keeper)
    os.close(failing)
    # closed without a word as soon as the command runs
    with os.fdopen(failed, "rb") as file:
        words = file.read()
    if words:
        os.waitpid(pid, 0)
        raise _Failed(words)
    return pid


class _Failed(Exception):
    pass


def _become(request: _Request, failing: int, keeper: int) -> NoReturn:
    stage = "session"
    try:
        os.setsid()
        stage = "user"
        if request["user"] is not None:
            os.setgroups([])
            os.setgid(request["user"])
            os.setuid(request["user"])
        # not before: a change of the user takes it back
        _prctl(_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)
        stage = "limits"
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for name, value in request["limits"].items():
            _limit(_LIMITS[name], value)
        stage = "cwd"
        if request["cwd"] is not None:
            os.chdir(request["cwd"])
        stage = "exec"
        for name, place in (("answer", ANSWER_FD), ("extra", EXTRA_FD)):
            if request[name] is not None:
                os.dup2(request[name], place)
        # Python has these ignored, and a command would inherit that
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored, signal.SIG_DFL)
        os.execvpe(request["argv"][0], request["argv"], request["env"])
    except BaseException as error:  # noqa: BLE001 - whatever it is, we must not go on as the keeper
        number = error.errno if isinstance(error, OSError) else None
        words = {"stage": stage, "errno": number, "error": f"{type(error).__name__}: {error}"}
        os.write(failing, json.dumps(words).encode())
    os._exit(127)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    # the first signal for the time of the processor can be caught; the one a second later cannot
    spare = 1 if kind == resource.RLIMIT_CPU else 0
    soft, most = value, value + spare
    if hard != resource.RLIM_INFINITY:
        soft, most = min(soft, hard), min(most, hard)
    resource.setrlimit(kind, (soft, most))


def _prctl(option: int, value: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _own(fd: int) -> int:
    """The same file under a number of our own, which the command does not inherit."""
    own = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST_OWN_FD)
    os.close(fd)
    return own


def _request_from(control: socket.socket) -> _Request:
    with control.makefile("rb", buffering=0) as file:
        (length,) = struct.unpack("!I", _exactly(file, 4))
        request: _Request = json.loads(_exactly(file, length))
    for name in ("answer", "extra"):
        if request[name] is not None:
            request[name] = _own(request[name])
    return request


def _exactly(file: io.RawIOBase | socket.SocketIO, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = file.read(length - len(data))
        if not more:
            sys.exit(0)
        data += more
    return data


def tell(control: socket.socket, **words: object) -> None:
    """Tells the worker, if it is still there."""
    with suppress(OSError):
        control.sendall(json.dumps(words).encode() + b"\n")


def main() -> None:
    """Keeps the command of the request that comes first."""
    control = socket.socket(fileno=_own(int(sys.argv[1])))
    request = _request_from(control)
    _prctl(_SET_CHILD_SUBREAPER, 1)
    woken, waking = (_own(fd) for fd in os.pipe())
    os.set_blocking(waking, False)
    try:
        command = start(request)
    except _Failed as failure:
        tell(control, failed=json.loads(failure.args[0]))
        return
    tell(control, started=command)
    for name in ("answer", "extra"):
        if request[name] is not None:
            os.close(request[name])
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    # it may have ended before we listened
    os.kill(os.getpid(), signal.SIGCHLD)
    Keeper(control, command, request["total_memory_bytes"]).keep(woken)


if __name__ == "__main__":
    main()
