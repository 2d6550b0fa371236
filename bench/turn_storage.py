"""What a long turn stores, by what there is to be stored.

One turn asks a model a hundred times over HTTP, each time with a context of 200,000 tokens, a tool
call and its answer. What there is to be stored is every text once: the context, what the model
said, what the tools answered, the brief. Three figures say what is stored for it:

- the transcript: the columns of all cards and boxes, and 28 bytes for the header of each row;
- all rows: the same of every table, so also the tasks, calls, events and accounts of the turn;
- all files: how much the tables and indexes have grown after a vacuum, room for new rows included.
  A short turn comes first, so that what empty tables take is not counted.

The outbox is a queue: a relay, which every turn worker has, publishes the events of a turn and
removes them. It is run here when the turn has ended, and what it has removed is told, too.
"""

from __future__ import annotations

import asyncio
import json
import random
import string
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg

from afl.app.migrating import migrate
from afl.kernel import rules
from afl.kernel.model import (
    CallSpec,
    Card,
    ClaimRequest,
    Close,
    Commit,
    Json,
    Outcome,
    State,
    Task,
    TaskId,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.postgres.store import PostgresStore
from afl.testing.llm_server import Asked, LoopbackLLM, Said, ToolCall
from afl.turns.feed import SilentFeed
from afl.turns.grip import Grip
from afl.turns.loop import TurnLoop
from afl.turns.model import TURN, Brief, Limits, Tool, ToolKind
from afl.turns.models.registry import ModelConfig, Registry
from afl.turns.ports import Briefing
from afl.turns.postgres_store import PostgresTurnStore
from afl.turns.prices import PriceBook
from afl.turns.relay import OutboxRelay
from afl.turns.transcript import ContextBox, Turn, request
from bench.server import database

MODEL = "anthropic:claude-sonnet-5"
BOX = "library"
#: Four characters make a token.
_CHARACTERS_PER_TOKEN = 4
_CARD_CHARACTERS = 16_000
_THOUGHT_CHARACTERS, _PATH_CHARACTERS, _RESULT_CHARACTERS = 500, 60, 1_500
_SYSTEM_CHARACTERS = 2_000
_WARM_UP_REQUESTS = 10
_WORKER, _TOOLS = WorkerId("bench"), WorkerId("bench-tools")
_SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
}
_READ = Tool("read", "Reads a file.", _SCHEMA, ToolKind.FACET, "docs.Read")
_TABLES = """
select c.relname, pg_total_relation_size(c.oid)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'afl' and c.relkind = 'r'
"""
#: A row has a header of 24 bytes, and 4 bytes that point to it.
_LIVE = "select coalesce(sum(pg_column_size(t.*) - 24 + 28), 0)::bigint from afl.{table} t"
_TRANSCRIPT = ("card", "box_card")


@dataclass(frozen=True, slots=True)
class Plan:
    requests: int = 100
    tokens: int = 200_000
    #: the request that is made again
    again: int = 57


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes in a database."""

    transcript: int
    rows: int
    files: int

    def since(self, before: Sizes) -> Sizes:
        return Sizes(
            self.transcript - before.transcript,
            self.rows - before.rows,
            self.files - before.files,
        )


@dataclass(frozen=True, slots=True)
class Storage:
    """What was sent, what there is to be stored, and what was stored, in bytes."""

    requests: int
    sent: int
    unique: int
    stored: Sizes
    #: what was in the outbox until the relay had published it
    relayed: int
    #: whether the request that was made again is the same to the byte
    is_same: bool
    again: int

    @property
    def ratio(self) -> float:
        """All rows, by what there is to be stored."""
        return self.stored.rows / self.unique

    @property
    def transcript_ratio(self) -> float:
        return self.stored.transcript / self.unique


class Words:
    """Text that nobody has written before, and that hardly compresses."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def text(self, characters: int) -> str:
        letters = string.ascii_letters + string.digits + "    .,"
        return "".join(self._random.choices(letters, k=characters))


@dataclass(slots=True)
class Script:
    """What the model and the tool say; each text is kept as it was made."""

    requests: int
    words: Words
    said: dict[int, Said] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)

    def answer(self, asked: Asked) -> Said:
        number = sum(message["role"] == "assistant" for message in asked.json["messages"])
        # the same request gets the same answer
        return self.said.setdefault(number, self._make(number))

    def tool_answer(self) -> str:
        self.answers.append(self.words.text(_RESULT_CHARACTERS))
        return self.answers[-1]

    def _make(self, number: int) -> Said:
        text = self.words.text(_THOUGHT_CHARACTERS)
        if number == self.requests - 1:
            return Said(text)
        arguments = json.dumps({"path": self.words.text(_PATH_CHARACTERS)})
        return Said(text, (ToolCall("read", arguments, f"toolu_{number:020}"),))

    @property
    def bytes(self) -> int:
        calls = sum(len(c.arguments) for said in self.said.values() for c in said.calls)
        return calls + sum(len(s.text) for s in self.said.values()) + sum(map(len, self.answers))


class _Bench:
    """`Briefs` and `Tools` of the one turn."""

    def __init__(self, brief: Brief, box: str) -> None:
        self._brief = brief
        self.box = box

    def names(self) -> tuple[str, ...]:
        return ("agent:default",)

    def brief(self, task: Task) -> Briefing:
        return Briefing(self._brief, {}, (self.box,))

    def call(self, task: Task, tool: Tool, arguments: dict[str, Json], key: str) -> CallSpec:
        spec = TaskSpec("event", tool.target, list="tools", input={"params": arguments})
        return CallSpec(key, spec, tool.timeout)


def measure(server: str, plan: Plan) -> Storage:
    """One turn in a database of its own."""
    words = Words(1)
    script = Script(plan.requests, words)
    limits = Limits(model_calls=max(plan.requests, _WARM_UP_REQUESTS))
    brief = Brief(words.text(_SYSTEM_CHARACTERS), "Sum it up.", (MODEL,), (_READ,), limits=limits)
    with (
        database(server) as url,
        LoopbackLLM(script.answer) as provider,
        _stores(url) as store,
    ):
        warm_up(store, words, brief)
        before = size(url)
        context = fill(store.kernel, BOX, words, plan.tokens * _CHARACTERS_PER_TOKEN)
        turn = asyncio.run(_run(store, _Bench(brief, BOX), provider, script))
        unread = size(url)
        relay(store.kernel)
        after = size(url)
        sent = [asked.body for asked in provider.requests]
        again = asyncio.run(_ask_again(store.kernel, turn, brief, provider, plan.again))
    unique = context + script.bytes + len(brief.system) + len(brief.template)
    return Storage(
        requests=len(sent),
        sent=sum(map(len, sent)),
        unique=unique,
        stored=after.since(before),
        relayed=unread.rows - after.rows,
        is_same=again == sent[plan.again],
        again=plan.again,
    )


def warm_up(store: PostgresTurnStore, words: Words, brief: Brief) -> None:
    """A turn of a few requests, with a context of its own."""
    script = Script(_WARM_UP_REQUESTS, words)
    with LoopbackLLM(script.answer) as provider:
        fill(store.kernel, "warm-up", words, _CARD_CHARACTERS)
        asyncio.run(_run(store, _Bench(brief, "warm-up"), provider, script))
    relay(store.kernel)


def relay(kernel: PostgresStore) -> None:
    """Publishes what turns have announced, as the relay of a turn worker does."""
    relaying = OutboxRelay(kernel, SilentFeed(), "bench")
    while relaying.step():
        pass
    relaying.stop()


@contextmanager
def _stores(url: str) -> Iterator[PostgresTurnStore]:
    migrate(url)
    with PostgresStore.connect(url, max_size=4) as kernel:
        for worker, lists, names in (
            (_WORKER, ("default",), ("agent:default",)),
            (_TOOLS, ("tools",), (_READ.target,)),
        ):
            lease = timedelta(hours=1)
            kernel.register(WorkerSpec(worker, worker, lists=lists, handlers=names, lease=lease))
        yield PostgresTurnStore(kernel)


def size(url: str) -> Sizes:
    """What there is, when what is dead has been cleaned up."""
    transcript = rows = files = 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum")
        for table, on_disk in connection.execute(_TABLES.encode()).fetchall():
            row = connection.execute(_LIVE.format(table=table).encode()).fetchone()
            assert row is not None
            transcript += row[0] if table in _TRANSCRIPT else 0
            rows += row[0]
            files += on_disk
    return Sizes(transcript, rows, files)


def fill(kernel: PostgresStore, box: str, words: Words, characters: int) -> int:
    """Puts so much text into a box; answers how much it was."""
    texts = [words.text(_CARD_CHARACTERS) for _ in range(characters // _CARD_CHARACTERS)]
    cards = [Card(rules.card_hash("note", text), "note", text) for text in texts]
    kernel.put_cards(cards)
    kernel.append_box(box, [card.hash for card in cards], at=0)
    return sum(map(len, texts))


async def _run(
    store: PostgresTurnStore, bench: _Bench, provider: LoopbackLLM, script: Script
) -> TaskId:
    """The turn, from its first request to its end, with a claim for each."""
    kernel = store.kernel
    models = Registry(ModelConfig(anthropic_url=provider.url, anthropic_key="any"))
    loop = TurnLoop(store, models, PriceBook(), bench, bench, SilentFeed())
    given: Json = {"agent": "bench", "context": [bench.box]}
    (task,) = kernel.enqueue([TaskSpec(TURN, "agent:default", lane="bench", input=given)])
    while not is_closed(kernel, task.id):
        (claim,) = kernel.claim(ClaimRequest(_WORKER, ("agent:default",)))
        await loop.run(claim, Grip(claim))
        for tool in kernel.claim(ClaimRequest(_TOOLS, (_READ.target,), ("tools",))):
            close = Close(Outcome.SUCCESS, result={"text": script.tool_answer()})
            kernel.commit([Commit(tool.fence, close)])
    await models.close()
    if len(provider.requests) != script.requests:
        raise SystemExit(
            f"the model was asked {len(provider.requests)} times, not {script.requests}"
        )
    return task.id


def is_closed(kernel: PostgresStore, turn: TaskId) -> bool:
    task = kernel.get_task(turn)
    return task is not None and task.state is State.CLOSED


async def _ask_again(
    kernel: PostgresStore, turn: TaskId, brief: Brief, provider: LoopbackLLM, number: int
) -> bytes:
    """What is sent when a request is made from the cards of the turn, by a client of its own."""
    task = kernel.get_task(turn)
    assert task is not None
    boxes = (ContextBox(BOX, tuple(kernel.read_box(BOX))),)
    rebuilt = request(Turn(task, brief, {}, boxes, tuple(kernel.read_box(turn))), number)
    models = Registry(ModelConfig(anthropic_url=provider.url, anthropic_key="any"))
    # streamed, as a turn has it
    await models.find(MODEL).ask(rebuilt, lambda _kind, _text: None)
    await models.close()
    return provider.requests[-1].body
