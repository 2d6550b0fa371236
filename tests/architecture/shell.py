"""A bash that stays open for a page, so that its blocks are typed into one session."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

# Commands come in through one pipe, and how each ended goes out through another, so that no command
# can read the one or write to the other. What they print goes to a file, which a process in the
# background may keep open without anybody waiting for it.
_LOOP = """
__status=0
while IFS= read -r -d '' -u "$1" __command; do
  (exit "$__status")
  eval "$__command" {fds} >> "$0" 2>&1
  __status=$?
  printf '%s %s\\0' "$__status" "$PWD" >& "$2"
done < /dev/null 2> /dev/null
"""


class ShellEnded(Exception):
    """The shell is gone, or has not answered in time."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command printed, how it ended and where it left the session."""

    output: str
    status: int
    cwd: Path


class Shell:
    """One session. Variables, functions and what runs in the background stay from one command to
    the next; `close` kills all of it."""

    def __init__(self, cwd: Path, environment: Mapping[str, str], printed: Path) -> None:
        self._printed = printed
        # that a process in the background was killed is said at some point by bash, under its $0
        self._notice = re.compile(rf"^{re.escape(str(printed))}: line \d+: +\d+ .*\n", re.MULTILINE)
        self._offset = printed.stat().st_size
        commands, self._commands = os.pipe()
        self._ends, ends = os.pipe()
        loop = _LOOP.replace("{fds}", f"{commands}<&- {ends}>&-")
        self._process = subprocess.Popen(
            ["bash", "-c", loop, str(printed), str(commands), str(ends)],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(commands, ends),
            start_new_session=True,
        )
        os.close(commands)
        os.close(ends)

    def run(self, command: str, timeout_seconds: float) -> Ended:
        """Types one command and waits until it has ended.

        Raises:
            ShellEnded: it has ended the session, or takes too long.
        """
        with suppress(BrokenPipeError):
            os.write(self._commands, command.encode() + b"\0")
        answer, limit = b"", monotonic() + timeout_seconds
        while not answer.endswith(b"\0"):
            if not select.select([self._ends], [], [], max(0.0, limit - monotonic()))[0]:
                raise ShellEnded(f"takes more than {timeout_seconds:g} s and prints\n{self._new()}")
            read = os.read(self._ends, 4096)
            if not read:
                raise ShellEnded(f"ends the shell, which printed\n{self._new()}")
            answer += read
        status, _, cwd = answer[:-1].decode().partition(" ")
        return Ended(self._new(), int(status), Path(cwd))

    def _new(self) -> str:
        with self._printed.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        self._offset += len(text)
        return self._notice.sub("", text.decode(errors="replace"))

    def close(self) -> None:
        """Kills the session with all that it has left in the background."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._commands)
        os.close(self._ends)
