"""Paused runs: answers are noted, and nothing goes on until the pause ends.

A run that is asked to pause opens a call that nobody works on; answering it ends the pause. What
came in meanwhile lies in the frame of the root, and is taken in then.
"""

from __future__ import annotations

from collections.abc import Sequence

from afl.kernel.model import CallSpec, CallStatus, Json, TaskSpec
from afl.runtime.calls import NO_TIMEOUT, SIGNALS
from afl.runtime.context import ExecutionContext, count
from afl.runtime.replies import Reply
from afl.runtime.states import ObjectType
from afl.runtime.step import ROOT, StepDefinition

PAUSE = "afl:pause"


def hold(context: ExecutionContext, replies: Sequence[Reply]) -> None:
    """Notes answers without taking them in."""
    if context.find(ROOT) is None:
        context.create(ROOT, ObjectType.WORKFLOW, context.run.workflow, context.run.workflow)
        context.pop()
        context.edit(ROOT).frame["more"] = [ROOT]
    root = context.edit(ROOT)
    if any(reply.key == pause_key(root) for reply in replies):
        # the pause was ended, and another one begun, before anybody looked
        root.frame.pop("paused")
        root.frame["open"] = count(root, "open") - 1
        replies = [reply for reply in replies if not is_pause(reply)]
    if replies:
        known = root.frame.get("inbox")
        root.frame["inbox"] = [
            *(known if isinstance(known, list) else ()),
            *([reply.key, reply.status.value, reply.body] for reply in replies),
        ]
    if pause_key(root) is None:
        number = root.frame.get("pauses")
        root.frame["pauses"] = (number if isinstance(number, int) else 0) + 1
        root.frame["paused"] = f"#pause-{root.frame['pauses']}"
        task = TaskSpec("pause", PAUSE, list=SIGNALS, tenant=context.run.tenant)
        context.call(CallSpec(str(root.frame["paused"]), task, NO_TIMEOUT))


def pause_key(root: StepDefinition) -> str | None:
    """The key of the call whose answer ends the pause of a run."""
    key = root.frame.get("paused")
    return key if isinstance(key, str) else None


def is_pause(reply: Reply) -> bool:
    """Whether an answer ends a pause."""
    return reply.key.startswith("#pause")


def noted(root: StepDefinition) -> list[Reply]:
    """The answers that came during a pause, which the root forgets with this."""
    inbox: Json = root.frame.pop("inbox", None)
    found = []
    for entry in inbox if isinstance(inbox, list) else ():
        assert isinstance(entry, list)
        key, status, body = entry
        found.append(Reply(str(key), CallStatus(status), body))
    return found
