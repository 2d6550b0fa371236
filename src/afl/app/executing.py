"""What a worker needs to run commands: its environment for them, the sandbox, where files go.

Running the commands of programs is a matter of trust, so it is off unless a worker is told to.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass

from afl.base.settings import environment
from afl.bridges.processes import Processes, Sinks, no_log
from afl.bridges.sandboxed_scripts import sandboxed_scripts
from afl.exec.artifacts import Artifacts
from afl.exec.errors import CannotExecute, SandboxMissing
from afl.exec.process import Children
from afl.exec.sandbox import Sandbox
from afl.runtime.handler_table import HandlerFunction, HandlerTable

#: How many commands a worker runs at once.
EXEC_SLOTS = 5
#: What commands get of the worker's environment. The rest may hold secrets.
_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR")


@dataclass(frozen=True, slots=True)
class ExecWish:
    """How a worker is to run commands."""

    slots: int = EXEC_SLOTS
    #: variables of the worker that commands get too
    env: tuple[str, ...] = ()
    #: the folder where artifacts are kept; None for nowhere
    artifacts: str | None = None


class Executing:
    """The commands of a worker."""

    def __init__(self, wish: ExecWish, sinks: Sinks = no_log) -> None:
        """Tries the sandbox once.

        Raises:
            CannotExecute: commands cannot be run on this machine.
        """
        if sys.platform != "linux":
            raise CannotExecute(f"Commands are run on Linux only, and this is {sys.platform}.")
        own = environment()
        missing = [name for name in wish.env if name not in own]
        if missing:
            raise CannotExecute(
                f"Commands are to get {', '.join(missing)}, but this worker does not have it."
            )
        passed = {name: own[name] for name in (*_PASSED_ON, *wish.env) if name in own}
        #: why there is no sandbox; None if there is one
        self.problem: str | None = None
        sandbox: Sandbox | str
        try:
            sandbox = Sandbox.find()
        except SandboxMissing as missing_sandbox:
            sandbox = self.problem = missing_sandbox.message
        self.slots = wish.slots
        self._processes = Processes(
            environment=passed,
            slots=wish.slots,
            sandbox=sandbox,
            artifacts=None if wish.artifacts is None else Artifacts(wish.artifacts),
            sinks=sinks,
        )

    @property
    def facets(self) -> Collection[str]:
        """The facets that it serves."""
        return self._processes.handlers()

    @property
    def children(self) -> Children:
        """The commands that run."""
        return self._processes.children

    def end(self) -> None:
        """Kills all commands, and lets no more start."""
        self.children.end()

    def add_to(self, table: HandlerTable) -> None:
        """Has a table serve the facets."""
        for name, function in self._processes.handlers().items():
            table.register(name, function)


def script_handler() -> HandlerFunction:
    """What runs the scripts of flows in the sandbox.

    Raises:
        SandboxMissing: there is none on this machine.
    """
    return sandboxed_scripts(Sandbox.find())
