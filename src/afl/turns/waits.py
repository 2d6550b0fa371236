"""Calls that no worker serves: a turn waits by them for time, for room, for a person. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta

from afl.kernel.model import CallSpec, Json, Task, TaskSpec
from afl.turns.cards import find
from afl.turns.contents import sorted_text
from afl.turns.journal import BREAKER, BUDGET, BUSY, Deferred
from afl.turns.model import BUDGETS, HUMAN, PEOPLE, TIMERS, BudgetKey, Spending, Tool
from afl.turns.ports import NO_TIMEOUT
from afl.turns.transcript import Turn

APPROVE = "afl.Approve"
_LONGEST_WAIT, _SHORTEST_WAIT = timedelta(minutes=5), timedelta(seconds=1)
#: A provider may ask for more patience than we would have, but not for any amount.
_LONGEST_AFTER = timedelta(days=1)
_TITLE_ARGUMENTS = 200
_FORM: dict[str, Json] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean", "description": "whether the call may be made"},
        "reason": {"type": "string", "description": "what the agent is told if it may not"},
    },
    "required": ["approved"],
    "additionalProperties": False,
}


def busy_call(turn: Turn, attempt: int, after: timedelta | None) -> CallSpec:
    """The wait until a busy model is asked again: as long as it says, or longer each time."""
    wait = _backoff(turn.task, attempt)
    if after is not None:
        wait = min(max(after, _SHORTEST_WAIT), _LONGEST_AFTER)
    spec = TaskSpec("timer", "afl:busy", tenant=turn.task.tenant, list=TIMERS)
    return CallSpec(_next_key(turn, BUSY), spec, wait)


def breaker_call(turn: Turn, breaker: str, after: timedelta) -> CallSpec:
    """The wait until the provider of a model may be asked again."""
    given: dict[str, Json] = {"breaker": breaker}
    spec = TaskSpec("timer", "afl:breaker", tenant=turn.task.tenant, list=TIMERS, input=given)
    return CallSpec(_next_key(turn, BREAKER), spec, max(after, _SHORTEST_WAIT))


def budget_call(turn: Turn, budgets: Sequence[BudgetKey], amount: Spending) -> CallSpec:
    """The wait until these budgets have room for so much."""
    given: dict[str, Json] = {
        "budgets": [{"scope": key.scope, "key": key.key} for key in budgets],
        "amount": {
            "usd": str(amount.usd),
            "tokens": amount.tokens,
            "model_calls": amount.model_calls,
            "tool_calls": amount.tool_calls,
        },
    }
    spec = TaskSpec("budget", "afl:budget", tenant=turn.task.tenant, list=BUDGETS, input=given)
    return CallSpec(_next_key(turn, BUDGET), spec, NO_TIMEOUT)


def approval_call(task: Task, tool: Tool, arguments: dict[str, Json], key: str) -> CallSpec:
    """The question to a person whether a tool may be called."""
    shown = sorted_text(arguments)
    if len(shown) > _TITLE_ARGUMENTS:
        shown = f"{shown[:_TITLE_ARGUMENTS]}…"
    given: dict[str, Json] = {
        "facet": APPROVE,
        "group": None,
        "title": f"May `{tool.target}` be called with {shown}?",
        "params": {"tool": tool.target, "arguments": arguments},
        "form": _FORM,
        "turn": task.id,
    }
    spec = TaskSpec(
        HUMAN, APPROVE, tenant=task.tenant, list=PEOPLE, priority=task.priority, input=given
    )
    return CallSpec(key, spec, NO_TIMEOUT)


def _next_key(turn: Turn, reason: str) -> str:
    before = sum(each.reason == reason for each in find(turn.cards, Deferred))
    return f"{reason}:{before}"


def _backoff(task: Task, attempt: int) -> timedelta:
    doubled: int = 2 ** min(attempt, 20)
    wait = min(_SHORTEST_WAIT * doubled, _LONGEST_WAIT)
    # Cut by up to half, so that turns which were refused together do not come back together; by
    # the task and not by chance, so that the wait is the same when the move is made again.
    digest = hashlib.sha256(f"{task.id}:{attempt}".encode()).digest()
    return wait - wait * int.from_bytes(digest[:4], "big") / 2**33
