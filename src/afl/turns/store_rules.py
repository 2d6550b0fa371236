"""What every store of turns refuses, and what it makes of values before it keeps them. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from afl.kernel.errors import BadRequest
from afl.turns.budgeting import money_in
from afl.turns.model import Agent, UsageEntry

KINDS = ("model", "person")
#: By what requests can be added up.
ROLLUPS = ("run", "agent", "facet", "step", "model", "task", "day")
#: The version of a price that no table knew.
UNPRICED = "unknown"


def agent_in(agent: Agent) -> None:
    """Raises `BadRequest` for an agent that cannot be kept."""
    if not agent.id or not agent.tenant:
        raise BadRequest("an agent needs an id and a tenant")
    if agent.kind not in KINDS:
        raise BadRequest(f"agent {agent.id} is no {agent.kind}; use one of {', '.join(KINDS)}")
    if agent.max_tokens < 1:
        raise BadRequest(f"agent {agent.id} needs max_tokens of 1 or more, not {agent.max_tokens}")


def entry_in(entry: UsageEntry) -> UsageEntry:
    """An entry as it is kept. Raises `BadRequest`."""
    usage = entry.usage
    counts = (usage.input, usage.output, usage.cache_read, usage.cache_write, entry.tool_calls)
    if min(entry.number, *counts) < 0:
        raise BadRequest(f"request {entry.number} of turn {entry.task} has a negative count")
    if entry.started_at.tzinfo is None or entry.ended_at.tzinfo is None:
        raise BadRequest("the times of a request need a time zone")
    return replace(entry, price=replace(entry.price, usd=money_in(entry.price.usd)))


def rollup_in(by: str, since: datetime | None) -> None:
    """Raises `BadRequest` for what cannot be added up."""
    if by not in ROLLUPS:
        raise BadRequest(f"usage cannot be added up by {by}; use one of {', '.join(ROLLUPS)}")
    if since is not None and since.tzinfo is None:
        raise BadRequest("`since` needs a time zone")
