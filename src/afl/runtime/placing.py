"""What new calls need beside a task: a lane that they can get, and a slot in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from afl.kernel import rules
from afl.kernel.errors import LaneCycle
from afl.kernel.model import CallSpec, Json, Task
from afl.kernel.requests import MAX_DURATION
from afl.runtime.calls import EXECUTE
from afl.runtime.persistence import IterationChanges, PersistenceAPI, RateWish


def lane_cycles(
    persistence: PersistenceAPI, task: Task, calls: Sequence[CallSpec]
) -> dict[str, dict[str, Json]]:
    """Calls of workflows that could never start, by key, and the errors of their steps: a run that
    waits for them has their lane."""
    bounded = [each for each in calls if each.task.lane and each.task.name == EXECUTE]
    ancestors = _ancestors(persistence, task) if bounded else ()
    found: dict[str, dict[str, Json]] = {}
    for call in bounded:
        try:
            rules.refuse_lane_cycle(call.task, ancestors)
        except LaneCycle:
            message = (
                "It may run only so often at once, and a run that waits for this one has the place "
                "that it would need."
            )
            found[call.key] = {"type": "LaneCycle", "message": message, "step": call.key}
    return found


def _ancestors(persistence: PersistenceAPI, task: Task) -> list[Task]:
    """A task and all that wait for it."""
    kernel, found = persistence.kernel, [task]
    while task.parent_call is not None:
        call = kernel.get_call(task.parent_call)
        caller = None if call is None else kernel.get_task(call.caller)
        if caller is None:
            break
        task = caller
        found.append(task)
    return found


def keep_rates(persistence: PersistenceAPI, changes: IterationChanges) -> None:
    """Has the calls of facets that may start only so often wait for their slots."""
    if not changes.rates:
        return
    wishes: dict[RateWish, list[str]] = {}
    for key, wish in changes.rates.items():
        wishes.setdefault(wish, []).append(key)
    delays: dict[str, timedelta] = {}
    for wish, keys in wishes.items():
        delays.update(zip(keys, persistence.reserve_slots(wish, len(keys)), strict=True))
    changes.calls = [
        delayed(call, delays[call.key]) if call.key in delays else call for call in changes.calls
    ]


def delayed(call: CallSpec, delay: timedelta) -> CallSpec:
    """A call whose work starts later, and has all of its time then."""
    timeout = call.task.timeout
    task = replace(
        call.task,
        delay=delay,
        timeout=None if timeout is None else min(timeout + delay, MAX_DURATION),
    )
    return replace(call, task=task, timeout=min(call.timeout + delay, MAX_DURATION))
