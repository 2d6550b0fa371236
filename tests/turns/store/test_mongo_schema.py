"""The collections of turns: what they refuse, and that they are read by their indexes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from bson.decimal128 import Decimal128
from pymongo.errors import WriteError

from afl.app import migrating
from afl.kernel.model import RunId, TaskId, TaskSpec
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.migrate import read_migrations
from afl.kernel.mongo.store import MongoStore
from afl.kernel.mongo.values import to_micros
from afl.kernel.port import Transaction
from afl.turns.model import Agent, AgentId, Allowance, BudgetKey, Hold, Spending
from afl.turns.mongo.documents import agent_in, amount_in, entry_id, entry_in, hold_in, key_in
from afl.turns.mongo_store import MongoTurnStore
from afl.turns.ports import BudgetWait
from tests.kernel.mongo.profiling import profiled
from tests.turns.store.test_schema import entry

TURN = TaskId("00000000-0000-7000-8000-000000000001")
KEY = BudgetKey("run", "r77")
_NOW = datetime(2030, 1, 1, tzinfo=UTC)
_NOTHING = Spending()
_CENT = Spending(usd=Decimal("0.01"), model_calls=1)


def _budget(number: int, spent: Spending = _NOTHING) -> dict[str, Any]:
    return {
        "_id": key_in(BudgetKey("run", f"r{number}")),
        "limit": amount_in(Allowance(usd=Decimal(1))),
        "reserved": amount_in(_NOTHING),
        "spent": amount_in(spent),
    }


def _wait(number: int, **more: object) -> dict[str, Any]:
    behind = key_in(BudgetKey("run", f"r{number % 50}"))
    return {
        "_id": f"wait-{number:06}",
        "call_key": "budget:0",
        "since": number,
        "budgets": [behind],
        "amount": amount_in(_CENT),
        "state": "behind",
        "behind": behind,
        "woken_at": None,
        **more,
    }


def _hold(number: int) -> dict[str, Any]:
    return hold_in(Hold(TaskId(f"hold-{number:06}"), 0, (KEY,), _CENT))


def _agent(number: int) -> dict[str, Any]:
    made = {"_id": {"tenant": "default", "id": f"a{number}"}, "created_at": 1}
    return {**agent_in(Agent(AgentId(f"a{number}"))), **made}


def _entry(number: int) -> dict[str, Any]:
    written = entry(TaskId(f"task-{number:06}"))
    at = to_micros(_NOW - timedelta(minutes=number))
    name = {"_id": entry_id(written), "run": f"r{number % 1000}"}
    return {**name, **entry_in(written), "ended_at": at}


def _fill(store: MongoTurnStore) -> None:
    """Documents enough for an index to be worth its while: budgets of which some are full and
    waited for, and requests of many runs over many days."""
    full = Spending(usd=Decimal(1))
    for collection, documents in {
        "budget": (_budget(n, full if n < 50 else _NOTHING) for n in range(20_000)),
        "budget_wait": (_wait(n) for n in range(20_000)),
        "budget_hold": (_hold(n) for n in range(5_000)),
        "agent": (_agent(n) for n in range(5_000)),
        "usage": (_entry(n) for n in range(20_000)),
    }.items():
        store.kernel.database.collection(collection).insert_many(documents)


def _everything(store: MongoTurnStore) -> None:
    """Each question but those about all that is reserved."""

    def ask(transaction: Transaction) -> None:
        store.reserve(transaction, Hold(TURN, 0, (KEY,), _CENT))
        store.settle(transaction, TURN, 0, _CENT)
        store.spend(transaction, (KEY,), _CENT)
        store.await_budget(transaction, BudgetWait(TURN, "budget:0", (KEY,), _CENT))
        store.record_usage(transaction, entry(TURN))

    store.kernel.commit((), writes=ask)
    store.end_wait(TURN, "budget:0")
    assert store.get_budget(KEY) is not None
    assert len(store.list_budgets(limit=3)) == 3
    assert [each.requests for each in store.usage("model", run="r1")] == [21]
    assert store.usage("day", since=_NOW + timedelta(days=1)) == []
    assert store.usage("day", tenant=None, since=_NOW + timedelta(days=1)) == []
    assert len(store.usage("task", tasks=[TURN])) == 1
    assert len(store.usage("task", runs=["r1", "r2"], tenant=None)) == 41
    store.save_agent(Agent(AgentId("a7")))
    assert store.get_agent(AgentId("a7")) is not None
    assert len(store.list_agents(after=AgentId("a7"), limit=2)) == 2
    store.delete_agent(AgentId("a7"))
    store.set_pin("server", "tool", "hash")
    assert store.get_pin("server", "tool") == "hash"
    assert len(store.turns_of(AgentId("lane7"), limit=1)) == 1
    assert store.active_turn(AgentId("lane7")) is not None
    assert store.turns_within(RunId("nothing")) == []


@pytest.fixture
def store(turns_mongo_url: str) -> Iterator[MongoTurnStore]:
    with MongoStore.connect(turns_mongo_url) as kernel:
        yield MongoTurnStore(kernel)


def test_no_question_reads_a_whole_collection(store: MongoTurnStore) -> None:
    store.kernel.enqueue(
        [TaskSpec("turn", "agent:default", lane=f"lane{n % 200}") for n in range(2000)]
    )
    _fill(store)
    with profiled(store.kernel.database) as profile:
        _everything(store)
        assert len(profile.questions()) > 25
        assert profile.whole(100) == []
        assert not any(each.get("hasSortStage") for each in profile.questions() if _is_find(each))


def _is_find(question: dict[str, Any]) -> bool:
    return "find" in question["command"]


def test_a_look_at_the_waits_reads_the_oldest_behind_each_budget_only(
    store: MongoTurnStore,
) -> None:
    _fill(store)
    store.set_budget(BudgetKey("run", "r7"), Allowance(usd=Decimal("1.005")))
    with profiled(store.kernel.database) as profile:
        assert store.ready_waits() == [], "there is room for half a request"
        # 50 budgets are in the way: each is found once, and 200 of the 400 behind it are read
        assert profile.whole(401) == []


def test_the_history_of_turns_has_its_place() -> None:
    numbers = [each.number for each in migrating.migrations("mongodb://")]
    own = [each.number for each in read_migrations("afl.turns.mongo")]
    assert numbers == sorted(set(numbers))
    assert own == [number for number in numbers if 200 < number <= 300] == [201]


_MINUS = {**amount_in(_NOTHING), "usd": Decimal128("-1")}


@pytest.mark.parametrize(
    ("collection", "document"),
    [
        ("budget", {**_budget(1), "_id": {"tenant": "t", "scope": "planet", "key": "k"}}),
        ("budget", {**_budget(1), "limit": _MINUS}),
        ("budget", {**_budget(1), "reserved": _MINUS}),
        ("budget", {**_budget(1), "spent": {**amount_in(_NOTHING), "tokens": -1}}),
        ("budget_hold", {**_hold(1), "number": -1}),
        ("budget_hold", {**_hold(1), "amount": _MINUS}),
        ("budget_wait", {**_wait(1), "amount": _MINUS}),
        ("budget_wait", {**_wait(1), "behind": None}),
        ("budget_wait", _wait(1, state="fresh")),
        ("budget_wait", _wait(1, state="woken")),
        ("agent", {**_agent(1), "kind": "robot"}),
        ("agent", {**_agent(1), "max_tokens": 0}),
        ("usage", {**_entry(1), "input": -1}),
        ("usage", {**_entry(1), "usd": Decimal128("-1")}),
    ],
)
def test_the_collections_refuse_what_cannot_be(
    turns_mongo_url: str, collection: str, document: dict[str, Any]
) -> None:
    database = Database(turns_mongo_url)
    with pytest.raises(WriteError, match="failed validation"):
        database.collection(collection).insert_one(document)
    database.close()


def test_the_collections_take_what_can_be(turns_mongo_url: str) -> None:
    database = Database(turns_mongo_url)
    for collection, document in (
        ("budget", _budget(1)),
        ("budget_hold", _hold(1)),
        ("budget_wait", _wait(1)),
        ("budget_wait", _wait(2, state="fresh", behind=None)),
        ("budget_wait", _wait(3, state="woken", woken_at=1)),
        ("agent", _agent(1)),
        ("usage", _entry(1)),
    ):
        database.collection(collection).insert_one(document)
    assert len(database.find("budget_wait", {})) == 3
    database.close()
