"""What must be true of turns at every moment of a game, and at its end. It changes nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from afl.kernel.model import (
    Call,
    CallStatus,
    Card,
    Outcome,
    State,
    Task,
    TaskId,
)
from afl.testing.conformance.invariants import Snapshot
from afl.turns.cards import DELIVERABLE, TASK, find, read
from afl.turns.journal import Thought, ToolCall, ToolResult
from afl.turns.model import TURN, Brief, Deliverable
from afl.turns.relay import END_BOX
from afl.turns.schemas import fits
from afl.turns.transcript import Turn, request, request_hash
from tests.turns.gaming import World
from tests.turns.grounds import PostgresGround


def turns_of(rows: Snapshot) -> list[Task]:
    return [task for task in rows.tasks.values() if task.kind == TURN]


def calls_by_caller(rows: Snapshot) -> dict[TaskId, list[Call]]:
    found: dict[TaskId, list[Call]] = defaultdict(list)
    for call in rows.calls.values():
        found[call.caller].append(call)
    return found


def check_turns(world: World, rows: Snapshot) -> Iterator[str]:
    """The journals of turns, and what tools have done."""
    calls = calls_by_caller(rows)
    for task in turns_of(rows):
        journal = world.kernel.read_box(task.id) if task.seq else []
        yield from _journal(task, journal, calls[task.id])
        if task.state is State.WAITING and not any(
            call.status is CallStatus.OPEN and call.deadline is not None for call in calls[task.id]
        ):
            yield f"turn {task.id} waits for nothing"
    yield from _effects(world, rows)


def _journal(task: Task, journal: Sequence[Card], calls: Sequence[Call]) -> Iterator[str]:
    numbers = [thought.number for thought in find(journal, Thought)]
    if numbers != list(range(len(numbers))):
        yield f"turn {task.id} has the thoughts {numbers}"
    delivered = [card.kind for card in journal].count(DELIVERABLE)
    if delivered > (task.state is State.CLOSED):
        yield f"turn {task.id} is {task.state.value} and has {delivered} deliverables"
    if delivered and journal[-1].kind != DELIVERABLE:
        yield f"turn {task.id} went on after it had delivered"
    called = Counter(call.key for call in find(journal, ToolCall))
    opened = {call.key for call in calls if call.key[0].isdigit() or call.key.startswith("approve")}
    if set(called) != opened or max(called.values(), default=1) > 1:
        yield f"turn {task.id} has noted {dict(called)} and called {sorted(opened)}"
    results = find(journal, ToolResult)
    places = [(each.number, each.index) for each in results if each.key is not None]
    if places != sorted(places):
        yield f"turn {task.id} has taken answers in as they came: {places}"
    if [card.kind for card in journal].count(TASK) > 1:
        yield f"turn {task.id} was told twice what it is to do"
    answered = Counter((each.number, each.index) for each in results)
    if max(answered.values(), default=1) > 1:
        yield f"turn {task.id} has two results of one tool use: {answered}"


def _effects(world: World, rows: Snapshot) -> Iterator[str]:
    numbers = Counter(world.sink.effects.values())
    for number, count in numbers.items():
        if count > 1:
            yield f"tool use {number} has had its effect {count} times"
    by_key = {(call.caller, call.key): call for call in rows.calls.values()}
    for key in world.sink.effects:
        call = next((each for each in rows.calls.values() if each.id == key), None)
        callee = None if call is None or call.callee is None else rows.tasks[call.callee]
        if call is None or callee is None:
            yield f"the effect {key} belongs to no call"
        elif callee.name == "pay":
            asked = by_key.get((call.caller, f"approve:{call.key}"))
            if asked is None or asked.reply != {"approved": True}:
                yield f"call {call.key} of {call.caller} had its effect, and nobody has agreed"


# At the end


def check_ends(world: World, rows: Snapshot) -> Iterator[str]:
    """Every turn has ended, with one deliverable, which was told of once."""
    told = Counter(
        str(body["agent_turn_id"])
        for subject, body in world.feed.published()
        if subject.endswith(".task")
    )
    for task in turns_of(rows):
        if task.state is not State.CLOSED:
            yield f"turn {task.id} is {task.state.value}"
            continue
        if told[task.id] != 1:
            yield f"the end of turn {task.id} was told {told[task.id]} times"
        yield from _end(world, task)
        yield from _requests(world, task)


def _end(world: World, task: Task) -> Iterator[str]:
    journal, end = (
        world.kernel.read_box(task.id),
        world.kernel.read_box(END_BOX.format(turn=task.id)),
    )
    delivered = find([*journal, *end], Deliverable)
    if len(delivered) != 1:
        yield f"turn {task.id} has {len(delivered)} deliverables"
        return
    made = delivered[0]
    brief = next(iter(find(journal, Brief)), None)
    if (task.outcome is Outcome.SUCCESS) == made.partial:
        yield f"turn {task.id} ended as {task.outcome} and delivers {made}"
    returns = None if brief is None or made.partial else brief.returns
    if returns is not None and not fits(returns, made.fields):
        yield f"turn {task.id} delivers what does not fit: {made.fields}"
    if task.outcome is Outcome.SUCCESS and task.result != made.fields:
        yield f"turn {task.id} has the result {task.result} and delivers {made.fields}"
    if made.partial and not made.message:
        yield f"turn {task.id} does not say why it has delivered only a part"


def _requests(world: World, task: Task) -> Iterator[str]:
    """Whatever was asked can be asked again as it was."""
    journal = tuple(world.kernel.read_box(task.id))
    brief = read(journal[0]) if journal else None
    if isinstance(brief, Brief):
        turn = Turn(task, brief, {}, cards=journal)
        for thought in find(journal, Thought):
            if request_hash(request(turn, thought.number)) != thought.request:
                yield f"request {thought.number} of turn {task.id} comes out otherwise"


# The views of agents

_STATUSES = {
    State.READY: "dispatched",
    State.RUNNING: "running",
    State.WAITING: "suspended",
}
_HEADS = """
select agent_id, status, active_agent_turn_id::text, waiting_tool_count, turn_epoch
from state.agent_state_head
"""
_INBOX = """
select inbox_id::text, message_type, agent_turn_id::text, correlation_id, status
from state.agent_inbox
"""
_WAITING = "select agent_turn_id::text, tool_call_id, wait_status from state.turn_waiting_tools"


def check_views(ground: PostgresGround, rows: Snapshot) -> Iterator[str]:
    """What the views say, against the rows."""
    laned = {task.id: task for task in turns_of(rows) if task.lane is not None}
    calls = [call for call in rows.calls.values() if call.caller in laned]
    yield from _heads(ground, laned, calls)
    inbox = {row[0]: row[1:] for row in ground.rows(_INBOX)}
    answered = {call.id: call for call in calls if call.status is not CallStatus.OPEN}
    if inbox.keys() != laned.keys() | answered.keys():
        yield f"the inbox has {sorted(inbox)}"
    for id_, (kind, turn, correlation, status) in inbox.items():
        if (task := laned.get(id_)) is not None:
            wanted: tuple[str, str, str] = ("turn", task.id, task.idem or task.id)
            told = _inbox_status(task)
        elif (call := answered.get(id_)) is not None:
            is_late = call.status is CallStatus.TIMEOUT
            wanted = ("timeout" if is_late else "tool_result", call.caller, call.key)
            told = _answer_status(call, laned[call.caller])
        else:
            continue
        if (kind, turn, correlation) != wanted or status not in told:
            yield f"the inbox says {(kind, turn, correlation, status)} of {wanted}: {told}"
    waiting = {(turn, key): status for turn, key, status in ground.rows(_WAITING)}
    live = {
        (call.caller, call.key): _wait_status(call)
        for call in calls
        if laned[call.caller].state is not State.CLOSED
    }
    if waiting != live:
        yield f"the tools that are waited for are {waiting}, and not {live}"


def _heads(
    ground: PostgresGround, laned: dict[TaskId, Task], calls: Sequence[Call]
) -> Iterator[str]:
    heads = {row[0]: row[1:] for row in ground.rows(_HEADS)}
    if heads.keys() != {task.lane for task in laned.values()}:
        yield f"there are heads of {sorted(heads)}"
    for agent, (status, turn, waiting, epoch) in heads.items():
        active = next((t for t in laned.values() if t.lane == agent and t.is_active), None)
        if active is None:
            wanted: tuple[object, ...] = ("idle", None, 0)
        else:
            is_open = [c for c in calls if (c.caller, c.status) == (active.id, CallStatus.OPEN)]
            count = len(is_open) if active.state is State.WAITING else 0
            wanted = (_STATUSES[active.state], active.id, count)
        if (status, turn, waiting) != wanted:
            yield f"the head of {agent} is {(status, turn, waiting)} and not {wanted}"
        if active is not None and active.fence is not None and epoch != active.fence:
            yield f"the epoch of {agent} is {epoch} and not {active.fence}"


def _inbox_status(task: Task) -> tuple[str, ...]:
    if task.state is State.CLOSED:
        if task.outcome in (Outcome.FAILED, Outcome.TIMEOUT):
            return ("error", "skipped")
        return ("consumed", "skipped")
    if task.committed_fence is not None:
        return ("consumed", "deferred")
    fresh = {State.QUEUED: "queued", State.READY: "pending", State.RUNNING: "processing"}
    return (fresh.get(task.state, "consumed"), "deferred")


def _answer_status(call: Call, task: Task) -> tuple[str, ...]:
    if call.applied:
        return ("consumed",)
    if task.state is State.CLOSED:
        return ("skipped",)
    return ("processing" if task.state is State.RUNNING else "pending",)


def _wait_status(call: Call) -> str:
    if call.status is CallStatus.OPEN:
        return "waiting"
    if call.applied:
        return "applied"
    special = {CallStatus.TIMEOUT: "expired", CallStatus.CANCELED: "dropped"}
    return special.get(call.status, "received")
