"""The turn machine: from a turn to its next move, and from what came of it to the next commit.

It decides and does nothing else: no clock, no store, no model. The same turn always makes the same
move, so a worker that dies is followed by one that goes on as it would have done.

- `next_move` takes in the answers of tools and people, then asks, acts or ends (see `states`).
- `after_reply` takes in what the model said: a tool use is checked and called, put to a person, or
  answered with what is wrong with it; a text is the deliverable, or is handed back with a note.
- `after_busy`, `after_down`, `after_refusal`, `no_room`, `out_of_budget`, `stopped` are the other
  ways to go on.

Answers are taken in when all of them are there, so that results stand in the order of the thought.
One that belongs to no tool use of the last thought is only marked as taken. A commit that closes
opens no calls, and has a deliverable unless the turn will be tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from afl.kernel.model import CallSpec, Continue, Suspend
from afl.turns import budgeting
from afl.turns.cards import Value
from afl.turns.changes import Act, Ask, Changes, Move, ToolCaller
from afl.turns.deliverable import SUBMIT, answer_as_deliverable, text_as_fields
from afl.turns.endings import BUDGET_CODE, LIMIT_CODE, STOPPED_CODE, delivered, ended_early
from afl.turns.errors import BadBrief, ModelBusy, ModelFailure, ProviderDown
from afl.turns.hearing import Draft, Heard, begun, hear, settled
from afl.turns.journal import (
    BREAKER,
    BUDGET,
    BUSY,
    Deferred,
    Note,
    Problem,
    ResultStatus,
    Thought,
    ToolCall,
)
from afl.turns.model import (
    After,
    BudgetKey,
    Deliverable,
    Ending,
    Price,
    Reply,
    Spending,
    ToolUse,
)
from afl.turns.states import Stage
from afl.turns.steps import (
    approval_key,
    repairs_in_a_row,
    spent,
    steps,
    tool_calls,
    tool_key,
    waits_in_a_row,
)
from afl.turns.tool_use import (
    Accepted,
    check,
    find_tool,
    how_to_finish,
    needs_approval,
    refused,
)
from afl.turns.transcript import Turn, request
from afl.turns.waits import approval_call, breaker_call, budget_call, busy_call

#: An answer that ended for one of these reasons is not whole.
_CUT = {"length": "it was longer than the model may write", "error": "the model broke off"}
_FILTERED = "content_filter"


def next_move(turn: Turn, call_tool: ToolCaller) -> Move:
    """What a turn that was claimed does next."""
    heard = hear(turn)
    if heard.stage is Stage.ACTING:
        return Act(_keep_acting(turn, heard, call_tool))
    draft = settled(turn)
    ending = _terminated(draft, heard) or _used_up(draft)
    if ending is not None:
        return Act(ending)
    try:
        asked = request(draft.turn)
    except BadBrief as error:
        return Act(_end(draft, Ending.FAILED, error.code, error.message))
    number = len(steps(draft.turn.cards))
    return Ask(asked, number, Changes(Continue(), draft.cards, applied=draft.applied))


def after_reply(
    turn: Turn, reply: Reply, price: Price, request_hash: str, call_tool: ToolCaller
) -> Changes:
    """What the answer of the model changes."""
    draft = settled(turn)
    number = len(steps(draft.turn.cards))
    draft = draft.plus(Thought(number, reply, price, request_hash))
    if reply.tool_uses:
        return _use_tools(draft, number, reply, call_tool)
    return _take_text(draft, reply)


def after_busy(turn: Turn, failure: ModelBusy) -> Changes:
    """No model of the brief can answer now: the turn waits, or fails if it has waited too often."""
    draft = settled(turn)
    attempt = waits_in_a_row(draft.turn.cards, BUSY) + 1
    if attempt > turn.brief.limits.busy:
        message = f"the model was busy {attempt} times in a row: {failure.message}"
        return _end(draft, Ending.FAILED, failure.code, message, permanent=False)
    call = busy_call(draft.turn, attempt, failure.after)
    return _wait(draft, call, Deferred(attempt, BUSY, _seconds(call), call.key, failure.message))


def after_down(turn: Turn, failure: ProviderDown) -> Changes:
    """No model of the brief was asked, since their providers are down: the turn waits until one may
    be asked, however often that is."""
    draft = settled(turn)
    attempt = waits_in_a_row(draft.turn.cards, BREAKER) + 1
    call = breaker_call(draft.turn, failure.breaker, failure.after or timedelta())
    return _wait(draft, call, Deferred(attempt, BREAKER, _seconds(call), call.key, failure.message))


def after_refusal(turn: Turn, failure: ModelFailure) -> Changes:
    """The model will never answer this request."""
    return _end(settled(turn), Ending.FAILED, failure.code, failure.message)


def no_room(turn: Turn, budgets: Sequence[BudgetKey], amount: Spending) -> Changes:
    """A budget has no room for the next request: the turn waits, by the only call of this commit,
    until all of them have room for so much."""
    draft = settled(turn)
    attempt = waits_in_a_row(draft.turn.cards, BUDGET) + 1
    call = budget_call(draft.turn, budgets, amount)
    whose = ", ".join(f"{key.scope} {key.key}" for key in budgets)
    return _wait(draft, call, Deferred(attempt, BUDGET, None, call.key, f"for room in {whose}"))


def out_of_budget(turn: Turn, message: str) -> Changes:
    """What the turn alone may spend is used up: that ends it."""
    return _end(settled(turn), Ending.BUDGET, BUDGET_CODE, message)


def stopped(turn: Turn, message: str) -> Changes:
    """Somebody has asked the turn to stop while it ran."""
    return _end(settled(turn), Ending.STOPPED, STOPPED_CODE, message)


# Before the model is asked


def _keep_acting(turn: Turn, heard: Heard, call_tool: ToolCaller) -> Changes:
    """Calls what was agreed to. Other answers are left for when all of them are there."""
    draft = begun(turn).taking((*(each.by.id for each in heard.agreed), *heard.others))
    noted: list[Value] = []
    calls: list[CallSpec] = []
    for each in heard.agreed:
        found = check(turn.brief, each.use, alone=True, calls_left=1)
        note, call = _call(draft.turn, heard.number, each.index, each.use, found, call_tool)
        noted.append(note)
        calls += [call] if call is not None else []
    draft = draft.plus(*noted)
    then = Suspend() if calls or heard.waits else Continue()
    return Changes(then, draft.cards, tuple(calls), draft.applied)


def _terminated(draft: Draft, heard: Heard) -> Changes | None:
    """The end of a turn whose deliverable is the answer of a tool."""
    brief = draft.turn.brief
    for result, call in heard.results:
        tool = find_tool(brief, result.tool)
        ends = tool is not None and tool.after is After.TERMINATE
        if ends and result.status is ResultStatus.OK:
            deliverable = answer_as_deliverable(brief, call.reply)
            return delivered(deliverable, draft.cards, draft.applied)
    return None


def _used_up(draft: Draft) -> Changes | None:
    """The end of a turn that may not ask again."""
    brief, known = draft.turn.brief, steps(draft.turn.cards)
    if len(known) >= brief.limits.model_calls:
        message = f"the model was asked {len(known)} times, which is all that the turn may"
        return _end(draft, Ending.LIMIT, LIMIT_CODE, message)
    taken = spent(known)
    # Tools are counted when they are called: one too many is not called, and the model is told.
    least = Spending(tokens=1, model_calls=1, tool_calls=-taken.tool_calls)
    if not budgeting.fits(brief.allowance, taken, least):
        message = (
            f"the turn has spent its allowance: {taken.usd:f} USD, {taken.tokens} tokens, "
            f"{taken.model_calls} requests"
        )
        return _end(draft, Ending.BUDGET, BUDGET_CODE, message)
    return None


# After it has answered


def _use_tools(draft: Draft, number: int, reply: Reply, call_tool: ToolCaller) -> Changes:
    brief, left = draft.turn.brief, _calls_left(draft.turn)
    alone = len(reply.tool_uses) == 1
    noted: list[Value] = []
    calls: list[CallSpec] = []
    for index, use in enumerate(reply.tool_uses):
        found = check(brief, use, alone=alone, calls_left=left - len(calls))
        if isinstance(found, str):
            found += _cut_off(reply)
        elif found.tool.name == SUBMIT and brief.returns is not None:
            done = Deliverable(Ending.DONE, partial=False, fields=found.arguments)
            return delivered(done, draft.cards, draft.applied)
        note, call = _call(draft.turn, number, index, use, found, call_tool, ask=True)
        noted.append(note)
        calls += [call] if call is not None else []
    draft = draft.plus(*noted)
    if calls:
        return Changes(Suspend(), draft.cards, tuple(calls), draft.applied)
    return _hand_back(draft)


def _cut_off(reply: Reply) -> str:
    """What a model has to know whose mistake may be that it could not write to the end."""
    return f" (your answer is not whole: {_CUT[reply.finish]})" if reply.finish in _CUT else ""


def _call(
    turn: Turn,
    number: int,
    index: int,
    use: ToolUse,
    found: Accepted | str,
    call_tool: ToolCaller,
    *,
    ask: bool = False,
) -> tuple[Value, CallSpec | None]:
    """What comes of a tool use: the call of the tool, or of a person first, or what is wrong."""
    if isinstance(found, str):
        return refused(number, index, use, found), None
    tool = found.tool
    try:
        if ask and needs_approval(tool):
            key = approval_key(number, index)
            call = approval_call(turn.task, tool, found.arguments, key)
        else:
            call = call_tool(tool, found.arguments, tool_key(number, index))
    except BadBrief as error:
        return refused(number, index, use, f"`{tool.name}` cannot be called: {error.message}"), None
    return ToolCall(number, index, call.key, tool.name, tool.target, use.id), call


def _take_text(draft: Draft, reply: Reply) -> Changes:
    brief = draft.turn.brief
    if reply.finish == _FILTERED:
        message = "the provider of the model withheld its answer: its filter does not allow it"
        return _end(draft, Ending.FAILED, "turns.content_filter", message)
    finish = how_to_finish(brief)
    required = brief.returns is not None
    if reply.finish in _CUT:
        note = f"Your answer is not whole: {_CUT[reply.finish]}. Be shorter, and {finish}."
        return _hand_back(draft.plus(Note(note, required)))
    if not reply.text.strip():
        return _hand_back(draft.plus(Note(f"Your answer was empty. Go on, or {finish}.", required)))
    fields = text_as_fields(brief, reply.text)
    if fields is not None:
        done = Deliverable(Ending.DONE, partial=False, fields=fields)
        return delivered(done, draft.cards, draft.applied)
    note = f"Text alone is not a result. If the work is done, {finish}; else call another tool."
    return _hand_back(draft.plus(Note(note, required)))


def _hand_back(draft: Draft) -> Changes:
    """The model is told what was wrong, unless it was told too often."""
    most = draft.turn.brief.limits.repairs
    if repairs_in_a_row(steps(draft.turn.cards)) > most:
        message = f"the model broke the rules {most + 1} times in a row: {_last_complaint(draft)}"
        return _end(draft, Ending.LIMIT, LIMIT_CODE, message)
    return Changes(Continue(), draft.cards, applied=draft.applied)


def _last_complaint(draft: Draft) -> str:
    last = steps(draft.turn.cards)[-1]
    if last.note is not None:
        return last.note.text
    return next(iter(last.results.values())).content


# In common


def _calls_left(turn: Turn) -> int:
    brief = turn.brief
    allowed = [brief.limits.tool_calls]
    if brief.allowance.tool_calls is not None:
        allowed.append(brief.allowance.tool_calls)
    return min(allowed) - tool_calls(steps(turn.cards))


def _wait(draft: Draft, call: CallSpec, why: Deferred) -> Changes:
    draft = draft.plus(why)
    return Changes(Suspend(), draft.cards, (call,), draft.applied)


def _end(
    draft: Draft, ending: Ending, code: str, message: str, *, permanent: bool = True
) -> Changes:
    return ended_early(
        draft.turn,
        ending,
        Problem(code, message),
        cards=draft.cards,
        applied=draft.applied,
        permanent=permanent,
    )


def _seconds(call: CallSpec) -> float:
    return call.timeout / timedelta(seconds=1)
