"""A world for games of whole turns: agents, a model and tools that do as a game says, workers that
die, on a real store whose clock the game moves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal

from afl.kernel.doorbell import LocalDoorbell
from afl.kernel.model import (
    CallSpec,
    CallStatus,
    Claim,
    Close,
    Commit,
    Json,
    Outcome,
    State,
    Task,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.turns.budget_waits import wake_waiting
from afl.turns.errors import ModelBusy, ModelRefused
from afl.turns.feed import MemoryFeed
from afl.turns.grip import Grip
from afl.turns.joining import JoinAttendant
from afl.turns.l0 import L0Engine
from afl.turns.loop import TurnLoop
from afl.turns.model import (
    HUMAN,
    After,
    Agent,
    AgentId,
    Brief,
    Limits,
    ModelRequest,
    Reply,
    Text,
    Tool,
    ToolKind,
    ToolUse,
    Usage,
)
from afl.turns.ports import Briefing, Listener
from afl.turns.prices import PriceBook, Rate
from afl.turns.relay import OutboxRelay
from afl.turns.serving import work_on
from tests.turns.driving import LEASE, SCRIPTED, Hand, OneModel, tool
from tests.turns.grounds import Died, Ground

AGENTS = ("ann", "bob", "cid")
#: `cid` has to deliver this; the others deliver text.
RETURNS: dict[str, Json] = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "score": {"type": "integer"}},
    "required": ["title", "score"],
    "additionalProperties": False,
}
TOOLS = (
    tool("sweep", timeout=timedelta(seconds=40)),
    tool("mop"),
    tool("web", untrusted=True),
    tool("pay", effect="irreversible"),
    tool("ask_bob", kind=ToolKind.AGENT, target="bob", timeout=timedelta(minutes=5)),
    tool("hand_over", after=After.TERMINATE),
)
LIMITS = Limits(model_calls=6, tool_calls=8, repairs=2, busy=2)
_TEXT = "So far, so good."


#: What the model is to say: text, the names of tools (with `!` if their arguments are to be wrong),
#: or how it fails.
Line = str | tuple[str, ...]


class ToldModel:
    """Says what a game tells it to; then it brings the turn to its end.

    Every tool use has a number that no other has, so that an effect tells what it comes from.
    """

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.numbers = 0
        self.requests: list[ModelRequest] = []

    async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
        self.requests.append(request)
        can_submit = any(each.name == "submit_result" for each in request.tools)
        line = self.lines.pop(0) if self.lines else "submit" if can_submit else "text"
        if line == "busy":
            raise ModelBusy("too many requests")
        if line == "refuse":
            raise ModelRefused("the key is wrong")
        if isinstance(line, str):
            return self._reply(*self._said(line))
        return self._reply(*(self._use(name) for name in line))

    def _said(self, line: str) -> tuple[Text | ToolUse, ...]:
        if line == "submit":
            return (ToolUse("s", "submit_result", '{"title": "A", "score": 1}'),)
        return (Text("" if line == "empty" else _TEXT),)

    def _use(self, name: str) -> ToolUse:
        self.numbers += 1
        arguments = '{"n": "x"}' if name.endswith("!") else f'{{"n": {self.numbers}}}'
        # a provider that gives every call the same id
        return ToolUse("same", name.rstrip("!"), arguments)

    def _reply(self, *parts: Text | ToolUse) -> Reply:
        finish = "tool_call" if any(isinstance(part, ToolUse) for part in parts) else "stop"
        return Reply(parts, finish, SCRIPTED, Usage(10, 5))


class GameBriefs:
    """All agents have the same tools; one of them has to hand in fields."""

    def names(self) -> tuple[str, ...]:
        return ("agent:default",)

    def brief(self, task: Task) -> Briefing:
        returns = RETURNS if task.lane == "cid" else None
        brief = Brief("You tidy.", "Tidy.", (SCRIPTED,), TOOLS, returns=returns, limits=LIMITS)
        return Briefing(brief, {}, agent=None if task.lane is None else AgentId(task.lane))


class GameTools:
    """Facets are served on a list of their own; agents are asked by a turn."""

    def call(self, task: Task, tool: Tool, arguments: dict[str, Json], key: str) -> CallSpec:
        if tool.kind is ToolKind.AGENT:
            given: Json = {"agent": tool.target, "instruction": "help"}
            spec = TaskSpec("turn", "agent:default", lane=tool.target, input=given)
        else:
            spec = TaskSpec("event", tool.target, list="tools", input=arguments)
        return CallSpec(key, spec, tool.timeout)


@dataclass(slots=True)
class Sink:
    """What tools have done to the world, by the key of the call. The same key is the same deed."""

    effects: dict[str, int] = field(default_factory=dict)
    attempts: int = 0

    def effect(self, key: str, value: int) -> int:
        self.attempts += 1
        return self.effects.setdefault(key, value)


class World:
    """All that plays: the engine for callers, the loop for turns, workers that come and go."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.kernel = ground.kernel
        self.store = ground.store
        self.bell = LocalDoorbell()
        self.feed = MemoryFeed()
        self.l0 = L0Engine(self.store, self.bell, self.feed, ground.ids)
        self.relay = OutboxRelay(self.kernel, self.feed, "relay")
        self.model = ToldModel()
        self.sink = Sink()
        prices = PriceBook({SCRIPTED: Rate(request=Decimal("0.01"))}.get, ground.clock)
        self.loop = TurnLoop(
            self.store,
            OneModel(self.model),
            prices,
            GameBriefs(),
            GameTools(),
            self.feed,
            self.bell.ring,
            ground.clock,
        )
        self._hands = 0
        self.hand = self.new_hand()
        self.tool_worker = self.new_tool_worker()
        for agent in AGENTS:
            self.store.save_agent(Agent(AgentId(agent), models=(SCRIPTED,)))

    # Workers

    def new_hand(self) -> Hand:
        self._hands += 1
        joins = JoinAttendant(self.kernel, self.bell.ring)
        return Hand(self.kernel, self.loop, joins, name=f"hand-{self._hands}")

    def new_tool_worker(self) -> WorkerId:
        self._hands += 1
        worker = WorkerId(f"tools-{self._hands}")
        names = tuple(each.target for each in TOOLS)
        self.kernel.register(
            WorkerSpec(worker, worker, lists=("tools",), handlers=names, lease=LEASE)
        )
        return worker

    def work(
        self, hand: Hand, claim: Claim, lines: Sequence[Line], *, stopping: bool = False
    ) -> None:
        """Has a claim worked on; `stopping` if its worker has heard that it shall end."""
        self.model.lines = list(lines)
        asyncio.run(self._work(hand, claim, stopping))

    async def _work(self, hand: Hand, claim: Claim, stopping: bool) -> None:
        grip = Grip(claim)
        if stopping:
            grip.stop()
        await work_on(self.kernel, hand.served, grip)

    def work_and_die(self, lines: Sequence[Line], commit: int, *, after: bool) -> None:
        """A worker takes something, and is gone at one of its commits, or when it is done."""
        hand = self.new_hand()
        claims = hand.claim(1)
        self.kernel.dies_at, self.kernel.dies_after = commit, after
        try:
            for claim in claims:
                self.work(hand, claim, lines)
        except Died:
            pass
        finally:
            self.kernel.dies_at = None

    def serve_tool(self, task: Task, outcome: Outcome, dies: str) -> None:
        """A tool does what it was asked: it has its effect under the key of its call."""
        worker = self.tool_worker
        if dies:
            self.tool_worker = self.new_tool_worker()
        claim = self.kernel.take(worker, task.id)
        if claim is None or dies == "before":
            return
        assert isinstance(task.input, dict)
        n = task.input["n"]
        assert isinstance(n, int)
        assert task.parent_call is not None
        done = self.sink.effect(task.parent_call, n)
        if dies != "after":
            close = Close(outcome, result={"done": done}, error="it broke")
            self.kernel.commit([Commit(claim.fence, close)])

    # Time

    def let_pass(self, by: timedelta) -> None:
        self.ground.clock.advance(by)
        for worker in (self.hand.id, self.tool_worker):
            self.kernel.renew(worker)
        self.sweep()

    def sweep(self) -> None:
        while self.kernel.sweep().total:
            pass
        self.store.settle_holds_of_closed()

    def read_relay(self) -> None:
        while self.relay.step():
            pass

    def play_to_the_end(self, rounds: int = 200) -> None:
        """Workers work, tools answer, people agree to nothing, time passes, until all is over."""
        for _ in range(rounds):
            claims = self.hand.claim()
            for claim in claims:
                self.work(self.hand, claim, ())
            served = self._serve_tools()
            if not claims and not served:
                self.let_pass(LEASE + timedelta(seconds=5))
                if not wake_waiting(self.store) and not self._open():
                    break
        self.read_relay()

    def _serve_tools(self) -> int:
        rows = self.ground.snapshot().tasks.values()
        ready = [task for task in rows if task.list == "tools" and task.state is State.READY]
        for task in ready:
            self.serve_tool(task, Outcome.SUCCESS, "")
        for task in rows:
            if task.kind == HUMAN and task.parent_call and task.state is State.READY:
                self.l0.report(task.parent_call, CallStatus.OK, {"approved": False})
        return len(ready)

    def _open(self) -> int:
        rows = self.ground.snapshot().tasks.values()
        return sum(task.state is not State.CLOSED for task in rows)
