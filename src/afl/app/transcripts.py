"""`Transcript`: a turn as it went, from its cards. Needs the extra `agents`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from afl.app.services import Services
from afl.bridges.turn_stores import turn_store
from afl.kernel.model import Card, Json, RunId, State, Task, TaskId
from afl.kernel.port import Store
from afl.runtime.errors import UnknownRun, UnknownStep
from afl.turns.cards import find, read, write
from afl.turns.deliverable import ended
from afl.turns.errors import BadBrief
from afl.turns.feed import agent_of
from afl.turns.journal import Context, Thought
from afl.turns.model import TURN, Brief, Deliverable, ModelRequest, Usage
from afl.turns.templates import literal, render
from afl.turns.transcript import ContextBox, Turn, canonical, request, request_hash
from afl.turns.transcript_lines import Line, lines

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """One request to a model, and its answer in figures."""

    #: counts the requests of a turn from 0
    number: int
    model: str
    #: stop, length, tool_call, content_filter or error
    finish: str
    usage: Usage
    usd: Decimal
    #: which table of prices said so; `unknown` where no table has the model
    price_version: str
    #: the hash of the canonical request
    hash: str


@dataclass(frozen=True, slots=True)
class TurnLine:
    """A turn of a run in one line."""

    turn: str
    #: the agent, or the facet that it serves
    name: str
    step: str | None
    state: str
    created_at: datetime
    #: None while it goes on
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """A turn: who said or did what, and what each request took."""

    turn: str
    name: str
    run: str
    step: str | None
    #: queued, ready, running, waiting or closed
    state: str
    #: success, failed, timeout, canceled or partial; None while it goes on
    outcome: str | None
    system: str
    lines: tuple[Line, ...]
    requests: tuple[Asked, ...]
    #: None while it goes on
    deliverable: Deliverable | None
    _turn: Turn

    @property
    def usd(self) -> Decimal:
        """What all requests have cost, but for those that have no price."""
        return sum((asked.usd for asked in self.requests), Decimal(0))

    @property
    def tokens(self) -> int:
        return sum(asked.usage.total for asked in self.requests)

    def request(self, number: int) -> ModelRequest:
        """What the model was asked by this request, made again from the cards.

        Raises:
            UnknownStep: the turn has no such request.
        """
        self._asked(number)
        return request(self._turn, number)

    def request_json(self, number: int) -> Json:
        """The same, in the form that its hash is taken of."""
        content: Json = json.loads(canonical(self.request(number)))
        return content

    def is_as_it_was(self, number: int) -> bool:
        """Whether the request that was made again is the one that was sent, by its hash."""
        return request_hash(self.request(number)) == self._asked(number).hash

    def _asked(self, number: int) -> Asked:
        for asked in self.requests:
            if asked.number == number:
                return asked
        count = len(self.requests)
        raise UnknownStep(
            f"Turn {self.turn} has no request {number}: it has {count}, counted from 0."
        )


class Transcripts:
    """The turns of one store. Threads may share one."""

    def __init__(self, services: Services) -> None:
        self._kernel = services.persistence.kernel
        self._store = turn_store(services.persistence)

    def turns(self, run: str) -> list[TurnLine]:
        """The turns of a run, the oldest first."""
        return [
            TurnLine(
                task.id,
                agent_of(task),
                _step(task),
                _state(task),
                task.created_at,
                task.closed_at,
            )
            for task in self._turns(run)
        ]

    def get(self, run: str, step: str | None = None) -> Transcript:
        """The turn of a run: the one of a step, the one with an id, or the only one.

        Args:
            run: a run, or a turn of an agent.
            step: the path of a step, or the id of a turn.

        Raises:
            UnknownRun, UnknownStep: there is no such turn; the message names those there are.
        """
        return transcript(self._kernel, self._find(run, step))

    def _find(self, run: str, step: str | None) -> Task:
        if step is not None:
            # straight to what is meant, without a look at all tasks of the run
            call = self._kernel.find_call(TaskId(run), step)
            id_ = TaskId(step) if call is None or call.callee is None else call.callee
            task = self._kernel.get_task(id_)
            if task is not None and task.kind == TURN and self._is_of(task, run):
                return task
        found = list(self._turns(run))
        fitting = [task for task in found if step in (None, task.id, _step(task))]
        if len(fitting) == 1:
            return fitting[0]
        if not found:
            raise UnknownStep(
                f"Run {run} has had no turn of a model. `afl runs tree {run}` shows its steps."
            )
        known = ", ".join(dict.fromkeys(_step(task) or task.id for task in found[:5]))
        if fitting:
            raise UnknownStep(f"Run {run} has {len(fitting)} turns; name one, such as {known}.")
        raise UnknownStep(f"No model was asked for `{step}` of run {run}, but for {known}.")

    def _turns(self, run: str) -> Iterator[Task]:
        root = self._kernel.get_task(TaskId(run))
        if root is None:
            raise UnknownRun(f"There is no run {run}.")
        if root.kind == TURN:
            yield root
            return
        after: TaskId | None = None
        while page := self._store.turns_within(RunId(root.run), after, _PAGE):
            yield from (task for task in page if self._is_of(task, run))
            after = page[-1].id

    def _is_of(self, task: Task, run: str) -> bool:
        """Whether a turn belongs to a run itself. An agent knows only with which run all began."""
        given = task.input if isinstance(task.input, dict) else {}
        return task.id == run or str(given.get("run") or task.run) == run


def transcript(kernel: Store, task: Task) -> Transcript:
    """The transcript of a turn, from its rows."""
    journal = kernel.read_box(task.id)
    deliverable = _deliverable(task, journal)
    turn = _turn(kernel, task, journal)
    told = lines(turn)
    if deliverable is not None and not any(line.who == "deliverable" for line in told):
        # the kernel has ended it: nobody was there to write it down
        told = lines(replace(turn, cards=(*journal, write(deliverable))))
    return Transcript(
        turn=task.id,
        name=agent_of(task),
        run=_run(task),
        step=_step(task),
        state=task.state.value,
        outcome=None if task.outcome is None else task.outcome.value,
        system=_rendered(turn),
        lines=tuple(told),
        requests=tuple(_asked(thought) for thought in find(journal, Thought)),
        deliverable=deliverable,
        _turn=turn,
    )


def _turn(kernel: Store, task: Task, journal: Sequence[Card]) -> Turn:
    given = task.input if isinstance(task.input, dict) else {}
    briefs = find(journal, Brief)
    # a turn that has not begun, or could not, knows no more than what it was asked
    brief = briefs[0] if briefs else Brief("", literal(str(given.get("instruction") or "")), ())
    arguments = given.get("arguments" if "agent" in given else "params")
    noted = find(journal, Context)
    boxes = noted[0].lengths if noted else ()
    return Turn(
        task,
        brief,
        dict(arguments) if isinstance(arguments, dict) else {},
        # what came into a box later was not for this turn
        tuple(ContextBox(name, tuple(kernel.read_box(name)[:length])) for name, length in boxes),
        tuple(journal),
    )


def _deliverable(task: Task, journal: Sequence[Card]) -> Deliverable | None:
    last = read(journal[-1]) if journal else None
    if isinstance(last, Deliverable):
        return last
    return ended(task, journal) if task.state is State.CLOSED else None


def _rendered(turn: Turn) -> str:
    try:
        return render(turn.brief.system, turn.arguments)
    except BadBrief:  # it is what the turn failed for, and worth seeing as it is
        return turn.brief.system


def _asked(thought: Thought) -> Asked:
    reply, price = thought.reply, thought.price
    return Asked(
        thought.number,
        reply.model,
        reply.finish,
        reply.usage,
        price.usd,
        price.version,
        thought.request,
    )


def _run(task: Task) -> str:
    given = task.input if isinstance(task.input, dict) else {}
    return str(given.get("run") or task.run)


def _step(task: Task) -> str | None:
    step = task.input.get("step") if isinstance(task.input, dict) else None
    return step if isinstance(step, str) else None


def _state(task: Task) -> str:
    return task.state.value if task.outcome is None else task.outcome.value
