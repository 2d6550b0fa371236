"""What it costs to claim a turn and to answer one, by how many others are suspended.

Suspended turns are those of `turn_filling`: with the journal of a turn that has called a tool, each
of an agent of its own. A database with few of them and one with many take turns every few probes,
so that both see the same machine, and the medians of all probes are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import TypeVar

import psycopg

from afl.app.migrating import migrate
from afl.kernel.model import (
    CallSpec,
    CallStatus,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Json,
    Outcome,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.postgres.store import PostgresStore
from afl.turns.machine import after_reply
from afl.turns.model import TURN, Brief, Price, Reply, Text, Tool, ToolKind, ToolUse, Usage
from afl.turns.transcript import Turn, request, request_hash
from bench.server import database, quantile
from bench.turn_filling import copy_suspended

T = TypeVar("T")
NAME = "agent:default"
_SCHEMA: dict[str, Json] = {"type": "object", "properties": {"path": {"type": "string"}}}
_READ = Tool("read", "Reads a file.", _SCHEMA, ToolKind.FACET, "docs.Read", timeout=timedelta(1))
BRIEF = Brief("You read.", "Read {path}.", ("scripted:bench",), (_READ,))
_USE = ToolUse("toolu_1", "read", '{"path": "in/part-0001"}')
_REPLY = Reply((Text("I look at it."), _USE), "tool_call", "scripted:bench", Usage(100, 20))
_PRICE = Price(Decimal("0.01"), "bench")
_DONE = Close(Outcome.SUCCESS, {"text": "done"})
_WORKER = WorkerId("bench")
_WARM_UPS = 10
#: After so many rounds both databases are cleaned up.
_SETTLED_ROUNDS = 40


@dataclass(frozen=True, slots=True)
class Plan:
    few: int = 100
    many: int = 100_000
    rounds: int = 120
    #: turns of each round
    turns: int = 5


@dataclass(slots=True)
class Costs:
    """What each probe took, in milliseconds."""

    claims: list[float] = field(default_factory=list)
    replies: list[float] = field(default_factory=list)

    @property
    def claim(self) -> float:
        return quantile(self.claims, 0.5)

    @property
    def reply(self) -> float:
        return quantile(self.replies, 0.5)


@dataclass(slots=True)
class Series:
    """The probes among few and among many."""

    few: Costs = field(default_factory=Costs)
    many: Costs = field(default_factory=Costs)

    @property
    def claim_ratio(self) -> float:
        return self.many.claim / self.few.claim

    @property
    def reply_ratio(self) -> float:
        return self.many.reply / self.few.reply

    @property
    def flatness(self) -> float:
        """The worse of the two."""
        return max(self.claim_ratio, self.reply_ratio)


def measure(server: str, plan: Plan) -> Series:
    """Rounds in turns among few and among many; which is first alternates."""
    series = Series()
    with ExitStack() as stack:
        few = stack.enter_context(_store(server, plan.few))
        many = stack.enter_context(_store(server, plan.many))
        for number in range(plan.rounds):
            if number % _SETTLED_ROUNDS == 0:
                for url, store in (few, many):
                    settle(url)
                    probe(store, _WARM_UPS, Costs())
            sides = [(few[1], series.few), (many[1], series.many)]
            for store, costs in sides if number % 2 else reversed(sides):
                probe(store, plan.turns, costs)
    return series


@contextmanager
def _store(server: str, suspended: int) -> Iterator[tuple[str, PostgresStore]]:
    with database(server) as url:
        migrate(url)
        with PostgresStore.connect(url, max_size=1) as store:
            suspend(url, store, suspended)
            yield url, store


def settle(url: str) -> None:
    """Cleans up and counts, as autovacuum does sooner or later, and writes what is to be written:
    what the rounds before have left is not for the next."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum (analyze)")
        connection.execute("checkpoint")


def suspend(url: str, store: PostgresStore, count: int) -> None:
    """Makes so many suspended turns."""
    store.register(WorkerSpec(_WORKER, "bench", handlers=(NAME,), lease=timedelta(hours=2)))
    store.enqueue([_spec("agent-0")])
    (claim,) = store.claim(ClaimRequest(_WORKER, (NAME,)))
    store.commit([_thought(claim)])
    copy_suspended(url, claim.task.id, count - 1)


def _spec(agent: str) -> TaskSpec:
    given: Json = {"agent": agent, "arguments": {"path": "in/part-0001"}}
    return TaskSpec(TURN, NAME, lane=agent, input=given)


def _thought(claim: Claim) -> Commit:
    """What a turn commits when the model has called a tool."""
    turn = Turn(claim.task, BRIEF, {"path": "in/part-0001"})
    changes = after_reply(turn, _REPLY, _PRICE, request_hash(request(turn)), _call)
    return Commit(claim.fence, changes.then, 0, changes.cards, changes.calls, changes.applied)


def _call(tool: Tool, arguments: dict[str, Json], key: str) -> CallSpec:
    spec = TaskSpec("event", tool.target, list="tools", input={"params": arguments})
    return CallSpec(key, spec, tool.timeout)


def probe(store: PostgresStore, turns: int, costs: Costs) -> None:
    """Turns from their first claim to their end, one after the other: claimed, suspended, answered,
    claimed again."""
    wanted = ClaimRequest(_WORKER, (NAME,))
    for number in range(turns):
        store.enqueue([_spec(f"probe-{number}")])
        ((claim,), taken) = _timed(lambda: store.claim(wanted))
        (done,) = store.commit([_thought(claim)])
        call = done.calls["0.0"]
        _, answered = _timed(lambda call=call: store.reply(call, CallStatus.OK, "read"))  # type: ignore[misc]
        ((again,), taken_again) = _timed(lambda: store.claim(wanted))
        applied = tuple(reply.id for reply in again.replies)
        store.commit([Commit(again.fence, _DONE, applied=applied)])
        costs.claims += (taken, taken_again)
        costs.replies.append(answered)


def _timed(act: Callable[[], T]) -> tuple[T, float]:
    before = time.perf_counter()
    done = act()
    return done, (time.perf_counter() - before) * 1000
