"""Work at hand: what a worker does itself, at once, for a run that it holds.

Such work needs no task and no call: the worker that holds the run knows that it is under way, and
its result is committed as the step's own row. Should the worker be lost, the rows say what was at
hand, and whoever takes the run over has it done again, as a task like any other. That is the
promise for all work: at least once, under one key.
"""

from __future__ import annotations

from afl.runtime.context import ExecutionContext, count
from afl.runtime.step import ROOT, StepDefinition

_AT_HAND = "at_hand"


def keep(context: ExecutionContext) -> None:
    """Has the new calls of an iteration done at hand instead of by tasks."""
    root = context.edit(ROOT)
    root.frame[_AT_HAND] = [*keys_at_hand(root), *(call.key for call in context.changes.calls)]
    context.changes.calls.clear()


def keys_at_hand(root: StepDefinition) -> list[str]:
    """The keys of the calls that are done at hand."""
    keys = root.frame.get(_AT_HAND)
    return [str(key) for key in keys] if isinstance(keys, list) else []


def note_answer(root: StepDefinition, key: str) -> None:
    """Work at hand was answered."""
    keys = keys_at_hand(root)
    if key in keys:
        keys.remove(key)
        if keys:
            root.frame[_AT_HAND] = list(keys)
        else:
            del root.frame[_AT_HAND]


def take_over(context: ExecutionContext) -> None:
    """Has work that was in the hands of another worker done again."""
    keys = keys_at_hand(context.row(ROOT))
    if not keys:
        return
    context.require(keys)
    root = context.edit(ROOT)
    del root.frame[_AT_HAND]
    root.frame["open"] = count(root, "open") - len(keys)
    for key in keys:
        step = context.edit(key)
        if not step.is_terminal:
            step.frame.pop("called", None)
            context.push(key)
