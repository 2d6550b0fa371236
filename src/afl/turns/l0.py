"""The L0 engine: what callers outside of a turn do to agents, by the protocol's names.

Each call is one or two of the kernel's transactions, and rings afterwards. Nothing here is needed
for correctness: an agent's next turn is promoted by the transaction that ends the one before, and
what was not rung for is found by polling.

| protocol        | here                                                                    |
|-----------------|-------------------------------------------------------------------------|
| enqueue         | a task of kind `turn` in the agent's lane; queued while the lane is held |
| report          | an answer to a call: the first wins, others are acknowledged            |
| join            | a task of kind `join`                                                   |
| command_intent  | a call, in a commit of the turn that makes it                           |
| dispatch_next   | a ring: the lane has promoted whoever is next                           |
| inbox_id, agent_turn_id | the id of the task                                              |
| turn_epoch      | the fence; None until the turn is claimed                               |
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

from afl.base.ids import IdSource
from afl.base.system import SystemIds
from afl.kernel import rules
from afl.kernel.doorbell import Doorbell
from afl.kernel.errors import NotFound, Refused, TooDeep
from afl.kernel.model import (
    MAX_DEPTH,
    Call,
    CallId,
    CallSpec,
    CallStatus,
    Card,
    CardHash,
    CardSpec,
    Commit,
    Continue,
    Fence,
    Json,
    State,
    Stopped,
    Suspend,
    Task,
    TaskId,
    TaskSpec,
)
from afl.turns.errors import BadBrief, L0Refused, UnknownAgent
from afl.turns.feed import wakeup_subject
from afl.turns.intents import Accepted, Head, Reported, TurnIntent, depth_of, head_of, turn_spec
from afl.turns.joining import Joining, JoinMode, join_spec, read_join
from afl.turns.model import Agent, AgentId
from afl.turns.ports import LiveFeed, TurnStore

_PAGE = 500


class L0Engine:
    """Threads may share one. The store, the doorbell and the feed stay the caller's."""

    def __init__(
        self,
        store: TurnStore,
        doorbell: Doorbell,
        feed: LiveFeed,
        ids: IdSource | None = None,
    ) -> None:
        self._store = store
        self._kernel = store.kernel
        self._doorbell = doorbell
        self._feed = feed
        self._ids = ids or SystemIds()

    # Turns

    def enqueue(
        self,
        intent: TurnIntent,
        *,
        correlation_id: str | None = None,
        parent: TaskId | None = None,
        trace: str | None = None,
    ) -> Accepted:
        """Gives an agent a turn: now, or after those that it has.

        A correlation id makes it happen once. With a `parent` the turn belongs to the parent's run,
        and is one deeper; the parent does not wait for it. Raises `UnknownAgent`, `L0Refused`.
        """
        agent = self._agent(intent)
        spec = turn_spec(intent, agent)
        if parent is not None:
            spec = self._below(spec, parent)
        spec = replace(spec, idem=correlation_id, trace=trace or spec.trace)
        accepted = self._enqueue(spec)
        self._ring(spec.list, agent.target, accepted.agent_turn_id)
        return accepted

    def join(
        self,
        branches: Sequence[TurnIntent | TaskSpec],
        mode: JoinMode = JoinMode.ALL,
        *,
        quorum: int = 0,
        tenant: str = "default",
        timeout: timedelta | None = None,
        correlation_id: str | None = None,
        trace: str | None = None,
    ) -> Accepted:
        """Several turns, or other tasks, and one answer for all of them."""
        specs = tuple(
            branch if isinstance(branch, TaskSpec) else turn_spec(branch, self._agent(branch))
            for branch in branches
        )
        spec = join_spec(
            Joining(mode, specs, quorum),
            tenant=tenant,
            timeout=timeout,
            idem=correlation_id,
            trace=trace,
        )
        with _refusing():
            read_join(spec.input)
        accepted = self._enqueue(spec)
        self._doorbell.ring([spec.list])
        return accepted

    def stop(self, turn: TaskId, *, force: bool = False, reason: str = "") -> Stopped:
        """Ends a turn: now if nobody works on it or with `force`, else when its worker hears."""
        error: Json = {"code": "stopped", "message": reason or "It was stopped."}
        with _refusing():
            stopped = self._kernel.stop(turn, force=force, error=error)
            task = self._kernel.get_task(turn)
        if task is not None:
            self._doorbell.ring([task.list])
        return stopped

    def dispatch(self, turn: TaskId) -> Head:
        """Rings for a turn, and tells what its agent is doing. It changes nothing."""
        task = self._kernel.get_task(turn)
        if task is None or task.lane is None:
            raise L0Refused(f"there is no turn {turn} of an agent", error_code="protocol_violation")
        self._doorbell.ring([task.list])
        holder: Task | None = task
        if task.state is State.QUEUED:
            reason = self._kernel.why(turn)
            by = None if reason is None or reason.by is None else TaskId(reason.by)
            holder = None if by is None else self._kernel.get_task(by)
        return head_of(AgentId(task.lane), holder)

    def dispatch_next(self, agent: AgentId, tenant: str = "default") -> Head:
        """Rings for an agent, and tells what it is doing. It changes nothing.

        Looks through all that is not closed; where a turn is known, `dispatch` is cheaper.
        """
        known = self._store.get_agent(agent, tenant)
        self._feed.publish(
            wakeup_subject(known.target if known else "default"), {"agent_id": agent}
        )
        self._doorbell.ring(["default"])
        active = (task for task in self._active() if (task.tenant, task.lane) == (tenant, agent))
        return head_of(agent, next(active, None))

    # Calls

    def command_intent(
        self,
        fence: Fence,
        call: CallSpec,
        *,
        number: int = 0,
        cards: Sequence[CardSpec] = (),
        suspend: bool = True,
    ) -> CallId:
        """Has a turn that is held with this fence call a tool: for turns without a machine, such as
        those of people. The same key again is the same call.

        Raises `Fenced` when the turn is not held any more: stop at once. Raises `L0Refused`.
        """
        then = Suspend() if suspend else Continue()
        with _refusing():
            (done,) = self._kernel.commit(
                [Commit(fence, then, number, cards=tuple(cards), calls=(call,))]
            )
        self._doorbell.ring([call.task.list])
        return done.calls[call.key]

    def report(
        self,
        call: CallId | tuple[TaskId, str],
        status: CallStatus,
        body: Json = None,
    ) -> Reported:
        """Answers a call, named by its id, or by the turn and the key of its tool call.

        The first answer counts; others are acknowledged and change nothing. Who was to answer is
        stopped. Raises `L0Refused` for a call that was never made.
        """
        with _refusing():
            found = self._call(call)
            counts = self._kernel.reply(found.id, status, body)
            if counts and found.callee is not None:
                self._kernel.stop(found.callee, force=True)
            caller = self._kernel.get_task(found.caller)
        if caller is not None:
            self._doorbell.ring([caller.list])
        return Reported(found.id, found.caller, counts)

    # Context

    def pack_context(self, boxes: Sequence[str], cards: Sequence[CardSpec] = ()) -> str:
        """A box with the cards of these boxes, each once, and then these cards; its name.

        The name comes from the content: packing the same twice is the same box. So what a turn was
        given to read stays as it was, however the other boxes grow.
        """
        there = [card for box in boxes for card in self._kernel.read_box(box)]
        more = [Card(rules.card_hash(c.kind, c.content), c.kind, c.content) for c in cards]
        with _refusing():
            self._kernel.put_cards(more)
            hashes: list[CardHash] = list(dict.fromkeys(card.hash for card in (*there, *more)))
            name = f"context:{hashlib.sha256(','.join(hashes).encode()).hexdigest()}"
            if hashes:
                self._kernel.append_box(name, hashes, at=0)
        return name

    # How

    def _agent(self, intent: TurnIntent) -> Agent:
        agent = self._store.get_agent(intent.agent, intent.tenant)
        if agent is None:
            raise UnknownAgent(
                f"there is no agent {intent.agent}; `afl agents list` shows those that there are"
            )
        return agent

    def _below(self, spec: TaskSpec, parent: TaskId) -> TaskSpec:
        """A turn that another has caused, without waiting for it."""
        above = self._kernel.get_task(parent)
        if above is None:
            raise L0Refused(f"there is no turn {parent}", error_code="invalid_source_actor")
        depth = depth_of(above) + 1
        if depth >= MAX_DEPTH:
            raise L0Refused(
                f"turn {parent} is {depth - 1} deep, and turns may nest up to {MAX_DEPTH - 1}; "
                "look for agents that set each other to work",
                error_code="recursion_depth_exceeded",
            )
        assert isinstance(spec.input, dict)
        lineage: Json = {"parent": parent, "depth": depth}
        return replace(
            spec, run=above.run, trace=above.trace, input={**spec.input, "lineage": lineage}
        )

    def _enqueue(self, spec: TaskSpec) -> Accepted:
        id_ = TaskId(self._ids.new_id())
        with _refusing():
            (task,) = self._kernel.enqueue([replace(spec, id=id_)])
        return Accepted(
            inbox_id=task.id,
            agent_turn_id=task.id,
            turn_epoch=task.fence,
            correlation_id=task.idem or task.id,
            channel_id=task.run,
            recursion_depth=depth_of(task),
            trace_id=task.trace,
            status="queued" if task.state is State.QUEUED else "dispatched",
            is_repeat=task.id != id_,
        )

    def _ring(self, task_list: str, target: str, turn: TaskId) -> None:
        self._doorbell.ring([task_list])
        self._feed.publish(wakeup_subject(target), {"inbox_id": turn})

    def _call(self, call: CallId | tuple[TaskId, str]) -> Call:
        if isinstance(call, tuple):
            found, name = self._kernel.find_call(*call), f"'{call[1]}' of turn {call[0]}"
        else:
            found, name = self._kernel.get_call(call), call
        if found is None:
            raise NotFound(f"there is no call {name}; a report answers a call that was made")
        return found

    def _active(self) -> Iterator[Task]:
        for state in (State.RUNNING, State.WAITING, State.READY):
            after: TaskId | None = None
            while page := self._kernel.find_tasks(state=state, after=after, limit=_PAGE):
                yield from page
                after = page[-1].id


@contextmanager
def _refusing() -> Iterator[None]:
    """What the kernel refuses, in the protocol's words."""
    try:
        yield
    except TooDeep as error:
        raise L0Refused(error.message, error_code="recursion_depth_exceeded") from error
    except (Refused, NotFound, BadBrief) as error:
        raise L0Refused(error.message, error_code="protocol_violation") from error
