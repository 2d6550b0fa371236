"""Rows to values, and values to parameters. Column lists and readers are halves of one thing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from afl.kernel.model import TaskId
from afl.kernel.postgres.packing import Parameters, array
from afl.kernel.postgres.rows import utc
from afl.turns.model import (
    Agent,
    AgentId,
    Allowance,
    Budget,
    BudgetKey,
    Limits,
    Spending,
    Usage,
    UsageEntry,
    UsageSum,
)
from afl.turns.ports import BudgetWait

AGENT_COLUMNS = """
    a.id, a.tenant, a.kind, a.target, a.system, a.models, a.tools, a.tags, a.limits, a.max_tokens,
    a.temperature, a.created_at
""".strip()
BUDGET_COLUMNS = """
    b.tenant, b.scope, b.key, b.limit_usd, b.limit_tokens, b.limit_model_calls, b.limit_tool_calls,
    b.reserved_usd, b.reserved_tokens, b.reserved_model_calls, b.reserved_tool_calls, b.spent_usd,
    b.spent_tokens, b.spent_model_calls, b.spent_tool_calls
""".strip()
WAIT_COLUMNS = """
    w.task::text, w.call_key, w.tenants, w.scopes, w.keys, w.usd, w.tokens, w.model_calls,
    w.tool_calls
""".strip()


def agent_of(row: Sequence[Any]) -> Agent:
    id_, tenant, kind, target, system, models, tools, tags, limits, *rest = row
    max_tokens, temperature, created_at = rest
    return Agent(
        AgentId(id_),
        tenant,
        kind,
        target,
        system,
        tuple(models),
        tuple(tools),
        tuple(tags),
        Limits(**limits),
        max_tokens,
        temperature,
        utc(created_at),
    )


def budget_of(row: Sequence[Any]) -> Budget:
    tenant, scope, key = row[:3]
    return Budget(
        BudgetKey(scope, key, tenant),
        Allowance(*row[3:7]),
        reserved=Spending(*row[7:11]),
        spent=Spending(*row[11:15]),
    )


def wait_of(row: Sequence[Any]) -> BudgetWait:
    task, call_key, tenants, scopes, keys = row[:5]
    budgets = tuple(map(BudgetKey, scopes, keys, tenants))
    return BudgetWait(TaskId(task), call_key, budgets, Spending(*row[5:9]))


def sum_of(row: Sequence[Any]) -> UsageSum:
    key, requests, *tokens, usd, unpriced = row
    return UsageSum(key, requests, Usage(*tokens), usd, unpriced)


def pack_agent(agent: Agent) -> dict[str, object]:
    """The parameters of `save_agent`."""
    return {
        "tenant": agent.tenant,
        "id": agent.id,
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


def pack_keys(keys: Iterable[BudgetKey]) -> Parameters:
    """Keys as arrays that run in parallel."""
    every = list(keys)
    return {
        "tenants": array(key.tenant for key in every),
        "scopes": array(key.scope for key in every),
        "keys": array(key.key for key in every),
    }


def pack_amount(amount: Spending | Allowance) -> Parameters:
    """What is spent, reserved or allowed."""
    return {
        "usd": None if amount.usd is None else f"{amount.usd:f}",
        "tokens": amount.tokens,
        "model_calls": amount.model_calls,
        "tool_calls": amount.tool_calls,
    }


def pack_wait(wait: BudgetWait) -> Parameters:
    """The parameters of `await_budget`."""
    return {
        "task": wait.task,
        "call_key": wait.call_key,
        **pack_keys(wait.budgets),
        **pack_amount(wait.amount),
    }


def pack_entry(entry: UsageEntry) -> Parameters:
    """The parameters of `record_usage`."""
    return {
        "task": entry.task,
        "number": entry.number,
        "run": entry.run,
        "tenant": entry.tenant,
        "agent": entry.agent,
        "facet": entry.facet,
        "step": entry.step,
        "model": entry.model,
        "input": entry.usage.input,
        "output": entry.usage.output,
        "cache_read": entry.usage.cache_read,
        "cache_write": entry.usage.cache_write,
        "usd": f"{entry.price.usd:f}",
        "price_version": entry.price.version,
        "tool_calls": entry.tool_calls,
        "started_at": entry.started_at.isoformat(),
        "ended_at": entry.ended_at.isoformat(),
    }
