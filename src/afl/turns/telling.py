"""What a turn tells its watchers: durably with its commits, and lossily while the model speaks."""

from __future__ import annotations

from collections.abc import Iterator

from afl.kernel.model import Announcement, Close, Continue, Json, Task
from afl.turns.cards import find
from afl.turns.changes import Changes
from afl.turns.chunks import CONTENT, END, REASONING, START, Chunk
from afl.turns.feed import agent_of, chunk_subject
from afl.turns.journal import ToolCall
from afl.turns.ports import LiveFeed

STATE, STEP = "agent.state", "agent.step"
_CHUNKS = {"text": CONTENT, "thinking": REASONING}


def announcements(
    task: Task, changes: Changes, number: int | None = None, phase: str = "completed"
) -> Iterator[Announcement]:
    """What a commit announces; with a number, also how far that request of the turn is."""
    yield Announcement(STATE, task.id, task.run, state(task, changes))
    if number is not None:
        yield Announcement(STEP, task.id, task.run, step(task, number, phase))


def state(task: Task, changes: Changes | None = None) -> dict[str, Json]:
    """What the agent does after a commit; without one, before it asks the model."""
    then = Continue() if changes is None else changes.then
    calls = () if changes is None else changes.calls
    told: dict[str, Json] = {
        "agent": agent_of(task),
        "agent_turn_id": task.id,
        "turn_epoch": task.fence,
    }
    if isinstance(then, Close):
        return {**told, "status": "idle"}
    if isinstance(then, Continue):
        return {**told, "status": "running", "activity": "thinking"}
    tools = [call.tool for call in find(changes.cards, ToolCall)] if changes is not None else []
    return {
        **told,
        "status": "suspended",
        "activity": "awaiting_tool_result",
        "current_tool": tools[0] if tools else None,
        "waiting_tool_count": len(calls),
    }


def step(task: Task, number: int, phase: str) -> dict[str, Json]:
    return {
        "agent": agent_of(task),
        "agent_turn_id": task.id,
        "step_id": number,
        "phase": phase,
    }


class Stream:
    """The pieces of one answer, as `Listener` hears them, on the feed."""

    def __init__(self, feed: LiveFeed, task: Task, number: int) -> None:
        self._feed = feed
        self._subject = chunk_subject(agent_of(task))
        self._turn, self._epoch, self._number = task.id, task.fence or 0, number
        self._index = 0
        self._publish(START, "")

    def __call__(self, kind: str, text: str) -> None:
        self._publish(_CHUNKS.get(kind, kind), text)

    def end(self) -> None:
        self._publish(END, "")

    def _publish(self, kind: str, text: str) -> None:
        at = self._index
        self._index += 1
        chunk = Chunk(self._turn, self._epoch, self._number, kind, text, at, self._index)
        self._feed.publish(self._subject, chunk.body())
