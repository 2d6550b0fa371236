"""A turn whose model is hostile, on a real store with the real loop: whatever reaches a tool is
written down outside of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from afl.kernel.doorbell import LocalDoorbell
from afl.kernel.model import (
    CallStatus,
    Card,
    ClaimRequest,
    Close,
    Commit,
    Json,
    Outcome,
    State,
    Task,
    TaskId,
    WorkerId,
    WorkerSpec,
)
from afl.turns.cards import find
from afl.turns.feed import SilentFeed
from afl.turns.l0 import L0Engine
from afl.turns.loop import TurnLoop
from afl.turns.model import Brief, Deliverable, ModelRequest, Reply, Tool, Usage
from afl.turns.ports import Listener
from afl.turns.prices import PriceBook
from afl.turns.relay import deliverable_card
from tests.turns.driving import LEASE, SCRIPTED, FacetTools, FixedBriefs, Hand, OneModel, turn_task
from tests.turns.grounds import Ground

#: Served by the tool worker, and offered to nobody.
FORBIDDEN = "launch"


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that a tool has done."""

    tool: str
    arguments: Json


class Hostile:
    """A model that says whatever a test has it say, in every request anew."""

    def __init__(self, say: Callable[[ModelRequest], Reply]) -> None:
        self._say = say
        self.requests: list[ModelRequest] = []

    async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
        self.requests.append(request)
        return self._say(request)


class HostileWorld:
    """One turn: its model, its tools, and people who are asked."""

    def __init__(self, ground: Ground, brief: Brief, say: Callable[[ModelRequest], Reply]) -> None:
        self.kernel = ground.kernel
        self.clock = ground.clock
        self.model = Hostile(say)
        self.brief = brief
        self.effects: list[Effect] = []
        #: what tools answer, by their name
        self.answers: dict[str, Json] = {}
        loop = TurnLoop(
            ground.store,
            OneModel(self.model),
            PriceBook(),
            FixedBriefs(brief),
            FacetTools(),
            SilentFeed(),
            clock=ground.clock,
        )
        self._l0 = L0Engine(ground.store, LocalDoorbell(), SilentFeed(), ground.ids)
        self._hand = Hand(self.kernel, loop)
        self._tools = WorkerId("tools")
        names = tuple({*(tool.target for tool in brief.tools), FORBIDDEN})
        self._names = names
        spec = WorkerSpec(self._tools, "tools", lists=("tools",), handlers=names, lease=LEASE)
        self.kernel.register(spec)
        (task,) = self.kernel.enqueue([turn_task()])
        self.turn: TaskId = task.id

    @property
    def task(self) -> Task:
        task = self.kernel.get_task(self.turn)
        assert task is not None
        return task

    @property
    def journal(self) -> Sequence[Card]:
        return self.kernel.read_box(self.turn)

    @property
    def delivered(self) -> Deliverable:
        """What the turn delivers, which it does on every way out."""
        box, _ = deliverable_card(self.kernel, self.task)
        (delivered,) = find(self.kernel.read_box(box), Deliverable)
        return delivered

    def questions(self) -> list[Task]:
        """What people are asked and have not answered."""
        return [task for task in self.kernel.find_tasks(state=State.READY) if task.kind == "human"]

    def answer_question(self, answer: Json) -> None:
        question = self.questions()[0]
        assert question.parent_call is not None
        self._l0.report(question.parent_call, CallStatus.OK, answer)

    def play(self, rounds: int = 300) -> Task:
        """Works and serves tools until the turn has ended, or waits for a person."""
        for _ in range(rounds):
            if self.task.state is State.CLOSED:
                return self.task
            claims = self._hand.claim()
            for claim in claims:
                self._hand.work(claim)
            if not self._serve() and not claims:
                if self.questions():
                    return self.task
                self._let_pass()
        raise AssertionError("the turn never ends")

    def _serve(self) -> int:
        """Tools do whatever they are asked."""
        claims = self.kernel.claim(ClaimRequest(self._tools, self._names, ("tools",), n=100))
        for claim in claims:
            name = claim.task.name
            self.effects.append(Effect(name, claim.task.input))
            result = self.answers.get(name, "done")
            self.kernel.commit([Commit(claim.fence, Close(Outcome.SUCCESS, result=result))])
        return len(claims)

    def _let_pass(self) -> None:
        self.clock.advance(timedelta(minutes=1))
        for worker in (self._hand.id, self._tools):
            self.kernel.renew(worker)
        self.kernel.sweep()


def offered(brief: Brief) -> dict[str, Tool]:
    """The tools of a brief, by what they do."""
    return {tool.target: tool for tool in brief.tools}


def reply(*parts: object, finish: str = "tool_call") -> Reply:
    return Reply(tuple(parts), finish, SCRIPTED, Usage(10, 5))  # type: ignore[arg-type]
