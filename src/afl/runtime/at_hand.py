"""Work at hand: what a worker does itself, at once, for a run that it holds.

Such work needs no task and no call: the worker that holds the run knows that it is under way, and
its result is committed as the step's own row. Should the worker be lost, the rows say what was at
hand, and whoever takes the run over has it done again, as a task like any other. That is the
promise for all work: at least once, under one key.
"""

from __future__ import annotations

from afl.runtime.context import ExecutionContext, count
from afl.runtime.states import StepState
from afl.runtime.step import ROOT, StepDefinition

#: What `called` is in the frame of a step whose work is at hand; of a step with a task it is 1.
_AT_HAND = 2


def keep(context: ExecutionContext) -> None:
    """Has the new calls of an iteration done at hand instead of by tasks."""
    calls = context.changes.calls
    for call in calls:
        context.edit(call.key).frame["called"] = _AT_HAND
    # the root tells only how many there are: one after the other does not change it
    root = context.edit(ROOT)
    root.frame["at_hand"] = count(root, "at_hand") + len(calls)
    calls.clear()


def put_off(context: ExecutionContext) -> None:
    """Leaves the new calls of an iteration to whoever claims the run next, without tasks."""
    root = context.edit(ROOT)
    root.frame["put_off"] = [*_put_off(root), *(call.key for call in context.changes.calls)]
    keep(context)


def take_up(context: ExecutionContext) -> None:
    """What was put off is begun after all: it is at hand like the rest."""
    if "put_off" in context.row(ROOT).frame:
        del context.edit(ROOT).frame["put_off"]


def is_at_hand(step: StepDefinition) -> bool:
    """Whether a step waits for work that is at hand of somebody."""
    return step.state == StepState.EVENT_TRANSMIT and step.frame.get("called") == _AT_HAND


def note_answer(root: StepDefinition, step: StepDefinition) -> None:
    """The work of a step was answered. It may have ended before: with what it stands in."""
    if step.frame.get("called") == _AT_HAND:
        root.frame["at_hand"] = count(root, "at_hand") - 1
        if not root.frame["at_hand"]:
            del root.frame["at_hand"]


def take_over(context: ExecutionContext) -> None:
    """Has work that was in the hands of another worker done again."""
    at_hand = count(context.row(ROOT), "at_hand")
    if not at_hand:
        return
    # whoever left in good order has said what it is; else the rows have to be searched
    left = _put_off(context.row(ROOT))
    unended = left if len(left) == at_hand else context.unended_below(ROOT)
    root = context.edit(ROOT)
    root.frame.pop("put_off", None)
    del root.frame["at_hand"]
    root.frame["open"] = count(root, "open") - at_hand
    for path in unended:
        if is_at_hand(context.row(path)):
            del context.edit(path).frame["called"]
            context.push(path)


def _put_off(root: StepDefinition) -> list[str]:
    paths = root.frame.get("put_off")
    return [str(path) for path in paths] if isinstance(paths, list) else []
