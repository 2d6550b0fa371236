"""The scripts of flows, run in the sandbox: what they read, write and may use stays the same."""

from __future__ import annotations

from afl.bridges.process_errors import OutOfMemory
from afl.exec.errors import ExecError
from afl.exec.model import Limits
from afl.exec.process import run
from afl.exec.python import python_command, result_of
from afl.exec.sandbox import Sandbox
from afl.runtime.handler_table import HandlerFunction, Invocation, Permanent, Result
from afl.runtime.working.outcomes import attempt_seconds, facet_of
from afl.runtime.working.scripts import (
    SCRIPT_FILE_BYTES,
    SCRIPT_MEMORY_BYTES,
    SCRIPT_SECONDS,
    ScriptFailed,
    Timeout,
)


def sandboxed_scripts(sandbox: Sandbox) -> HandlerFunction:
    """The handler of scripts that runs each in the sandbox."""

    def run_script(invocation: Invocation) -> Result:
        task = invocation.task
        given = task.input if isinstance(task.input, dict) else {}
        name, code = facet_of(task), given.get("script")
        if not isinstance(code, str):
            raise Permanent(f"The task {task.id} has no script.")
        seconds = attempt_seconds(task) or SCRIPT_SECONDS
        command = python_command(
            sandbox,
            code,
            {"params": invocation.params, "result": {}},
            title=f"script of {name}",
            timeout_seconds=seconds,
            limits=Limits(memory_bytes=SCRIPT_MEMORY_BYTES, file_bytes=SCRIPT_FILE_BYTES),
        )
        try:
            outcome = run(command, stop=invocation.cancelled)
        except ExecError as error:
            raise ScriptFailed(error.message) from error
        if outcome.timed_out:
            raise Timeout(f"The script took longer than {seconds:g} s.")
        if outcome.stopped:
            raise ScriptFailed("The script was stopped.")
        if outcome.out_of_memory:
            raise OutOfMemory(f"script of {name}", outcome)
        if outcome.exit_code != 0:
            end = outcome.signal or f"status {outcome.exit_code}"
            told = outcome.stderr.last_lines(1)
            raise ScriptFailed(told[0][:2000] if told else f"The script of {name} ended with {end}")
        try:
            result = result_of(outcome)
        except ValueError as error:
            raise Permanent(f"The script of `{name}` ended well, but {error}.") from error
        if not isinstance(result, dict):
            raise Permanent(
                f"The script of `{name}` has made `result` something that is not a dict."
            )
        return result

    return run_script
