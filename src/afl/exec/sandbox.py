"""The sandbox: a command sees a bare, read-only system, no network and no process but its own.

Bubblewrap makes it of namespaces: the user is nobody, without capabilities; `/usr` is there to read
and `/tmp` to write, in memory and bounded; nothing else of this machine is. A filter of system
calls and limits come on top. Where all this cannot be had there is no sandbox: it is refused, never
weakened.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from afl.exec import seccomp
from afl.exec.errors import ExecError, SandboxMissing
from afl.exec.keeper import EXTRA_FD
from afl.exec.model import Command, Limits
from afl.exec.process import run

NOBODY = 65534
#: The limits of what has none of its own.
SANDBOX_LIMITS = Limits(memory_bytes=1 << 30, file_bytes=64 << 20, open_files=256, processes=32)
#: What all processes of a sandbox may have in memory together.
TOTAL_MEMORY_BYTES = 2 << 30
_TMP_BYTES = 64 << 20
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_PROBE_SECONDS = 30.0
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}

# Set inside: there the count of processes is that of this sandbox alone.
_LIMIT_AND_EXEC = """
import json, os, resource, sys
kinds = {"cpu_seconds": "CPU", "memory_bytes": "AS", "file_bytes": "FSIZE",
         "open_files": "NOFILE", "processes": "NPROC"}
for name, value in json.loads(sys.argv[1]).items():
    resource.setrlimit(getattr(resource, "RLIMIT_" + kinds[name]), (value, value))
os.execvp(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """How commands are put into the sandbox on this machine."""

    bwrap: str
    #: an interpreter that is there inside too
    python: str
    #: what the interpreter needs beside the system
    prefix: str | None
    #: whom to become before; None to stay who we are
    user: int | None
    machine: str

    @classmethod
    def find(cls) -> Sandbox:
        """The sandbox of this machine, tried once.

        Raises:
            SandboxMissing: there is none; the message says why and what to do.
        """
        machine = platform.machine()
        if sys.platform != "linux" or not seccomp.has_filter(machine):
            raise SandboxMissing(f"The sandbox needs Linux on x86_64 or aarch64, not {machine}.")
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise SandboxMissing(
                "The sandbox needs bubblewrap, and there is no `bwrap`: install the package "
                "`bubblewrap`."
            )
        user = NOBODY if os.geteuid() == 0 else None
        problems = []
        for python, prefix in _interpreters():
            found = cls(bwrap, python, prefix, user, machine)
            problem = found._problem()
            if problem is None:
                return found
            problems.append(f"with {python}: {problem}")
        raise SandboxMissing(
            "Bubblewrap cannot make a sandbox here; it needs user namespaces, and a Python that "
            f"nobody may read ({'; '.join(problems)})."
        )

    def command(
        self,
        argv: tuple[str, ...],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        timeout_seconds: float | None = None,
        limits: Limits = SANDBOX_LIMITS,
        answer_bytes: int | None = None,
    ) -> Command:
        """A command as it is run in the sandbox. Limits that are not given are the sandbox's."""
        bounds = {**_given(SANDBOX_LIMITS), **_given(limits)}
        inner = (self.python, "-I", "-S", "-c", _LIMIT_AND_EXEC, json.dumps(bounds), *argv)
        return Command(
            argv=(self.bwrap, *self._walls(), "--", *inner),
            env={**_ENVIRONMENT, **(env or {})},
            cwd="/",
            stdin=stdin,
            timeout_seconds=timeout_seconds,
            answer_bytes=answer_bytes,
            extra=seccomp.program(self.machine),
            user=self.user,
            total_memory_bytes=TOTAL_MEMORY_BYTES,
        )

    def _walls(self) -> Iterator[str]:
        yield from ("--unshare-user", "--unshare-all", "--die-with-parent", "--new-session")
        yield from ("--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "sandbox")
        yield from ("--cap-drop", "ALL", "--ro-bind", "/usr", "/usr")
        for name in _SYSTEM:
            if os.path.islink(f"/{name}"):
                yield from ("--symlink", os.readlink(f"/{name}"), f"/{name}")
            elif os.path.isdir(f"/{name}"):
                yield from ("--ro-bind", f"/{name}", f"/{name}")
        yield from ("--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache")
        if self.prefix is not None:
            yield from ("--ro-bind", self.prefix, self.prefix)
        size = str(_TMP_BYTES)
        yield from ("--proc", "/proc", "--dev", "/dev")
        yield from ("--size", size, "--tmpfs", "/tmp", "--size", size, "--tmpfs", "/dev/shm")
        # what bubblewrap builds on is memory without a bound
        yield from ("--remount-ro", "/dev", "--remount-ro", "/")
        yield from ("--chdir", "/tmp", "--seccomp", str(EXTRA_FD))

    def _problem(self) -> str | None:
        """Why it does not work; None if it does."""
        probe = (self.python, "-I", "-c", "print('works')")
        try:
            outcome = run(self.command(probe, timeout_seconds=_PROBE_SECONDS))
        except (ExecError, OSError) as error:
            return str(error)
        if outcome.exit_code == 0 and outcome.stdout.text == "works\n":
            return None
        told = outcome.stderr.last_lines(1)
        return told[0] if told else f"it ended with {outcome.signal or outcome.exit_code}"


def _given(limits: Limits) -> dict[str, int]:
    return {name: each for name, each in asdict(limits).items() if each is not None}


def _interpreters() -> Iterator[tuple[str, str | None]]:
    """Pythons that the sandbox may have, the worker's own first, each with what it needs."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own = os.path.join(sys.base_prefix, "bin", version)
    if os.path.exists(own):
        own = os.path.realpath(own)
        yield own, None if own.startswith("/usr/") else os.path.realpath(sys.base_prefix)
    for system in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if system != own and os.path.exists(system):
            yield system, None
