"""The IO of one claim of a turn: load, ask the machine, ask the model, commit, until it waits.

One request to the model is one commit: what the model said, what it cost, the calls that follow and
what is announced are there together or not at all. A worker that dies between two commits has
changed nothing; whoever claims next goes on from the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from afl.base.clock import Clock
from afl.base.system import SystemClock
from afl.kernel.errors import LaneCycle, Refused
from afl.kernel.model import CallSpec, Claim, Close, Commit, Json, Task
from afl.kernel.port import Transaction, Writes
from afl.turns import cards, machine
from afl.turns.asking import briefing
from afl.turns.changes import Act, Ask, Changes, ToolCaller, grown
from afl.turns.current import CURRENT
from afl.turns.endings import ended_early, never_begun
from afl.turns.errors import BadBrief, BudgetExhausted, ModelBusy, ModelRefused, ProviderDown
from afl.turns.feed import agent_of, state_subject
from afl.turns.grip import Grip, Left
from afl.turns.hearing import kept_answers
from afl.turns.journal import Problem
from afl.turns.model import (
    BUDGETS,
    TIMERS,
    Allowance,
    Brief,
    Ending,
    Hold,
    Reply,
    Spending,
    Tool,
    UsageEntry,
)
from afl.turns.models.fallback import ask_first
from afl.turns.ports import (
    Briefing,
    Briefs,
    BudgetWait,
    LiveFeed,
    Models,
    Prices,
    Tools,
    TurnStore,
)
from afl.turns.sayings import say
from afl.turns.serving import Ring
from afl.turns.spending import budget_keys, called_tools, cost, lacking, most
from afl.turns.telling import Stream, announcements, state
from afl.turns.transcript import ContextBox, Turn, request_hash

#: Lists that nobody listens to.
_UNSERVED = frozenset((TIMERS, BUDGETS))
_STOPPED = "somebody has stopped it"
_NOTHING = Spending()


def _silent(_lists: Iterable[str]) -> None:
    """Nobody waits for rings in this process."""


@dataclass(frozen=True, slots=True)
class TurnLoop:
    """Works on turns: see `serving.Attendant`. Any number of claims may be under way at once."""

    store: TurnStore
    models: Models
    prices: Prices
    briefs: Briefs
    tools: Tools
    feed: LiveFeed
    ring: Ring = _silent
    clock: Clock = field(default_factory=SystemClock)

    def names(self) -> tuple[str, ...]:
        return self.briefs.names()

    async def run(self, claim: Claim, grip: Grip | None = None) -> None:
        """Everything that one claim needs: until the turn waits, has ended, or is lost.

        Raises `Fenced` if it is lost, and `Left` if it is to be handed back.
        """
        await _ClaimedTurn(self, claim, grip or Grip(claim)).run()


class _ClaimedTurn:
    """A turn in hand."""

    def __init__(self, loop: TurnLoop, claim: Claim, grip: Grip) -> None:
        self._loop = loop
        self._store = loop.store
        self._task = claim.task
        self._claim = claim
        self._grip = grip
        self._has_asked = False

    async def run(self) -> None:
        CURRENT.set(self._task)
        grip = self._grip
        try:
            self._turn, self._briefing = await grip.patiently(
                lambda: asyncio.to_thread(_load, self._loop, self._claim)
            )
        except BadBrief as error:
            await self._commit(never_begun(error))
            return
        self._keys = budget_keys(self._task, self._briefing)
        while not grip.is_over:
            grip.check()
            if grip.is_stopping:
                await self._commit(machine.stopped(self._turn, _STOPPED))
            elif grip.is_draining:
                raise Left
            else:
                await self._move()

    async def _move(self) -> None:
        move = await asyncio.to_thread(machine.next_move, self._turn, self._call_tool)
        if isinstance(move, Ask):
            await self._ask(move)
            return
        act = partial(_act, self._turn)
        await self._commit_calling(move.changes, act, self._acted)

    # Asking

    async def _ask(self, ask: Ask) -> None:
        covering = await self._grip.patiently(
            lambda: asyncio.to_thread(self._store.budgets, self._keys)
        )
        hold: Hold | None = None
        if covering or self._turn.brief.allowance != Allowance():
            after = grown(self._turn, ask.before)
            amount = await asyncio.to_thread(most, after, self._loop.prices)
            if (why := lacking(after, amount)) is not None:
                await self._commit(machine.out_of_budget(self._turn, why))
                return
            hold = Hold(self._task.id, ask.number, tuple(b.key for b in covering), amount)
        if covering and hold is not None:
            if not await self._reserve(ask, hold):
                return
        else:
            self._loop.feed.publish(state_subject(agent_of(self._task)), state(self._task))
        self._has_asked = True
        await self._take_in(ask, hold)

    async def _reserve(self, ask: Ask, hold: Hold) -> bool:
        """Commits what comes before the request, with room for it; tells whether there was any."""

        def writes(transaction: Transaction) -> None:
            if not self._has_asked:
                # whoever held the turn before may have asked this, and died: that was spent
                self._store.settle(transaction, hold.task, hold.number, hold.amount)
            self._store.reserve(transaction, hold)

        try:
            await self._commit(ask.before, writes, (ask.number, "started"))
        except BudgetExhausted:
            changes = machine.no_room(self._turn, hold.budgets, hold.amount)
            wait = BudgetWait(hold.task, changes.calls[0].key, hold.budgets, hold.amount)
            await self._commit(changes, lambda t: self._store.await_budget(t, wait))
            return False
        return True

    async def _take_in(self, ask: Ask, hold: Hold | None) -> None:
        """Asks the model, and commits what came of it."""
        started_at = self._loop.clock.now()
        stream = Stream(self._loop.feed, self._task, ask.number)
        try:
            reply = await self._grip.unless_called(
                ask_first(self._loop.models, self._turn.brief.models, ask.request, stream)
            )
        except ProviderDown as failure:
            await self._commit(machine.after_down(self._turn, failure), self._settling(hold))
            return
        except ModelBusy as failure:
            await self._commit(machine.after_busy(self._turn, failure), self._settling(hold))
            return
        except ModelRefused as failure:
            await self._commit(machine.after_refusal(self._turn, failure), self._settling(hold))
            return
        finally:
            stream.end()
        if reply is None:
            # it may have reached the provider
            whole = _NOTHING if hold is None else hold.amount
            await self._commit(machine.stopped(self._turn, _STOPPED), self._settling(hold, whole))
            return
        await self._take_reply(ask, hold, reply, started_at)

    async def _take_reply(
        self, ask: Ask, hold: Hold | None, reply: Reply, started_at: datetime
    ) -> None:
        price = self._loop.prices.price(reply.model, reply.usage)
        hash_ = await asyncio.to_thread(request_hash, ask.request)
        entry = UsageEntry(
            task=self._task.id,
            number=ask.number,
            run=self._task.run,
            tenant=self._task.tenant,
            agent=self._briefing.agent,
            facet=self._briefing.facet,
            step=self._briefing.step,
            model=reply.model,
            usage=reply.usage,
            price=price,
            tool_calls=0,
            started_at=started_at,
            ended_at=self._loop.clock.now(),
        )

        def writes(changes: Changes) -> Writes:
            settle = self._settling(hold, cost(reply, price, changes))
            called = replace(entry, tool_calls=called_tools(changes))

            def write(transaction: Transaction) -> None:
                settle(transaction)
                self._store.record_usage(transaction, called)

            return write

        take_in = partial(machine.after_reply, self._turn, reply, price, hash_)
        changes = await asyncio.to_thread(take_in, self._call_tool)
        await self._commit_calling(changes, take_in, writes, (ask.number, "completed"))

    # Committing

    async def _commit_calling(
        self,
        changes: Changes,
        again: Callable[[ToolCaller], Changes],
        writes: Callable[[Changes], Writes],
        step: tuple[int, str] | None = None,
    ) -> None:
        """Commits what may call tools. If some of them cannot be called, the changes are made again
        with the reason as their answer."""
        try:
            await self._commit(changes, writes(changes), step)
            return
        except Refused as refusal:
            error = refusal
        changes = await asyncio.to_thread(again, _refusing(self._call_tool, error))
        try:
            await self._commit(changes, writes(changes), step)
        except Refused:
            problem = Problem(error.code, error.message)
            await self._commit(ended_early(self._turn, Ending.FAILED, problem))

    async def _commit(
        self, changes: Changes, writes: Writes | None = None, step: tuple[int, str] | None = None
    ) -> None:
        kernel = self._store.kernel
        number, phase = step or (None, "")
        told = list(announcements(self._task, changes, number, phase))
        kept = list(kept_answers(self._claim.replies, changes))

        def write(transaction: Transaction) -> None:
            if writes is not None:
                writes(transaction)
            for call, card in kept:
                kernel.keep_answer(transaction, call, card)
            for each in told:
                kernel.announce(transaction, each)

        commit = Commit(
            self._claim.fence,
            changes.then,
            cards=changes.cards,
            calls=changes.calls,
            applied=changes.applied,
        )
        await self._grip.commit(kernel, commit, write)
        if not self._grip.is_over:
            self._turn = grown(self._turn, changes)
        say(self._task, changes.cards)
        self._loop.ring(_to_ring(self._task, changes))

    def _acted(self, changes: Changes) -> Writes:
        """Tools that somebody has agreed to are counted when they are called."""
        spent = Spending(tool_calls=called_tools(changes))

        def write(transaction: Transaction) -> None:
            if spent.tool_calls:
                self._store.spend(transaction, self._keys, spent)

        return write

    def _settling(self, hold: Hold | None, spent: Spending = _NOTHING) -> Writes:
        def write(transaction: Transaction) -> None:
            if hold is not None:
                self._store.settle(transaction, hold.task, hold.number, spent)

        return write

    def _call_tool(self, tool: Tool, arguments: dict[str, Json], key: str) -> CallSpec:
        return self._loop.tools.call(self._task, tool, arguments, key)


def _load(loop: TurnLoop, claim: Claim) -> tuple[Turn, Briefing]:
    """The turn, from its rows. What it is to do is pinned by its first card, once it has one."""
    task, kernel = claim.task, loop.store.kernel
    journal = kernel.read_box(task.id)
    pinned = cards.read(journal[0]) if journal else None
    asked = briefing(task, pinned) if isinstance(pinned, Brief) else loop.briefs.brief(task)
    boxes = tuple(ContextBox(name, tuple(kernel.read_box(name))) for name in asked.context)
    turn = Turn(task, asked.brief, asked.arguments, boxes, tuple(journal), claim.replies)
    return turn, asked


def _act(turn: Turn, call_tool: ToolCaller) -> Changes:
    move = machine.next_move(turn, call_tool)
    assert isinstance(move, Act), "what a turn does next does not depend on how tools are called"
    return move.changes


def _refusing(call_tool: ToolCaller, refusal: Refused) -> ToolCaller:
    """Calls no tool that the kernel can have meant when it refused."""

    def call(tool: Tool, arguments: dict[str, Json], key: str) -> CallSpec:
        spec = call_tool(tool, arguments, key)
        if isinstance(refusal, LaneCycle) and spec.task.lane is None:
            return spec
        raise BadBrief(refusal.message)

    return call


def _to_ring(task: Task, changes: Changes) -> set[str]:
    """Whose work a commit may have made: that of callees, of the caller, of the lane."""
    lists = {call.task.list for call in changes.calls} - _UNSERVED
    return lists | {task.list} if isinstance(changes.then, Close) else lists
