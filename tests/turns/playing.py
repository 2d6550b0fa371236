"""A turn played on a real store with a scripted model: what the loop around the machine does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal

from afl.kernel.memory import MemoryStore
from afl.kernel.model import (
    CallSpec,
    CallStatus,
    Claim,
    Close,
    Commit,
    Continue,
    Json,
    State,
    Suspend,
    Task,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.testing.clock import SequentialIds, VirtualClock
from afl.turns.cards import find
from afl.turns.changes import Act, Changes, grown
from afl.turns.errors import BadBrief, ModelBusy, ModelRefused, ProviderDown
from afl.turns.journal import ToolResult
from afl.turns.machine import after_busy, after_down, after_refusal, after_reply, next_move
from afl.turns.model import (
    Brief,
    Deliverable,
    ModelRequest,
    Price,
    Reply,
    Text,
    Tool,
    ToolKind,
    ToolUse,
    Usage,
)
from afl.turns.transcript import ContextBox, Turn, canonical, request_hash

ONE = '{"n": 1}'
PRICE = Price(Decimal("0.01"), "test")
AGENT = TaskSpec("turn", "agent:default")
NUMBER: dict[str, Json] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
RETURNS: dict[str, Json] = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "score": {"type": "integer"}},
    "required": ["title", "score"],
    "additionalProperties": False,
}


def tool(name: str = "add", /, **given: object) -> Tool:
    """A tool that takes a number."""
    fields: dict[str, object] = {
        "description": "adds",
        "schema": NUMBER,
        "kind": ToolKind.FACET,
        "target": f"math.{name}",
    }
    return Tool(name, **(fields | given))  # type: ignore[arg-type]


def brief(*tools: Tool, **given: object) -> Brief:
    """What a turn of these tests is to do."""
    fields: dict[str, object] = {"system": "Be brief.", "template": "Do {what}.", "models": ("m",)}
    return Brief(tools=tools, **(fields | given))  # type: ignore[arg-type]


def uses(*calls: tuple[str, str], text: str = "", ids: Iterable[str] = ()) -> Reply:
    """A reply that calls tools, each a name with its arguments as the model wrote them."""
    given = [*ids] or [f"id{index}" for index in range(len(calls))]
    parts = [ToolUse(id, name, args) for id, (name, args) in zip(given, calls, strict=True)]
    said = (Text(text),) if text else ()
    return Reply((*said, *parts), "tool_call", "m", Usage(10, 5))


def says(text: str, finish: str = "stop") -> Reply:
    """A reply that is text."""
    return Reply((Text(text),), finish, "m", Usage(10, 5))


def call_tool(made: Tool, arguments: dict[str, Json], key: str) -> CallSpec:
    """How the tools of these tests are called."""
    if made.target == "math.broken":
        raise BadBrief("nobody knows this facet")
    return CallSpec(key, TaskSpec("event", made.target, input=arguments), made.timeout)


@dataclass
class Play:
    """One turn. Every request that was made is kept, as it was."""

    brief: Brief
    script: list[Reply | ModelBusy | ModelRefused]
    arguments: dict[str, Json] = field(default_factory=lambda: {"what": "it"})
    #: whether what comes before a request is committed with it, or on its own before
    commit_before: bool = False
    spec: TaskSpec = AGENT
    boxes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.clock = VirtualClock()
        self.store = MemoryStore(self.clock, SequentialIds())
        self.worker = WorkerId("w")
        lease = timedelta(days=1000)
        self.store.register(WorkerSpec(self.worker, "w", handlers=("default",), lease=lease))
        (task,) = self.store.enqueue([self.spec])
        self.id = task.id
        self.asked: list[bytes] = []
        self.requests: list[ModelRequest] = []
        self.commits: list[Changes] = []
        self._claim: Claim | None = None
        self._number = 0

    @property
    def task(self) -> Task:
        task = self.store.get_task(self.id)
        assert task is not None
        return task

    def turn(self) -> Turn:
        """The turn as its rows say."""
        calls = self.store.calls_of(self.id)
        replies = [c for c in calls if c.status is not CallStatus.OPEN and not c.applied]
        # in another order than they were made, as it happens
        replies.sort(key=lambda call: call.key, reverse=True)
        context = tuple(ContextBox(box, tuple(self.store.read_box(box))) for box in self.boxes)
        cards = tuple(self.store.read_box(self.id))
        return Turn(self.task, self.brief, self.arguments, context, cards, tuple(replies))

    def run(self) -> Play:
        """Moves until the turn waits or is closed."""
        for _ in range(200):
            if self.task.state not in (State.READY, State.RUNNING):
                return self
            self.move()
        raise AssertionError("it never ends")

    def claim(self) -> None:
        """Takes the turn, unless it is taken."""
        if self._claim is None:
            self._claim = self.store.take(self.worker, self.id)
            self._number = 0

    def move(self) -> Changes:
        """One request, or one commit without any."""
        self.claim()
        turn = self.turn()
        move = next_move(turn, call_tool)
        if isinstance(move, Act):
            return self.commit(move.changes)
        if self.commit_before and move.before.cards:
            self.commit(move.before)
            turn = grown(turn, move.before)
        self.requests.append(move.request)
        said = self.script.pop(0)
        if isinstance(said, ProviderDown):
            return self.commit(after_down(turn, said))
        if isinstance(said, ModelBusy):
            return self.commit(after_busy(turn, said))
        if isinstance(said, ModelRefused):
            return self.commit(after_refusal(turn, said))
        self.asked.append(canonical(move.request))
        assert move.number == len(self.asked) - 1
        changes = after_reply(turn, said, PRICE, request_hash(move.request), call_tool)
        return self.commit(changes)

    def commit(self, changes: Changes) -> Changes:
        assert self._claim is not None
        self.commits.append(changes)
        self.store.commit(
            [
                Commit(
                    self._claim.fence,
                    changes.then,
                    self._number,
                    changes.cards,
                    changes.calls,
                    changes.applied,
                )
            ]
        )
        self._number += 1
        if isinstance(changes.then, Suspend | Close):
            self._claim = None
        return changes

    def answer(self, key: str, body: Json, status: CallStatus = CallStatus.OK) -> Play:
        call = self.store.find_call(self.id, key)
        assert call is not None, f"nobody has called {key}"
        self.store.reply(call.id, status, body)
        return self

    def open_keys(self) -> list[str]:
        calls = self.store.calls_of(self.id)
        return sorted(call.key for call in calls if call.status is CallStatus.OPEN)

    def results(self) -> list[ToolResult]:
        return find(self.store.read_box(self.id), ToolResult)

    def deliverable(self) -> Deliverable:
        (one,) = find(self.store.read_box(self.id), Deliverable)
        return one

    def last_then(self) -> Suspend | Continue | Close:
        return self.commits[-1].then
