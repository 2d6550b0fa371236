"""Documents to values, and values to documents."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC
from decimal import Decimal
from typing import Any

from bson.decimal128 import Decimal128

from afl.kernel.model import TaskId
from afl.kernel.mongo.transaction import Document
from afl.kernel.mongo.values import to_micros, to_time
from afl.turns.model import (
    Agent,
    AgentId,
    Allowance,
    Budget,
    BudgetKey,
    Hold,
    Limits,
    Spending,
    Usage,
    UsageEntry,
    UsageSum,
)
from afl.turns.ports import BudgetWait

_COUNTS = ("tokens", "model_calls", "tool_calls")


def agent_id(id: str, tenant: str) -> Document:
    return {"tenant": tenant, "id": id}


def agent_in(agent: Agent) -> Document:
    """What a document has of an agent beside when it was made."""
    return {
        "kind": agent.kind,
        "target": agent.target,
        "system": agent.system,
        "models": list(agent.models),
        "tools": list(agent.tools),
        "tags": list(agent.tags),
        "limits": json.dumps(asdict(agent.limits)),
        "max_tokens": agent.max_tokens,
        "temperature": agent.temperature,
    }


def agent_out(row: Document) -> Agent:
    return Agent(
        AgentId(row["_id"]["id"]),
        row["_id"]["tenant"],
        row["kind"],
        row["target"],
        row["system"],
        tuple(row["models"]),
        tuple(row["tools"]),
        tuple(row["tags"]),
        Limits(**json.loads(row["limits"])),
        row["max_tokens"],
        row["temperature"],
        to_time(row["created_at"]),
    )


def key_in(key: BudgetKey) -> Document:
    """The id of a budget."""
    return {"tenant": key.tenant, "scope": key.scope, "key": key.key}


def key_out(row: Document) -> BudgetKey:
    return BudgetKey(row["scope"], row["key"], row["tenant"])


def amount_in(amount: Spending | Allowance) -> Document:
    """What is spent, reserved or allowed."""
    counts = {name: getattr(amount, name) for name in _COUNTS}
    return {"usd": None if amount.usd is None else Decimal128(amount.usd), **counts}


def amount_out(row: Document) -> Spending:
    return Spending(row["usd"].to_decimal(), *(row[name] for name in _COUNTS))


def budget_out(row: Document) -> Budget:
    limit = row["limit"]
    usd = None if limit["usd"] is None else limit["usd"].to_decimal()
    return Budget(
        key_out(row["_id"]),
        Allowance(usd, *(limit[name] for name in _COUNTS)),
        reserved=amount_out(row["reserved"]),
        spent=amount_out(row["spent"]),
    )


def added(reserved: Spending, spent: Spending) -> Document:
    """The change of a budget by what is reserved, or no longer, and by what was spent."""
    parts = (("reserved", reserved), ("spent", spent))
    return {
        "$inc": {
            f"{part}.{unit}": value
            for part, amount in parts
            for unit, value in amount_in(amount).items()
        }
    }


def hold_in(hold: Hold) -> Document:
    return {
        "_id": hold.task,
        "number": hold.number,
        "budgets": [key_in(key) for key in hold.budgets],
        "amount": amount_in(hold.amount),
    }


def hold_out(row: Document) -> Hold:
    budgets = tuple(key_out(key) for key in row["budgets"])
    return Hold(TaskId(row["_id"]), row["number"], budgets, amount_out(row["amount"]))


def wait_in(wait: BudgetWait) -> Document:
    """What a document has of a wait beside its task and its place."""
    return {
        "call_key": wait.call_key,
        "budgets": [key_in(key) for key in wait.budgets],
        "amount": amount_in(wait.amount),
    }


def wait_out(row: Document) -> BudgetWait:
    budgets = tuple(key_out(key) for key in row["budgets"])
    return BudgetWait(TaskId(row["_id"]), row["call_key"], budgets, amount_out(row["amount"]))


def entry_id(entry: UsageEntry) -> Document:
    return {"task": entry.task, "number": entry.number}


def entry_in(entry: UsageEntry) -> Document:
    """What a document has of a request beside its id and its run."""
    return {
        "task": entry.task,
        "tenant": entry.tenant,
        "agent": entry.agent,
        "facet": entry.facet,
        "step": entry.step,
        "model": entry.model,
        "input": entry.usage.input,
        "output": entry.usage.output,
        "cache_read": entry.usage.cache_read,
        "cache_write": entry.usage.cache_write,
        "usd": Decimal128(entry.price.usd),
        "price_version": entry.price.version,
        "tool_calls": entry.tool_calls,
        "started_at": to_micros(entry.started_at),
        "ended_at": to_micros(entry.ended_at),
        "day": entry.ended_at.astimezone(UTC).date().isoformat(),
    }


def sum_out(row: Document) -> UsageSum:
    tokens = (row["input"], row["output"], row["cache_read"], row["cache_write"])
    return UsageSum(
        row["_id"], row["requests"], Usage(*tokens), _money(row["usd"]), row["unpriced"]
    )


def _money(value: Any) -> Decimal:  # noqa: ANN401 - a sum of nothing is a whole number
    return value.to_decimal() if isinstance(value, Decimal128) else Decimal(value)
