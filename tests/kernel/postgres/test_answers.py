"""Where the answers of callees are kept: in the call alone, then in the card that says the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from afl.kernel.memory import MemoryStore
from afl.kernel.model import (
    CallId,
    CallSpec,
    Card,
    CardSpec,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Continue,
    Json,
    Outcome,
    Suspend,
    Task,
    TaskId,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Store, Transaction
from afl.kernel.postgres.migrate import migrate, migrations
from afl.kernel.postgres.store import PostgresStore
from afl.kernel.rules import card_hash
from afl.testing.clock import SequentialIds, VirtualClock
from tests.kernel.postgres.databases import empty_database, server_is_there

W = WorkerId("w")
HOUR = timedelta(hours=1)
LONG = "ab, " * 400
NAMES = ("caller", "tool")


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with PostgresStore.connect(url, max_size=2) as store:
        yield store


def called(store: Store, kind: str = "flow", lane: str | None = None) -> tuple[TaskId, Claim]:
    """A task that has called a tool, and the tool in hand."""
    store.register(WorkerSpec(W, "w", handlers=NAMES, lease=HOUR))
    (task,) = store.enqueue([TaskSpec(kind, "caller", lane=lane)])
    claim = _claim(store, "caller")
    call = CallSpec("0.0", TaskSpec("event", "tool"), HOUR)
    store.commit([Commit(claim.fence, Suspend(), calls=(call,))])
    return task.id, _claim(store, "tool")


def hear(store: Store, card: CardSpec) -> CallId:
    """The caller takes the answer in, with a card that says the same."""
    claim = _claim(store, "caller")
    (reply,) = claim.replies
    hash_ = card_hash(card.kind, card.content)

    def writes(transaction: Transaction) -> None:
        store.keep_answer(transaction, reply.id, hash_)

    store.commit(
        [Commit(claim.fence, Continue(), cards=(card,), applied=(reply.id,))], writes=writes
    )
    return reply.id


def _claim(store: Store, name: str) -> Claim:
    (claim,) = store.claim(ClaimRequest(W, (name,)))
    return claim


def _copies(url: str) -> tuple[int, int, int]:
    """How often a part of the long text is in tasks, in calls and in cards."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select (select count(*) from afl.task t where t::text like %(part)s),"
            " (select count(*) from afl.call c where c::text like %(part)s),"
            " (select count(*) from afl.card k where k::text like %(part)s)",
            {"part": f"%{LONG[:200]}%"},
        ).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def _result_card(content: str) -> CardSpec:
    return CardSpec("tool.result", {"key": "0.0", "content": content})


@pytest.mark.parametrize("lane", [None, "ann"], ids=["the short way", "the long way"])
@pytest.mark.parametrize("result", [LONG, {"text": LONG}], ids=["text", "map"])
def test_a_long_answer_is_kept_once(
    url: str, store: PostgresStore, lane: str | None, result: Json
) -> None:
    caller, tool = called(store, lane=lane)
    store.commit([Commit(tool.fence, Close(Outcome.SUCCESS, result=result))])
    assert _copies(url) == (0, 1, 0)
    call = hear(store, _result_card(LONG if result == LONG else f'{{"text": "{LONG}"}}'))
    assert _copies(url) == (0, 0, 1)
    (there,) = store.calls_of(caller)
    task = store.get_task(tool.task.id)
    assert task is not None
    assert (there.id, there.reply, task.result) == (call, result, result)


def test_the_views_of_agents_show_the_answer_and_the_error(url: str, store: PostgresStore) -> None:
    _, tool = called(store, "turn", "ann")
    store.commit([Commit(tool.fence, Close(Outcome.SUCCESS, result={"text": LONG}))])
    call = hear(store, _result_card(f'{{"text": "{LONG}"}}'))
    lead, _ = called(store, "turn", "bob")
    spec = CallSpec("turn", TaskSpec("turn", "tool", lane="carl"), HOUR)
    store.stop(lead, force=True)
    (task,) = store.enqueue([TaskSpec("flow", "caller")])
    claim = _claim(store, "caller")
    store.commit([Commit(claim.fence, Suspend(), calls=(spec,))])
    failing = _claim(store, "tool")
    error: Json = {"message": "no"}
    store.commit([Commit(failing.fence, Close(Outcome.FAILED, error=error))])
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select inbox_id::text, payload, last_error from state.agent_inbox"
        ).fetchall()
    inbox = {id_: (payload, last_error) for id_, payload, last_error in rows}
    assert inbox[call] == ({"text": LONG}, None)
    assert inbox[failing.task.id][1] == error
    assert store.calls_of(task.id)[0].reply == error


def test_both_stores_say_the_same(store: PostgresStore) -> None:
    def play(store: Store) -> list[Json]:
        caller, tool = called(store)
        (done,) = store.commit(
            [Commit(tool.fence, Close(Outcome.SUCCESS, result={"b": 1, "a": LONG}))]
        )
        hear(store, _result_card(f'{{"a": "{LONG}", "b": 1}}'))
        return [
            done.task.result,
            *(task.result for task in store.find_tasks(run=done.task.run)),
            *(call.reply for call in store.calls_of(caller)),
            *(card.content for card in store.read_box(caller)),
        ]

    memory = MemoryStore(VirtualClock(tick=timedelta(microseconds=1)), SequentialIds())
    assert play(store) == play(memory)


def test_boxes_are_read_from_any_place(store: PostgresStore) -> None:
    """Whatever was appended at once."""
    cards = [Card(card_hash("note", n), "note", n) for n in range(7)]
    hashes = [card.hash for card in cards]
    store.put_cards(cards)
    at = 0
    for many in (1, 3, 0, 2, 1):
        assert store.append_box("chat", hashes[at : at + many], at) == at + many
        at += many
    for start in range(9):
        assert store.read_box("chat", start) == cards[start:]
        for end in range(start, 8):
            assert store.append_box("chat", hashes[start:end], start) == max(start, end)


def test_what_is_there_from_before_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    cards = [Card(card_hash("note", n), "note", n) for n in range(3)]
    with empty_database() as url:
        with monkeypatch.context() as patch:
            patch.setattr("afl.kernel.postgres.migrate.migrations", lambda: _BEFORE)
            migrate(url)
        with psycopg.connect(url) as connection:
            connection.execute(_OLD_FLOW)
            for n, card in enumerate(cards):
                connection.execute(
                    "insert into afl.card values (%s, 'note', %s)", (card.hash, str(n))
                )
                connection.execute(
                    "insert into afl.box_card values ('chat', %s, %s)", (n, card.hash)
                )
        assert migrate(url)[0].number == len(_BEFORE) + 1
        with PostgresStore.connect(url, max_size=1) as store:
            assert store.read_box("chat") == cards
            more = Card(card_hash("note", 3), "note", 3)
            store.put_cards([more])
            assert store.append_box("chat", [more.hash], 3) == 4
            assert store.read_box("chat", 1) == [*cards[1:], more]
            tasks: list[Task] = store.find_tasks(outcome=Outcome.SUCCESS)
            assert [task.result for task in tasks] == [{"text": "old"}]
            (call,) = store.calls_of(TaskId(_CALLER))
            assert call.reply == {"text": "old"}


_BEFORE = migrations()[:6]
_CALLER, _CALL, _CALLEE = (f"00000000-0000-7000-8000-00000000000{n}" for n in (1, 2, 3))
#: A flow that waits, and the callee that has answered, as the schema before has kept them.
_OLD_FLOW = f"""
insert into afl.task (
    id, tenant, run, kind, name, short_name, list, hold, parent_call, caller, depth, state, outcome,
    priority, run_at, wake, max_failures, retry_delay, retry_backoff, retry_max_delay, retry_jitter,
    max_crashes, result, reason_code, reason_since, created_at, closed_at)
select x.id, 't', 'r', 'flow', 'n', 'n', 'l', true, x.call, x.caller, x.depth, x.state, x.outcome,
       0, now(), 'all', 0, '1 s', 2, '1 s', false, 0, x.result, x.reason,
       case when x.reason is not null then now() end, now(), x.closed_at
from (values
    ('{_CALLER}'::uuid, null::uuid, null::uuid, 0, 'ready', null, null::json, 'answered',
     null::timestamptz),
    ('{_CALLEE}', '{_CALL}', '{_CALLER}', 1, 'closed', 'success', '{{"text":"old"}}', null, now())
) as x(id, call, caller, depth, state, outcome, result, reason, closed_at);
insert into afl.call (id, run, caller, key, callee, status, deadline, reply, replied_at)
values ('{_CALL}', 'r', '{_CALLER}', '0.0', '{_CALLEE}', 'ok', now(), '{{"text":"old"}}', now());
""".encode()
