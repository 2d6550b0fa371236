"""Checks of what is deployed, who serves it, and what is stuck."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from afl.cli.doctoring.findings import Finding, ok, warn
from afl.cli.running.serving import lists_of, unserved
from afl.cli.running.tables import short
from afl.cli.terminal import count
from afl.kernel.model import State
from afl.runtime.calls import BUDGETS, EXECUTE, PEOPLE, SIGNALS, TIMERS
from afl.runtime.operations import Operations

_OLD = timedelta(minutes=1)
_LOOKED_AT = 1000
_NAMED = 5
_FOR_NO_WORKER = (TIMERS, SIGNALS, PEOPLE, BUDGETS)


def check_workings(operations: Operations) -> Iterator[Finding]:
    """Everything about a database that can be reached and has its schema."""
    yield _deployed(operations)
    yield from _workers(operations)
    yield _dead_letters(operations)
    yield _oldest(operations)


def _deployed(operations: Operations) -> Finding:
    names = operations.persistence.deployments()
    if not names:
        return warn("deployed", "no program is deployed", "afl deploy FLOWS")
    return ok("deployed", ", ".join(f"{name} {digest[:14]}" for name, digest in names.items()))


def _workers(operations: Operations) -> Iterator[Finding]:
    workers = operations.workers()
    handlers = {name for worker in workers for name in worker.handlers}
    if not workers:
        yield warn("workers", "no worker is there", "afl worker --handlers MODULE")
    elif EXECUTE not in handlers:
        yield warn("workers", "no worker advances runs", "afl worker")
    else:
        slots = sum(worker.slots for worker in workers)
        yield ok("workers", f"{count(len(workers), 'worker')}, {count(slots, 'slot')}")
    lists = {name for worker in workers for name in worker.lists}
    for name, digest in operations.persistence.deployments().items():
        program = operations.evaluator.plans.get(digest).program
        missing = unserved(program, handlers)
        if missing:
            listed = ", ".join(missing[:_NAMED])
            more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
            text = f"no live worker serves {listed}{more} of `{name}`"
            yield warn("facets", text, "afl worker --handlers MODULE")
        else:
            yield ok("facets", f"every facet of `{name}` is served")
        for each in lists_of(program):
            if workers and each not in lists:
                text = f"no live worker serves the list {each} of `{name}`"
                yield warn("lists", text, f"afl worker --list {each} --handlers MODULE")


def _dead_letters(operations: Operations) -> Finding:
    found = len(operations.dead_letters(limit=_LOOKED_AT))
    if not found:
        return ok("dead letters", "none")
    told = f"{_LOOKED_AT} or more" if found == _LOOKED_AT else str(found)
    return warn("dead letters", f"{told} given up", "afl dlq list")


def _oldest(operations: Operations) -> Finding:
    """How long the oldest task waits that any worker may take."""
    now = operations.persistence.now()
    waits = [
        now - task.run_at
        for task in operations.tasks(state=State.READY, limit=_LOOKED_AT)
        if task.run_at <= now and task.list not in _FOR_NO_WORKER
    ]
    if not waits:
        return ok("oldest task", "nothing waits for a worker")
    longest = short(max(waits))
    text = f"the oldest of {count(len(waits), 'task')} for workers waits {longest}"
    if max(waits) < _OLD:
        return ok("oldest task", text)
    return warn("oldest task", text, "afl tasks list --state ready")
