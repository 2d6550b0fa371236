"""The facets of `afl.exec`, served by processes: arguments to a command, an outcome to returns."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from threading import BoundedSemaphore
from typing import Any

from afl.bridges.process_errors import (
    BadCommand,
    ExitCode,
    NoSandbox,
    OutOfMemory,
    Stopped,
    TimedOut,
)
from afl.exec.artifacts import Artifact, Artifacts, check_patterns
from afl.exec.errors import BadArtifact, CannotStart
from afl.exec.lines import DroppedLines, LineSink
from afl.exec.model import Command, Limits, Outcome
from afl.exec.process import Children, WorkerEnds, run
from afl.exec.python import python_command, result_of
from afl.exec.sandbox import Sandbox
from afl.kernel.model import Json
from afl.runtime.handler_table import HandlerFunction, Invocation, Result

COMMAND, SHELL, UV, PYTHON = (f"afl.exec.{name}" for name in ("Command", "Shell", "Uv", "Python"))
#: Who takes the lines of an attempt, from its start to its end.
Sinks = Callable[[Invocation], AbstractContextManager[LineSink]]

_LOOK_SECONDS = 0.2
#: How long a command that was killed waits for its worker to hand the task back.
_HAND_BACK_SECONDS = 60.0


def no_log(_invocation: Invocation) -> AbstractContextManager[LineSink]:
    """Drops all lines."""
    return nullcontext(DroppedLines())


class Processes:
    """Serves the facets. Threads share it."""

    def __init__(
        self,
        environment: Mapping[str, str],
        slots: int,
        sandbox: Sandbox | str,
        artifacts: Artifacts | None = None,
        sinks: Sinks = no_log,
    ) -> None:
        """
        Args:
            environment: what every command finds.
            slots: how many commands run at once.
            sandbox: the sandbox, or why there is none.
            artifacts: where files are kept; None if nowhere.
        """
        self.children = Children()
        self._environment = environment
        self._sandbox = sandbox
        self._artifacts = artifacts
        self._sinks = sinks
        self._free = BoundedSemaphore(slots)

    def handlers(self) -> dict[str, HandlerFunction]:
        """What serves which facet. Python code runs in the sandbox or not at all."""
        found: dict[str, HandlerFunction] = {
            COMMAND: lambda invocation: self._serve(invocation, _argv_of_command),
            SHELL: lambda invocation: self._serve(invocation, _argv_of_shell),
            UV: lambda invocation: self._serve(invocation, self._argv_of_uv),
        }
        if isinstance(self._sandbox, Sandbox):
            found[PYTHON] = self._serve_python
        return found

    def _serve(
        self, invocation: Invocation, argv_of: Callable[[Mapping[str, Json]], tuple[str, ...]]
    ) -> Result:
        params = invocation.params
        patterns = _texts(params.get("artifacts"))
        command = self._command(invocation, argv_of(params))
        if patterns:
            self._check_artifacts(params, patterns)
        outcome = self._run(command, invocation)
        ok_codes = params.get("ok_codes")
        name = os.path.basename(argv_of(params)[0])
        _raise_unless(outcome, name, ok_codes if isinstance(ok_codes, list) else [0])
        kept = self._keep(command, patterns) if patterns else []
        return {
            **_told(outcome),
            "exit_code": outcome.exit_code,
            "signal": outcome.signal,
            "artifacts": [asdict(each) for each in kept],
        }

    def _serve_python(self, invocation: Invocation) -> Result:
        assert isinstance(self._sandbox, Sandbox)
        params = invocation.params
        command = python_command(
            self._sandbox,
            str(params["code"]),
            {"inputs": params.get("inputs"), "result": None},
            title="<python>",
            env=_identity(invocation),
            timeout_seconds=_seconds(params.get("timeout")) or 0.0,
            limits=_limits(params.get("limits")),
        )
        outcome = self._run(command, invocation)
        _raise_unless(outcome, "the Python code", [0])
        try:
            result: Json = result_of(outcome)
        except ValueError as error:
            raise BadCommand(f"The Python code ended well, but {error}.") from error
        return {**_told(outcome), "result": result}

    def _command(self, invocation: Invocation, argv: tuple[str, ...]) -> Command:
        params = invocation.params
        given = params.get("env")
        env = {name: str(value) for name, value in given.items()} if isinstance(given, dict) else {}
        stdin, cwd = params.get("stdin"), params.get("cwd")
        limits = _limits(params.get("limits"))
        common: dict[str, Any] = {
            "stdin": stdin.encode() if isinstance(stdin, str) else None,
            "timeout_seconds": _seconds(params.get("timeout")),
            "limits": limits,
        }
        if params.get("sandbox") is True:
            if isinstance(self._sandbox, str):
                raise NoSandbox(self._sandbox)
            if cwd is not None or params.get("artifacts"):
                raise BadCommand(
                    "A command in the sandbox sees no folder of this machine: leave `cwd` and "
                    "`artifacts` out."
                )
            return self._sandbox.command(argv, env={**_identity(invocation), **env}, **common)
        env = {**self._environment, **_identity(invocation), **env}
        return Command(argv, env, cwd=cwd if isinstance(cwd, str) else None, **common)

    def _argv_of_uv(self, params: Mapping[str, Json]) -> tuple[str, ...]:
        script, args = params.get("script"), _texts(params.get("args"))
        if script is None and not args:
            raise BadCommand("`afl.exec.Uv` needs a `script`, or a command as `args`.")
        given = params.get("env")
        path = given.get("PATH") if isinstance(given, dict) else None
        uv = shutil.which("uv", path=str(path or self._environment.get("PATH") or os.defpath))
        if uv is None:
            raise BadCommand(
                "There is no `uv` on the PATH of this worker. Install it there, or give the step a "
                "queue that only workers with `uv` serve."
            )
        project = params.get("project")
        where = ("--project", str(project)) if project is not None else ()
        extra = tuple(part for each in _texts(params.get("packages")) for part in ("--with", each))
        what = (str(script),) if script is not None else ()
        return (uv, "run", *where, *extra, "--", *what, *args)

    def _run(self, command: Command, invocation: Invocation) -> Outcome:
        """The end of a command, when there was room for it."""
        while not self._free.acquire(timeout=_LOOK_SECONDS):
            if invocation.cancelled.is_set():
                raise Stopped("The command was stopped before it began.")
        try:
            with self._sinks(invocation) as sink:
                return run(command, sink=sink, stop=invocation.cancelled, children=self.children)
        except CannotStart as error:
            raise BadCommand(error.message) from error
        except WorkerEnds:
            # an answer would count; the worker hands the task back, for others to do it
            invocation.cancelled.wait(_HAND_BACK_SECONDS)
            raise
        finally:
            self._free.release()

    def _check_artifacts(self, params: Mapping[str, Json], patterns: list[str]) -> None:
        if self._artifacts is None:
            raise BadCommand(
                "This worker keeps no artifacts: start it with `--artifacts DIR`, or leave "
                "`artifacts` out."
            )
        try:
            check_patterns(patterns)
        except BadArtifact as error:
            raise BadCommand(error.message) from error

    def _keep(self, command: Command, patterns: list[str]) -> list[Artifact]:
        assert self._artifacts is not None
        try:
            return self._artifacts.keep(command.cwd or os.getcwd(), patterns)
        except BadArtifact as error:
            raise BadCommand(error.message) from error


def _argv_of_command(params: Mapping[str, Json]) -> tuple[str, ...]:
    argv = tuple(_texts(params.get("argv")))
    if not argv:
        raise BadCommand("`argv` is empty: its first element is the program.")
    return argv


def _argv_of_shell(params: Mapping[str, Json]) -> tuple[str, ...]:
    return ("/bin/sh", "-c", str(params["script"]))


def _raise_unless(outcome: Outcome, name: str, ok_codes: list[Json]) -> None:
    """Raises what has gone wrong."""
    if outcome.stopped:
        raise Stopped(f"`{name}` was stopped.")
    if outcome.timed_out:
        raise TimedOut(name, outcome)
    if outcome.out_of_memory:
        raise OutOfMemory(name, outcome)
    if outcome.exit_code not in ok_codes:
        raise ExitCode(name, outcome)


def _told(outcome: Outcome) -> dict[str, Json]:
    """The returns that all facets have."""
    return {
        "stdout": outcome.stdout.text,
        "stderr": outcome.stderr.text,
        "stdout_cut": outcome.stdout.cut_bytes,
        "stderr_cut": outcome.stderr.cut_bytes,
        "duration": round(outcome.duration_seconds * 1000),
        "cpu": round(outcome.usage.cpu_seconds * 1000),
        "max_rss": outcome.usage.max_rss_bytes,
    }


def _identity(invocation: Invocation) -> dict[str, str]:
    """What tells a command which step it does the work of, and how often it was tried."""
    given = invocation.task.input if isinstance(invocation.task.input, dict) else {}
    run_id, step = str(given.get("run") or invocation.task.run), str(given.get("step") or "")
    return {
        "AGENTFLOW_RUN": run_id,
        "AGENTFLOW_STEP": step,
        "AGENTFLOW_ATTEMPT": str(invocation.attempt),
        "AGENTFLOW_IDEMPOTENCY_KEY": f"{run_id}:{step}",
    }


def _limits(given: Json) -> Limits:
    if not isinstance(given, dict):
        return Limits()
    cpu = _seconds(given.get("cpu"))
    return Limits(
        cpu_seconds=None if cpu is None else max(1, round(cpu)),
        memory_bytes=_int(given.get("memory")),
        file_bytes=_int(given.get("file_size")),
        open_files=_int(given.get("open_files")),
        processes=_int(given.get("processes")),
    )


def _texts(given: Json) -> list[str]:
    return [str(each) for each in given] if isinstance(given, list) else []


def _int(given: Json) -> int | None:
    return given if isinstance(given, int) else None


def _seconds(given: Json) -> float | None:
    return given / 1000 if isinstance(given, int) else None
