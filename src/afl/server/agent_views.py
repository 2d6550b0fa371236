"""Agents, turns and cost in the shapes of the API."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from afl.kernel.model import State
from afl.server.models.agents import (
    AgentLine,
    BudgetView,
    CostLine,
    ModelCall,
    TokenUse,
    TranscriptLine,
    TranscriptView,
    TurnLine,
)
from afl.server.models.base import JsonMap

if TYPE_CHECKING:
    from afl.app.agents import Agents, TurnSummary
    from afl.app.transcripts import Asked, Transcript
    from afl.app.transcripts import TurnLine as RunTurn
    from afl.turns.model import Agent, Budget, Usage, UsageSum
    from afl.turns.transcript_lines import Line

#: How many of the newest turns of an agent are looked at to tell how many wait.
_LOOKED_AT = 50
_KINDS = {"instruction": "user", "agent": "assistant", "tool": "note"}


def agent_line(agents: Agents, agent: Agent) -> AgentLine:
    """An agent, what it is at, and how many turns wait for it."""
    head = agents.head(agent.id)
    waiting = (State.QUEUED.value, State.READY.value)
    turns = agents.turns(agent.id, limit=_LOOKED_AT) if head.turn is not None else []
    return AgentLine(
        agent=agent.id,
        status=head.status,
        turn=head.turn,
        waits_for=list(head.waits_for),
        queued=sum(turn.state in waiting and turn.id != head.turn for turn in turns),
        model=agent.models[0] if agent.models else None,
    )


def turn_line(turn: TurnSummary) -> TurnLine:
    """A turn of an agent."""
    return TurnLine(
        id=turn.id,
        agent=turn.agent,
        state=turn.state,
        outcome=turn.outcome,
        instruction=turn.instruction,
        run=None,
        step=None,
        requests=turn.requests,
        tokens=turn.tokens,
        cost_usd=float(turn.usd),
        unpriced=turn.unpriced,
        created_at=turn.created_at,
        closed_at=turn.closed_at,
    )


def run_turn_line(turn: RunTurn, run: str, cost: UsageSum | None) -> TurnLine:
    """A turn of a run."""
    is_open = turn.state in {each.value for each in State}
    return TurnLine(
        id=turn.turn,
        agent=turn.name,
        state=turn.state if is_open else State.CLOSED.value,
        outcome=None if is_open else turn.state,
        instruction="",
        run=run,
        step=turn.step,
        requests=0 if cost is None else cost.requests,
        tokens=0 if cost is None else cost.usage.total,
        cost_usd=0.0 if cost is None else float(cost.usd),
        unpriced=0 if cost is None else cost.unpriced,
        created_at=turn.created_at,
        closed_at=turn.closed_at,
    )


def transcript_view(transcript: Transcript) -> TranscriptView:
    """A turn as it went."""
    delivered = transcript.deliverable
    fields: Mapping[str, object] | None = None
    if delivered is not None:
        fields = {
            "ending": delivered.ending.value,
            "partial": delivered.partial,
            "message": delivered.message,
            "fields": delivered.fields,
        }
    is_of_run = transcript.run != transcript.turn
    return TranscriptView(
        turn=transcript.turn,
        name=transcript.name,
        run=transcript.run if is_of_run else None,
        step=transcript.step,
        state=transcript.state,
        outcome=transcript.outcome,
        system=transcript.system,
        lines=[_line(line) for line in transcript.lines],
        calls=[_call(asked) for asked in transcript.requests],
        tokens=transcript.tokens,
        cost_usd=float(transcript.usd),
        deliverable=cast("JsonMap | None", fields),
    )


def _line(line: Line) -> TranscriptLine:
    kind = _KINDS.get(line.who, line.who)
    if line.tool is not None:
        kind = "tool_call" if line.arguments is not None else "tool_result"
    return TranscriptLine(
        kind=kind,
        text=line.text,
        tool=line.tool,
        arguments=line.arguments,
        failed=line.failed,
        request=line.number,
    )


def _call(asked: Asked) -> ModelCall:
    return ModelCall(
        number=asked.number,
        model=asked.model,
        finish=asked.finish,
        usage=_use(asked.usage),
        cost_usd=float(asked.usd),
        price_version=asked.price_version,
    )


def _use(usage: Usage) -> TokenUse:
    return TokenUse(
        input=usage.input,
        output=usage.output,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
    )


def cost_line(cost: UsageSum) -> CostLine:
    """Requests added up under one key."""
    return CostLine(
        key=cost.key,
        requests=cost.requests,
        tokens=cost.usage.total,
        input=cost.usage.input,
        output=cost.usage.output,
        cache_read=cost.usage.cache_read,
        cache_write=cost.usage.cache_write,
        cost_usd=float(cost.usd),
        unpriced=cost.unpriced,
    )


def budget_view(budget: Budget) -> BudgetView:
    """What may be spent, and what is."""
    usd: Decimal | None = budget.limit.usd
    return BudgetView(
        tenant=budget.key.tenant,
        scope=budget.key.scope,
        key=budget.key.key,
        limit_usd=None if usd is None else float(usd),
        limit_tokens=budget.limit.tokens,
        spent_usd=float(budget.spent.usd),
        spent_tokens=budget.spent.tokens,
    )
