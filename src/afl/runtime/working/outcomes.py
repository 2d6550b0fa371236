"""What an attempt came to, as the kernel is told. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from afl.kernel.errors import BadRequest
from afl.kernel.model import CallStatus, Close, Json, Outcome, Task
from afl.kernel.requests import json_copy
from afl.kernel.rules import status_of
from afl.runtime.conversions import WrongValue
from afl.runtime.handler_table import Permanent

#: The type of the error of a handler whose result is not one.
BAD_RESULT = "BadResult"
TIMEOUT = "Timeout"


def close_of_result(handler: str, result: object) -> Close:
    """The end of a task whose handler has answered."""
    if not isinstance(result, Mapping):
        return bad_result(
            handler, f"answered with a {type(result).__name__}; a handler answers with a dict"
        )
    try:
        return Close(Outcome.SUCCESS, json_copy(dict(result), "the result"))
    except BadRequest as error:
        return bad_result(handler, f"answered with something that is not JSON: {error}")


def bad_result(handler: str, message: str) -> Close:
    """The end of a task whose handler has answered with what cannot be an answer."""
    error: Json = {"type": BAD_RESULT, "message": f"The handler `{handler}` {message}."}
    return Close(Outcome.FAILED, error=error, permanent=True)


def close_of_error(task: Task, error: BaseException) -> Close:
    """The end of an attempt whose handler has raised."""
    # an error may bring the type under which flows know it
    kind = str(getattr(error, "error_type", type(error).__name__))
    permanent = isinstance(error, Permanent | WrongValue)
    return _failed(task, kind, str(error) or kind, permanent=permanent)


def close_of_timeout(task: Task, seconds: float) -> Close:
    """The end of an attempt that took longer than it may."""
    return _failed(task, TIMEOUT, f"`{facet_of(task)}` took longer than {seconds:g} s.")


def reply_of(close: Close) -> tuple[CallStatus, Json]:
    """The answer that closing a task this way gives to its caller."""
    body = close.error if close.outcome is Outcome.FAILED else close.result
    return status_of(close.outcome), body


def facet_of(task: Task) -> str:
    """The name of the facet that a task serves."""
    given = task.input
    facet = given.get("facet") if isinstance(given, dict) else None
    return facet if isinstance(facet, str) else task.name


def attempt_seconds(task: Task) -> float | None:
    """How long one attempt may take."""
    given = task.input
    limit = given.get("attempt_timeout_ms") if isinstance(given, dict) else None
    return limit / 1000 if isinstance(limit, int) else None


def run_of(task: Task) -> str | None:
    """The run for which a task is done."""
    given = task.input
    run = given.get("run") if isinstance(given, dict) else None
    return run if isinstance(run, str) else None


def step_of(task: Task) -> str | None:
    """The path of the step for which a task is done."""
    given = task.input
    step = given.get("step") if isinstance(given, dict) else None
    return step if isinstance(step, str) else None


def is_irreversible(task: Task) -> bool:
    """Whether nothing can take back what doing the task does to the world."""
    return isinstance(task.input, dict) and task.input.get("effect") == "irreversible"


def is_guarded(task: Task) -> bool:
    """Whether a circuit breaker stands before the work."""
    return isinstance(task.input, dict) and "breaker" in task.input


def needs_task(given: Json) -> bool:
    """Whether work with this input is to be seen by others: nothing can take it back, or it may
    have to wait for a circuit breaker."""
    return isinstance(given, dict) and (given.get("effect") == "irreversible" or "breaker" in given)


def _failed(task: Task, kind: str, message: str, *, permanent: bool = False) -> Close:
    given = task.input
    retry_on = given.get("retry_on") if isinstance(given, dict) else None
    if isinstance(retry_on, list) and kind not in retry_on:
        permanent = True
    error: Json = {"type": kind, "message": _storable(message)}
    return Close(Outcome.FAILED, error=error, permanent=permanent)


def _storable(text: str) -> str:
    """A message of somebody else's code, without what a store cannot take."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
