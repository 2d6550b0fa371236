"""What a turn's next request may cost, what its last one has cost, and whose budgets pay. Pure."""

from __future__ import annotations

from decimal import Decimal

from afl.kernel.model import Task
from afl.turns.budgeting import fits
from afl.turns.cards import find
from afl.turns.changes import Changes
from afl.turns.journal import ToolCall
from afl.turns.model import BudgetKey, Price, Reply, Spending
from afl.turns.ports import Briefing, Prices
from afl.turns.steps import spent, steps, tool_key
from afl.turns.transcript import Turn, growth

#: Providers put words of their own before ours, such as how tools are called.
_PROVIDER_TOKENS = 1_000


def budget_keys(task: Task, briefing: Briefing) -> tuple[BudgetKey, ...]:
    """The budgets that cover a turn, if they have a row."""
    keys = [("turn", task.id), ("run", task.run), ("tenant", task.tenant)]
    if briefing.agent is not None:
        keys.append(("agent", briefing.agent))
    return tuple(BudgetKey(scope, key, task.tenant) for scope, key in keys)


def most(turn: Turn, prices: Prices) -> Spending:
    """More than the next request can cost, whichever model of the brief answers."""
    brief = turn.brief
    known, new_bytes = growth(turn)
    usd = (prices.most(name, new_bytes, known, brief.max_tokens) for name in brief.models)
    # no token is shorter than a byte
    tokens = known + new_bytes + _PROVIDER_TOKENS + brief.max_tokens
    return Spending(max(usd, default=Decimal(0)), tokens, model_calls=1)


def lacking(turn: Turn, amount: Spending) -> str | None:
    """Why the turn's own allowance has no room for so much; None if it has."""
    taken = spent(steps(turn.cards))
    if fits(turn.brief.allowance, taken, amount):
        return None
    return (
        f"the next request may take {amount.usd:f} USD and {amount.tokens} tokens, and the turn "
        f"has spent {taken.usd:f} USD and {taken.tokens} tokens of its allowance"
    )


def cost(reply: Reply, price: Price, changes: Changes) -> Spending:
    """What a request has cost, with the tools that its answer has called."""
    return Spending(price.usd, reply.usage.total, 1, called_tools(changes))


def called_tools(changes: Changes) -> int:
    """How many tools a commit calls."""
    found = find(changes.cards, ToolCall)
    return sum(call.key == tool_key(call.number, call.index) for call in found)
