"""Requests and answers in a few words, for the trace of a schedule. Tasks go by their path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from enum import Enum

from afl.kernel.model import (
    Card,
    Claim,
    Close,
    Commit,
    Committed,
    Renewal,
    Swept,
    Task,
    TaskSpec,
    Worker,
)


def brief(value: object) -> str:
    """What matters of a value."""
    if isinstance(value, list | tuple):
        return ", ".join(brief(item) for item in value) or "nothing"
    writer = _WRITERS.get(type(value))
    if writer is not None:
        return writer(value)
    return str(value.value) if isinstance(value, Enum) else str(value)


def _task(task: Task) -> str:
    outcome = "" if task.outcome is None else f" {task.outcome.value}"
    return f"{task.input} {task.state.value}{outcome}"


def _claim(claim: Claim) -> str:
    replies = " ".join(f"{call.key}={call.status.value}" for call in claim.replies)
    return f"{claim.task.input} with fence {claim.fence}" + (f" ({replies})" if replies else "")


def _commit(commit: Commit) -> str:
    then = commit.then
    end = then.outcome.value if isinstance(then, Close) else type(then).__name__.lower()
    calls = "".join(f" +{call.key}" for call in commit.calls)
    return f"fence {commit.fence} number {commit.number}: {end}{calls}"


def _committed(committed: Committed) -> str:
    eager = f", gets {brief(committed.eager)}" if committed.eager else ""
    return _task(committed.task) + eager


def _swept(swept: Swept) -> str:
    found = {name: count for name, count in asdict(swept).items() if count}
    return ", ".join(f"{name} {count}" for name, count in found.items()) or "nothing"


def _renewal(renewal: Renewal) -> str:
    lost = f", lost {brief(renewal.lost)}" if renewal.lost else ""
    stop = f", stop {brief(renewal.stop)}" if renewal.stop else ""
    stray = f", stray {brief(renewal.stray)}" if renewal.stray else ""
    return f"until {renewal.expires_at:%H:%M:%S}{lost}{stop}{stray}"


def _spec(spec: TaskSpec) -> str:
    return str(spec.input)


def _worker(worker: Worker) -> str:
    return f"until {worker.expires_at:%H:%M:%S}"


def _card(card: Card) -> str:
    return f"{card.kind} {card.content}"


_WRITERS: dict[type, Callable[..., str]] = {
    Task: _task,
    Claim: _claim,
    Commit: _commit,
    Committed: _committed,
    Swept: _swept,
    Renewal: _renewal,
    TaskSpec: _spec,
    Worker: _worker,
    Card: _card,
}
