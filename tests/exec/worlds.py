"""What there is outside of the sandbox, for attempts to get at it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from afl.exec.errors import SandboxMissing
from afl.exec.sandbox import Sandbox
from afl.kernel.model import Json

#: What the sandbox may have at the top.
_ROOT = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "proc", "dev", "tmp")


def sandbox_or_skip() -> Sandbox:
    try:
        return Sandbox.find()
    except SandboxMissing as error:
        pytest.skip(error.message)


def processes_with(marker: str) -> list[int]:
    """The processes of this machine with a text in their command lines, but for the dead."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@contextmanager
def outside(folder: Path, marker: str) -> Iterator[dict[str, Json]]:
    """Secrets, sockets and a process, all in reach of anybody who is not in the sandbox."""
    for each in (folder, *folder.parents):
        if each.owner() == folder.owner() and os.access(each, os.W_OK) and each != Path("/tmp"):
            each.chmod(each.stat().st_mode | 0o055)
        if each == Path("/tmp"):
            break
    secret = folder / "secret"
    secret.write_text(f"{marker} of the worker", encoding="utf-8")
    secret.chmod(0o644)
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        abstract = f"afl-{uuid4().hex}"
        for address in (f"\0{abstract}", str(folder / "socket")):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            listener.bind(address)
            listener.listen()
        # a descriptor that a careless worker would leave to its children
        leaked = os.open(secret, os.O_RDONLY)
        os.set_inheritable(leaked, True)
        stack.callback(os.close, leaked)
        code = f"import time; time.sleep(600) # victim {marker}"
        victim = stack.enter_context(subprocess.Popen([sys.executable, "-c", code]))
        stack.callback(victim.kill)
        yield {
            "secret": str(secret),
            "folder": str(folder),
            "marker": marker,
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "abstract": abstract,
            "socket": str(folder / "socket"),
            "pid": os.getpid(),
            "victim": victim.pid,
            "root": list(_ROOT),
        }
        udp.setblocking(False)
        with pytest.raises(BlockingIOError):
            udp.recv(1)
        assert victim.poll() is None, "the victim was killed"
        assert secret.read_text(encoding="utf-8") == f"{marker} of the worker"
        assert sorted(each.name for each in folder.iterdir()) == ["secret", "socket"]
