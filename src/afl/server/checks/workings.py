"""Checks of what is deployed, who serves it, what waits for nobody, and what is stuck."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta

from afl.app.needs import lists_of, unserved
from afl.base.durations import format_duration
from afl.kernel.model import Worker
from afl.runtime.calls import EXECUTE
from afl.runtime.operations import Operations
from afl.server.checks.findings import Finding, ok, warn
from afl.server.store_reads import store_reads
from afl.server.store_reads.port import Backlog

#: The check that tells of work, which belongs to tenants.
WAITING = "waiting"
_OLD_MINUTES = 1
_LOOKED_AT = 1000
_COUNTED = 10_000
_NAMED = 5
_DEFAULT = "default"


def check_workings(operations: Operations) -> Iterator[Finding]:
    """Everything about a database that can be reached and has its schema."""
    workers = operations.workers()
    backlogs = store_reads(operations.persistence).backlogs(_COUNTED)
    yield _deployed(operations)
    yield _workers(workers)
    yield from _programs(operations, workers)
    yield from _waiting(backlogs, workers)
    yield _dead_letters(operations)
    yield _oldest(operations, backlogs)


def _deployed(operations: Operations) -> Finding:
    names = operations.persistence.deployments()
    if not names:
        return warn("deployed", "no program is deployed", "afl deploy FLOWS")
    listed = ", ".join(f"{name} {digest[:14]}" for name, digest in names.items())
    return ok("deployed", f"programs: {listed}")


def _workers(workers: Sequence[Worker]) -> Finding:
    if not workers:
        return warn("workers", "no worker is there", "afl worker --handlers MODULE")
    if not any(EXECUTE in worker.handlers for worker in workers):
        return warn("workers", "no worker advances runs", "afl worker")
    slots = sum(worker.slots for worker in workers)
    return ok("workers", f"{_count(len(workers), 'worker')}, {_count(slots, 'slot')}")


def _programs(operations: Operations, workers: Sequence[Worker]) -> Iterator[Finding]:
    """What the deployed programs could ask for."""
    handlers = {name for worker in workers for name in worker.handlers}
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


def _waiting(backlogs: Sequence[Backlog], workers: Sequence[Worker]) -> Iterator[Finding]:
    """What work waits for now, though nobody who lives serves it; every name is told."""
    missing: dict[str, list[str]] = defaultdict(list)
    for backlog in backlogs:
        missing[backlog.list] += backlog.unserved(workers)
    for list_, names in missing.items():
        if names:
            where = "" if list_ == _DEFAULT else f" on the list {list_}"
            text = f"work waits{where} for {', '.join(names)}, and no live worker serves that"
            option = "" if list_ == _DEFAULT else f" --list {list_}"
            handlers = "" if names == [EXECUTE] else " --handlers MODULE"
            yield warn(WAITING, text, f"afl worker{option}{handlers}")
    if not any(missing.values()):
        yield ok(WAITING, "live workers serve all that work waits for")


def _dead_letters(operations: Operations) -> Finding:
    found = len(operations.dead_letters(limit=_LOOKED_AT))
    if not found:
        return ok("dead letters", "no work was given up")
    more = " or more" if found == _LOOKED_AT else ""
    return warn("dead letters", f"given up: {found}{more}", "afl dlq list")


def _oldest(operations: Operations, backlogs: Sequence[Backlog]) -> Finding:
    """How long the oldest task waits that any worker may take."""
    since = [each.oldest_ready_at for each in backlogs if each.oldest_ready_at is not None]
    if not since:
        return ok("oldest task", "nothing waits for a worker")
    tasks = f"the oldest of {_count(sum(each.ready for each in backlogs), 'task')} for workers"
    minutes = (operations.persistence.now() - min(since)) // timedelta(minutes=1)
    if minutes < _OLD_MINUTES:
        return ok("oldest task", f"{tasks} waits less than a minute")
    waits = format_duration(minutes * 60_000)
    return warn("oldest task", f"{tasks} waits {waits}", "afl tasks list --state ready")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
