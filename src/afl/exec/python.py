"""Python code in the sandbox: values in as JSON, what it calls `result` out as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from afl.exec.keeper import ANSWER_FD
from afl.exec.model import Command, Limits, Outcome
from afl.exec.sandbox import SANDBOX_LIMITS, Sandbox
from afl.kernel.model import Json

#: The longest that code may take which does not say.
PYTHON_SECONDS = 60.0
#: The largest result.
RESULT_BYTES = 4 << 20

_BOOT = f"""
import json, os, sys
given = json.load(sys.stdin.buffer)
answer = os.fdopen({ANSWER_FD}, "w", encoding="ascii")
scope = {{"__name__": "__script__", **given["names"]}}
exec(compile(given["code"], given["title"], "exec"), scope)
json.dump(scope["result"], answer, allow_nan=False)
answer.close()
"""


def python_command(
    sandbox: Sandbox,
    code: str,
    names: Mapping[str, Json],
    *,
    title: str,
    env: Mapping[str, str] | None = None,
    timeout_seconds: float = PYTHON_SECONDS,
    limits: Limits = SANDBOX_LIMITS,
) -> Command:
    """The command that runs code which finds these names, `result` among them."""
    given = {"code": code, "names": dict(names), "title": title}
    if limits.cpu_seconds is None:
        # time that it does not wait for is no longer than the time that it may take
        limits = replace(limits, cpu_seconds=int(timeout_seconds) + 1)
    return sandbox.command(
        (sandbox.python, "-I", "-c", _BOOT),
        env=env,
        stdin=json.dumps(given).encode(),
        timeout_seconds=timeout_seconds,
        limits=limits,
        answer_bytes=RESULT_BYTES,
    )


def result_of(outcome: Outcome) -> Json:
    """What code that ended well has called `result`.

    Raises:
        ValueError: there is none that can be read; the message says why.
    """
    if outcome.answer is None:
        raise ValueError(f"its result is larger than {RESULT_BYTES} bytes")
    try:
        result: Json = json.loads(outcome.answer)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its result is not JSON: {error}") from error
    return result
