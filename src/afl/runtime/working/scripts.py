"""The handler of scripts: each runs in a process of its own, never in ours.

The process gets the code and the arguments as JSON through its standard input and answers the same
way. It has no environment, an empty folder to work in, and limits of time, memory and file size.
That keeps honest scripts apart; it is no prison for hostile ones.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from time import monotonic

from afl.kernel.model import Json
from afl.runtime.handler_table import Invocation, Permanent, Result
from afl.runtime.working.outcomes import attempt_seconds, facet_of

#: The limits of a script that has none of its own.
SCRIPT_SECONDS = 60.0
SCRIPT_MEMORY_BYTES = 1 << 30
SCRIPT_FILE_BYTES = 64 << 20
_LOOK_SECONDS = 0.2

# What the script prints must not get into the answer, so it goes to the errors.
_BOOT = """
import json, os, resource, sys
given = json.load(sys.stdin)
for limit, value in given["limits"].items():
    resource.setrlimit(getattr(resource, limit), (value, value))
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
scope = {"__name__": "__script__", "params": given["params"], "result": {}}
exec(compile(given["script"], given["name"], "exec"), scope)
json.dump(scope["result"], answer, allow_nan=False)
answer.close()
"""


class ScriptFailed(Exception):
    """A script has ended with an error."""


class Timeout(Exception):
    """A script took longer than it may."""


def run_script(invocation: Invocation) -> Result:
    """The result of the script of a task."""
    task = invocation.task
    given = task.input if isinstance(task.input, dict) else {}
    name, code = facet_of(task), given.get("script")
    if not isinstance(code, str):
        raise Permanent(f"The task {task.id} has no script.")
    seconds = attempt_seconds(task) or SCRIPT_SECONDS
    request: Json = {
        "script": code,
        "params": invocation.params,
        "name": f"script of {name}",
        "limits": {
            "RLIMIT_CPU": int(seconds) + 1,
            "RLIMIT_AS": SCRIPT_MEMORY_BYTES,
            "RLIMIT_FSIZE": SCRIPT_FILE_BYTES,
            "RLIMIT_CORE": 0,
        },
    }
    with tempfile.TemporaryDirectory(prefix="afl-script-") as folder:
        status, output, errors = _run(json.dumps(request), folder, seconds, invocation)
    if status != 0:
        raise ScriptFailed(_last_line(errors) or f"The script of {name} ended with status {status}")
    result: Json = json.loads(output)
    if not isinstance(result, dict):
        raise Permanent(f"The script of `{name}` has made `result` something that is not a dict.")
    return result


def _run(request: str, folder: str, seconds: float, invocation: Invocation) -> tuple[int, str, str]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", _BOOT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={},
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    end = monotonic() + seconds
    try:
        given: str | None = request
        while True:
            left = end - monotonic()
            try:
                output, errors = process.communicate(given, max(0.0, min(left, _LOOK_SECONDS)))
            except subprocess.TimeoutExpired:
                given = None
                if left <= 0:
                    raise Timeout(f"The script took longer than {seconds:g} s.") from None
                if invocation.cancelled.is_set():
                    raise ScriptFailed("The script was stopped.") from None
                continue
            return process.returncode, output, errors
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Leaves nothing behind, whatever the script has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    process.wait()


def _last_line(errors: str) -> str:
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return lines[-1][:2000] if lines else ""
