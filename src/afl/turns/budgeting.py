"""Room in budgets: what fits, what is in the way and in which words, who is next. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal

from afl.kernel.errors import BadRequest
from afl.kernel.model import TaskId
from afl.turns.errors import BudgetExhausted
from afl.turns.model import Allowance, Budget, BudgetKey, Spending
from afl.turns.ports import BudgetWait

#: How long room is kept for a turn that was told of it, before others are told of the same.
PROMISED_FOR = timedelta(minutes=1)
SCOPES = ("turn", "run", "agent", "tenant")
#: What is counted, with the words for it, and the option of the command that raises it.
_UNITS = {
    "usd": ("USD", "--usd"),
    "tokens": ("tokens", "--tokens"),
    "model_calls": ("model calls", "--model-calls"),
    "tool_calls": ("tool calls", "--tool-calls"),
}
#: As exact as money is kept, and more than anybody spends.
_SMALLEST, _TOO_MUCH = Decimal("1E-10"), Decimal(10**10)
_TOO_MANY = 2**63


def plus(one: Spending, other: Spending) -> Spending:
    """Both together."""
    return Spending(
        one.usd + other.usd,
        one.tokens + other.tokens,
        one.model_calls + other.model_calls,
        one.tool_calls + other.tool_calls,
    )


def minus(one: Spending, other: Spending) -> Spending:
    """What is left of the first."""
    return Spending(
        one.usd - other.usd,
        one.tokens - other.tokens,
        one.model_calls - other.model_calls,
        one.tool_calls - other.tool_calls,
    )


def fits(limit: Allowance, taken: Spending, amount: Spending) -> bool:
    """Whether the amount has room beside what is taken."""
    return _lacking(limit, taken, amount) is None


def refuse(budget: Budget, amount: Spending) -> BudgetExhausted | None:
    """Why the budget has no room for the amount: what is left, and how to raise it. None if it has.

    What was spent or reserved counts whatever the amount is: who has called too many tools may not
    ask the model again, although the request as such calls none.
    """
    taken = plus(budget.reserved, budget.spent)
    unit = _lacking(budget.limit, taken, amount)
    if unit is None:
        return None
    key, (word, option) = budget.key, _UNITS[unit]
    limit = getattr(budget.limit, unit)
    left = max(limit - getattr(taken, unit), type(limit)(0))
    tenant = "" if key.tenant == "default" else f" --tenant {key.tenant}"
    return BudgetExhausted(
        f"the budget of {key.scope} {key.key} has {_figure(left)} of {_figure(limit)} {word} left, "
        f"and the next request may take {_figure(getattr(amount, unit))}; raise it with "
        f"`afl cost budget set {key.scope} {key.key} {option} AMOUNT{tenant}`",
        scope=key.scope,
        key=key.key,
    )


def hand_out(
    waits: Iterable[BudgetWait],
    promised: Iterable[BudgetWait],
    budgets: Mapping[BudgetKey, Budget],
    limit: int,
) -> tuple[list[BudgetWait], dict[TaskId, BudgetKey]]:
    """The waits that have room, each counted before the next is looked at, up to the limit; and,
    for those looked at that have none, the budget in the way.

    The waits come in their order. What was promised to others and not yet taken is no room. A wait
    that does not fit takes nothing, so that it keeps nobody behind it waiting.
    """
    taken = {key: plus(budget.reserved, budget.spent) for key, budget in budgets.items()}
    for each in promised:
        _take(taken, each)
    ready: list[BudgetWait] = []
    blocked: dict[TaskId, BudgetKey] = {}
    for wait in waits:
        if len(ready) >= limit:
            break
        full = (
            key
            for key in wait.budgets
            if key in taken and not fits(budgets[key].limit, taken[key], wait.amount)
        )
        blocker = next(full, None)
        if blocker is None:
            _take(taken, wait)
            ready.append(wait)
        else:
            blocked[wait.task] = blocker
    return ready, blocked


def _take(taken: dict[BudgetKey, Spending], wait: BudgetWait) -> None:
    for key in wait.budgets:
        if key in taken:
            taken[key] = plus(taken[key], wait.amount)


def _lacking(limit: Allowance, taken: Spending, amount: Spending) -> str | None:
    for unit in _UNITS:
        most = getattr(limit, unit)
        if most is not None and getattr(taken, unit) + getattr(amount, unit) > most:
            return unit
    return None


def _figure(value: Decimal | int) -> str:
    """A number as people write it: money with two places at least."""
    if isinstance(value, int):
        return str(value)
    text = f"{value:f}"
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest.rstrip('0'):0<2}"


# What can be kept


def spending_in(given: Spending) -> Spending:
    """An amount as it is kept. Raises `BadRequest`."""
    return Spending(
        money_in(given.usd),
        _count(given.tokens, "tokens"),
        _count(given.model_calls, "model_calls"),
        _count(given.tool_calls, "tool_calls"),
    )


def allowance_in(given: Allowance) -> Allowance:
    """A limit as it is kept. Raises `BadRequest`."""
    return Allowance(
        None if given.usd is None else money_in(given.usd),
        None if given.tokens is None else _count(given.tokens, "tokens"),
        None if given.model_calls is None else _count(given.model_calls, "model_calls"),
        None if given.tool_calls is None else _count(given.tool_calls, "tool_calls"),
    )


def keys_in(given: Sequence[BudgetKey]) -> tuple[BudgetKey, ...]:
    """The keys, each once. Raises `BadRequest`."""
    for key in given:
        if key.scope not in SCOPES:
            raise BadRequest(f"there is no scope {key.scope}; use one of {', '.join(SCOPES)}")
        if not key.key or not key.tenant:
            raise BadRequest("a budget is somebody's: give it a key and a tenant")
    return tuple(dict.fromkeys(given))


def money_in(usd: Decimal) -> Decimal:
    """An amount of money as it is kept. Raises `BadRequest`."""
    if not usd.is_finite() or not 0 <= usd < _TOO_MUCH:
        raise BadRequest(f"{usd} USD cannot be spent; use 0 or more, and less than {_TOO_MUCH}")
    return usd.quantize(_SMALLEST, ROUND_HALF_UP)


def _count(value: int, what: str) -> int:
    if not 0 <= value < _TOO_MANY:
        raise BadRequest(f"{what} cannot be {value}; use 0 or more")
    return value
