"""Taking in the answers that a turn has waited for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from afl.kernel.model import Call, CallId, CardHash, CardSpec
from afl.kernel.rules import card_hash
from afl.turns.cards import RESULT, TASK, Value, read, write
from afl.turns.changes import Changes
from afl.turns.journal import ResultStatus, ToolResult
from afl.turns.model import ToolUse
from afl.turns.states import Stage
from afl.turns.steps import Step, approval_key, steps, tool_key
from afl.turns.tool_use import answered, find_tool, is_approved, not_approved
from afl.turns.transcript import Turn, context_lengths

#: A shorter answer takes no more room than what would stand for it.
_WORTH_KEEPING_ONCE = 100


@dataclass(frozen=True, slots=True)
class Agreed:
    """A tool use that somebody has agreed to."""

    index: int
    use: ToolUse
    by: Call


@dataclass(frozen=True, slots=True)
class Heard:
    """What the answers mean for the last thought."""

    stage: Stage
    number: int = -1
    #: in the order of the thought; all of them if the stage is `HEARD`
    results: tuple[tuple[ToolResult, Call], ...] = ()
    agreed: tuple[Agreed, ...] = ()
    #: whether some tool use has no answer at all
    waits: bool = False
    #: answers that belong to no tool use, such as those of timers
    others: tuple[CallId, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit in the making: the turn with all that will be in it."""

    turn: Turn
    cards: tuple[CardSpec, ...] = ()
    applied: tuple[CallId, ...] = ()

    def plus(self, *values: Value) -> Draft:
        """With these at the end of the journal."""
        more = tuple(write(value) for value in values)
        turn = replace(self.turn, cards=(*self.turn.cards, *more))
        return Draft(turn, (*self.cards, *more), self.applied)

    def taking(self, applied: tuple[CallId, ...]) -> Draft:
        """With these answers taken in."""
        left = tuple(call for call in self.turn.replies if call.id not in applied)
        turn = replace(self.turn, replies=left)
        return Draft(turn, self.cards, (*self.applied, *applied))


def hear(turn: Turn) -> Heard:
    """What the answers that the turn has not taken in yet come to."""
    known = steps(turn.cards)
    if not known:
        return Heard(Stage.NEW, others=tuple(call.id for call in turn.replies))
    step = known[-1]
    replies = {call.key: call for call in turn.replies}
    results: list[tuple[ToolResult, Call]] = []
    agreed: list[Agreed] = []
    waits = False
    used: set[CallId] = set()
    for index, use in step.missing:
        call = replies.get(tool_key(step.number, index))
        asked = replies.get(approval_key(step.number, index))
        used.update(each.id for each in (call, asked) if each is not None)
        if call is not None:
            results.append((_result(turn, step, index, use, call), call))
        elif asked is None:
            waits = True
        elif is_approved(asked):
            agreed.append(Agreed(index, use, asked))
        else:
            results.append((not_approved(step.number, index, use, asked), asked))
    return Heard(
        Stage.ACTING if agreed or waits else Stage.HEARD,
        step.number,
        tuple(results),
        tuple(agreed),
        waits,
        tuple(call.id for call in turn.replies if call.id not in used),
    )


def begun(turn: Turn) -> Draft:
    """The beginning of a commit: what the turn is to do, if that is not in its journal yet."""
    draft = Draft(turn)
    if any(card.kind == TASK for card in turn.cards):
        return draft
    context = context_lengths(turn)
    return draft.plus(turn.brief) if context is None else draft.plus(turn.brief, context)


def settled(turn: Turn) -> Draft:
    """The beginning of a commit, with every answer taken in. Nothing may be waited for."""
    heard = hear(turn)
    draft = begun(turn).plus(*(result for result, _ in heard.results))
    return draft.taking(tuple(call.id for call in turn.replies))


def kept_answers(replies: Iterable[Call], changes: Changes) -> Iterator[tuple[CallId, CardHash]]:
    """The answers that a commit takes in, each with the card of it that says the same."""
    taken = {call.key: call.id for call in replies if call.id in changes.applied}
    for card in changes.cards:
        result = read(card) if card.kind == RESULT else None
        if (
            isinstance(result, ToolResult)
            and result.key in taken
            and result.status is ResultStatus.OK
            and len(result.content) >= _WORTH_KEEPING_ONCE
        ):
            yield taken[result.key], card_hash(card.kind, card.content)


def _result(turn: Turn, step: Step, index: int, use: ToolUse, call: Call) -> ToolResult:
    tool = find_tool(turn.brief, use.name)
    most = turn.brief.limits.result_bytes
    return answered(step.number, index, use, tool, call, most)
