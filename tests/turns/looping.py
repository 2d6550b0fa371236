"""A turn on a store in memory, with a scripted model and tools that are answered by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal

from afl.kernel.memory import MemoryStore
from afl.kernel.model import (
    Card,
    ClaimRequest,
    Close,
    Commit,
    Committed,
    Outcome,
    State,
    Task,
    TaskId,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Writes
from afl.testing.clock import SequentialIds, VirtualClock
from afl.turns import cards
from afl.turns.feed import MemoryFeed
from afl.turns.loop import TurnLoop
from afl.turns.memory_store import MemoryTurnStore
from afl.turns.model import (
    Brief,
    Deliverable,
    ModelRequest,
    ToolAnswered,
)
from afl.turns.models.scripted import Answer, Call, ScriptedModel, Step
from afl.turns.prices import PriceBook, Rate
from tests.turns.driving import (
    SCRIPTED,
    FacetTools,
    FixedBriefs,
    Hand,
    OneModel,
    brief,
    task_of,
    tool,
    turn_task,
)

TOOLS = WorkerId("tools")
CHEAP = Rate(input=Decimal(1), output=Decimal(1))


class Dropping(MemoryStore):
    """A store whose process, or network, is away at the commits that a test chooses."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock, SequentialIds())
        self.commits_seen = 0
        #: called with the number of the commit, before it and after it
        self.before: Callable[[int], None] = lambda _: None
        self.after: Callable[[int], None] = lambda _: None

    def commit(
        self,
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        if writes is None or not commits:
            return super().commit(commits, writes=writes, eager=eager)
        number, self.commits_seen = self.commits_seen, self.commits_seen + 1
        self.before(number)
        done = super().commit(commits, writes=writes, eager=eager)
        self.after(number)
        return done


class World:
    """A turn on a store in memory, with a scripted model and tools that are answered by hand."""

    def __init__(self, script: Sequence[Step], given: Brief | None = None) -> None:
        self.clock = VirtualClock(tick=timedelta(microseconds=1))
        self.kernel = Dropping(self.clock)
        self.store = MemoryTurnStore(self.kernel)
        self.model = ScriptedModel(script)
        self.models = OneModel(self.model)
        self.feed = MemoryFeed()
        self.rung: set[str] = set()
        self.briefs = FixedBriefs(given or brief(tool("sweep"), tool("mop")))
        self.loop = TurnLoop(
            self.store,
            self.models,
            PriceBook({SCRIPTED: CHEAP}.get, self.clock),
            self.briefs,
            FacetTools(),
            self.feed,
            ring=self.rung.update,
            clock=self.clock,
        )
        self.hand = Hand(self.kernel, self.loop)
        self.kernel.register(WorkerSpec(TOOLS, "tools", lists=("tools",), handlers=("sweep",)))

    def start(self, **more: object) -> TaskId:
        (task,) = self.kernel.enqueue([turn_task(**more)])  # type: ignore[arg-type]
        return task.id

    def task(self, turn: TaskId) -> Task:
        return task_of(self.kernel, turn)

    def journal(self, turn: TaskId) -> list[Card]:
        return self.kernel.read_box(turn)

    def kinds(self, turn: TaskId) -> list[str]:
        return [card.kind for card in self.journal(turn)]

    def delivered(self, turn: TaskId) -> Deliverable:
        value = cards.read(self.journal(turn)[-1])
        assert isinstance(value, Deliverable)
        return value

    def answer_tools(self) -> int:
        """Every tool answers with twice what it was given."""
        request = ClaimRequest(TOOLS, ("sweep", "mop"), ("tools",), n=10)
        claims = self.kernel.claim(request)
        for claim in claims:
            assert isinstance(claim.task.input, dict)
            n = claim.task.input["n"]
            assert isinstance(n, int)
            self.kernel.commit([Commit(claim.fence, Close(Outcome.SUCCESS, result=2 * n))])
        return len(claims)

    def play(self, turn: TaskId, rounds: int = 50) -> Task:
        """Until the turn has ended: works, answers, lets the time of waits pass."""
        for _ in range(rounds):
            if self.task(turn).state is State.CLOSED:
                return self.task(turn)
            if not self.hand.work_off() and not self.answer_tools():
                self.clock.advance(timedelta(minutes=1))
                for worker in (self.hand.id, TOOLS):
                    self.kernel.renew(worker)
                self.kernel.sweep()
        raise AssertionError("the turn never ends")


def calls(*uses: tuple[str, int]) -> Answer:
    return Answer(calls=tuple(Call(name, {"n": n}) for name, n in uses))


def answers(request: ModelRequest) -> list[ToolAnswered]:
    return [message for message in request.messages if isinstance(message, ToolAnswered)]


TIDY = (calls(("sweep", 1), ("mop", 2)), calls(("mop", 3)), Answer("All is tidy."))
