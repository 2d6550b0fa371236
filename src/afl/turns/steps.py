"""A journal as steps: each answer of the model, with what came of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from afl.turns.cards import Entry, read
from afl.turns.journal import Deferred, Note, Problem, Thought, ToolCall, ToolResult
from afl.turns.model import Spending, ToolUse


@dataclass(frozen=True, slots=True)
class Step:
    """One answer of the model, and what is known of its tool uses so far."""

    thought: Thought
    #: by their key
    calls: dict[str, ToolCall]
    #: by the index of the tool use
    results: dict[int, ToolResult]
    #: what the model was told about the answer as a whole
    note: Note | None = None

    @property
    def number(self) -> int:
        return self.thought.number

    @property
    def missing(self) -> list[tuple[int, ToolUse]]:
        """The tool uses that have no result, with their index."""
        uses = enumerate(self.thought.reply.tool_uses)
        return [(index, use) for index, use in uses if index not in self.results]

    @property
    def broke_rules(self) -> bool:
        """Whether nothing came of the answer, because all of it was against the rules."""
        if self.note is not None:
            return True
        known = self.results.values()
        return bool(known) and not self.calls and all(result.key is None for result in known)


def steps(cards: Iterable[Entry]) -> list[Step]:
    """The steps of a turn, in their order."""
    found: list[Step] = []
    for card in cards:
        value = read(card)
        match value:
            case Thought():
                found.append(Step(value, {}, {}))
            case ToolCall() if found and value.number == found[-1].number:
                found[-1].calls[value.key] = value
            case ToolResult() if found and value.number == found[-1].number:
                found[-1].results[value.index] = value
            case Note() if found:
                last = found[-1]
                found[-1] = Step(last.thought, last.calls, last.results, value)
    return found


def waits_in_a_row(cards: Iterable[Entry], reason: str) -> int:
    """How often the turn has waited for this reason since it last got on, or was tried again."""
    count = 0
    for card in cards:
        match read(card):
            case Thought() | Problem():
                count = 0
            case Deferred() as deferred:
                count += deferred.reason == reason
    return count


def repairs_in_a_row(known: list[Step]) -> int:
    """How many of the last answers broke the rules, one after the other."""
    count = 0
    for step in reversed(known):
        if not step.broke_rules:
            break
        count += 1
    return count


def tool_calls(known: Iterable[Step]) -> int:
    """How many tools were to be called, those that somebody has not agreed to included."""
    return sum(len({call.index for call in step.calls.values()}) for step in known)


def spent(known: list[Step]) -> Spending:
    """What a turn has spent so far."""
    thoughts = [step.thought for step in known]
    return Spending(
        usd=sum((thought.price.usd for thought in thoughts), Decimal(0)),
        tokens=sum(thought.reply.usage.total for thought in thoughts),
        model_calls=len(thoughts),
        tool_calls=tool_calls(known),
    )


# The keys of calls


def tool_key(number: int, index: int) -> str:
    """The call of a tool."""
    return f"{number}.{index}"


def approval_key(number: int, index: int) -> str:
    """The call of somebody who has to agree to it."""
    return f"approve:{number}.{index}"
