"""Agents, turns and transcripts; cost and budgets."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query

from afl.app.costs import Costs
from afl.app.extras import agents_part
from afl.bridges.turn_stores import turn_store
from afl.kernel.model import TaskId
from afl.server import agent_views as views
from afl.server.access import EVERY_TENANT, Caller, EveryOperator, EveryViewer, Viewer
from afl.server.backend import Backend, Work
from afl.server.models.agents import AgentLine, BudgetView, CostLine, TranscriptView, TurnLine
from afl.server.models.base import Page
from afl.server.seeing import seen_run, seen_turn

router = APIRouter(prefix="", tags=["agents"])

#: The tenant whose accounts are shown to whoever sees every tenant.
_DEFAULT = "default"


@router.get("/agents")
def list_agents(
    backend: Work,
    caller: EveryViewer,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[AgentLine]:
    """The agents, and what they are at."""
    agents = backend.client.agents
    found = agents.list(after=cursor, limit=limit)
    more = found[-1].id if len(found) == limit else None
    return Page(items=[views.agent_line(agents, agent) for agent in found], next=more)


@router.get("/agents/{agent}/turns")
def list_turns(
    backend: Work,
    caller: EveryViewer,
    agent: str,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> list[TurnLine]:
    """The turns of an agent, the newest first."""
    return [views.turn_line(turn) for turn in backend.client.agents.turns(agent, limit=limit)]


@router.post("/agents/{agent}/stop")
def stop_agent(backend: Work, caller: EveryOperator, agent: str, reason: str = "") -> AgentLine:
    """Stops what an agent is at."""
    agents = backend.client.agents
    agents.stop(agent, reason=reason)
    return views.agent_line(agents, agents.get(agent))


@router.get("/runs/{run}/turns")
def run_turns(backend: Work, caller: Viewer, run: str) -> list[TurnLine]:
    """The turns of a run."""
    found = seen_run(backend, caller, run)
    part = agents_part("afl.app.transcripts")
    turns = part.Transcripts(backend.services).turns(found.id)
    ids = [TaskId(turn.turn) for turn in turns]
    store = turn_store(backend.services.persistence)
    sums = store.usage("task", tenant=found.tenant, tasks=ids, limit=len(ids)) if ids else []
    costs = {each.key: each for each in sums}
    return [views.run_turn_line(turn, found.id, costs.get(turn.turn)) for turn in turns]


@router.get("/turns/{turn}")
def transcript(backend: Work, caller: Viewer, turn: str) -> TranscriptView:
    """A turn as it went, with tokens and price."""
    task = seen_turn(backend, caller, turn)
    part = agents_part("afl.app.transcripts")
    return views.transcript_view(part.transcript(backend.services.persistence.kernel, task))


@router.get("/cost")
def cost(
    backend: Work,
    caller: Viewer,
    by: Literal["run", "agent", "facet", "step", "model", "day"] = "model",
    run: str | None = None,
    since: Annotated[
        str | None, Query(description="A time, or how long ago, such as `7d`.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> list[CostLine]:
    """What models have cost, added up."""
    if run is not None:
        run = seen_run(backend, caller, run).id
    found = _costs(backend, caller).usage(
        by,
        run=run,
        since=_moment(since),
        limit=limit,
        every_tenant=caller.tenant == EVERY_TENANT,
    )
    return [views.cost_line(each) for each in found]


@router.get("/budgets")
def budgets(
    backend: Work, caller: Viewer, limit: Annotated[int, Query(ge=1, le=500)] = 100
) -> list[BudgetView]:
    """What may be spent, and what is."""
    every = caller.tenant == EVERY_TENANT
    found = _costs(backend, caller).budgets(limit=limit, every_tenant=every)
    return [views.budget_view(each) for each in found]


def _costs(backend: Backend, caller: Caller) -> Costs:
    tenant = _DEFAULT if caller.tenant == EVERY_TENANT else caller.tenant
    return Costs(backend.services, tenant)


def _moment(since: str | None) -> str | datetime | None:
    """A time as such; what is none is taken for a span, which says itself what is wrong with it."""
    if since is None:
        return None
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        return since
    return moment if moment.tzinfo is not None else moment.astimezone()
