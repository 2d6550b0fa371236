"""What can go wrong with running a command, apart from how the command itself ends."""

from __future__ import annotations

from afl.base.errors import AflError


class ExecError(AflError):
    """A command could not be run."""

    code = "exec"


class CannotStart(ExecError):
    """The command cannot be started here."""

    code = "exec.cannot_start"


class KeeperLost(ExecError):
    """The process that keeps the command is gone, and the command with it."""

    code = "exec.keeper_lost"
    retryable = True


class SandboxMissing(ExecError):
    """There is no sandbox on this machine."""

    code = "exec.sandbox_missing"


class BadArtifact(ExecError):
    """A file cannot be kept as an artifact."""

    code = "exec.bad_artifact"


class CannotExecute(ExecError):
    """Commands cannot be run on this machine."""

    code = "exec.cannot_execute"
