"""What log lines say about the task that they are written for."""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

from afl.kernel.model import Task


def trace_id(run: str) -> int:
    """The trace of a run, and of all that it has called: the number of the run's id."""
    try:
        return UUID(run).int
    except ValueError:  # work that belongs to no run has a name of its own
        return int.from_bytes(sha256(run.encode()).digest()[:16], "big")


def place_of(task: Task) -> tuple[str, str]:
    """The run and the path of the step that a task is for; a tool call hangs below its step."""
    given = task.input if isinstance(task.input, dict) else {}
    step = given.get("step")
    path = step.partition("#")[0] if isinstance(step, str) else ""
    return str(given.get("run") or task.run), path


def task_fields(task: Task) -> dict[str, str | int]:
    """The fields of the lines that are logged while a task is worked on."""
    run, step = place_of(task)
    fields: dict[str, str | int] = {
        "run": run,
        "step": step,
        "task": task.id,
        "facet": task.name,
        "attempt": task.failures + 1,
        "worker": task.worker or "",
        "tenant": task.tenant,
        "trace": f"{trace_id(task.run):032x}",
    }
    return {name: value for name, value in fields.items() if value != ""}
