"""What requests to models have cost, written down once and added up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from afl.kernel.errors import BadRequest
from afl.kernel.model import RunId, TaskId
from afl.turns.model import Price, Usage, UsageEntry, UsageSum
from tests.turns.store.kept import Kept, turn, write

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def entry(task: TaskId, number: int = 0, **fields: object) -> UsageEntry:
    given = {
        "run": RunId("r"),
        "tenant": "default",
        "agent": None,
        "facet": None,
        "step": None,
        "model": "m",
        "usage": Usage(10, 2, 3, 1),
        "price": Price(Decimal("0.0000000125"), "v1"),
        "tool_calls": 1,
        "started_at": NOON,
        "ended_at": NOON,
        **fields,
    }
    return UsageEntry(task, number, **given)  # type: ignore[arg-type]


def record(kept: Kept, *entries: UsageEntry) -> None:
    def work(transaction: object) -> None:
        for each in entries:
            kept.store.record_usage(transaction, each)

    write(kept, work)


def costs(usd: str) -> Price:
    return Price(Decimal(usd), "v1")


def test_a_request_is_written_down_once(kept: Kept) -> None:
    task = turn(kept)
    record(kept, entry(task), entry(task, 1))
    record(kept, entry(task, 1, price=costs("9")))
    assert kept.store.usage("task") == [
        UsageSum(task, 2, Usage(20, 4, 6, 2), Decimal("0.000000025"), 0)
    ]


def test_what_is_rolled_back_was_not_written_down(kept: Kept) -> None:
    def work(transaction: object) -> None:
        kept.store.record_usage(transaction, entry(turn_id))
        raise RuntimeError("no")

    turn_id = turn(kept)
    with pytest.raises(RuntimeError, match="no"):
        write(kept, work)
    assert kept.store.usage("task") == []


@pytest.mark.parametrize("by", ["run", "agent", "facet", "step", "model", "task"])
def test_requests_are_added_up_the_most_expensive_first(kept: Kept, by: str) -> None:
    tasks = [turn(kept) for _ in range(3)]
    keys = list(tasks) if by == "task" else ["a", "b", "c"]
    costs_of = dict(zip(keys, ("0.10", "0.30", "0.20"), strict=True))
    for task, key in zip(tasks, keys, strict=True):
        named = {} if by == "task" else {by: key}
        record(kept, *(entry(task, n, price=costs(costs_of[key]), **named) for n in range(2)))
    found = kept.store.usage(by)
    assert [(each.key, each.usd, each.requests) for each in found] == [
        (keys[1], Decimal("0.60"), 2),
        (keys[2], Decimal("0.40"), 2),
        (keys[0], Decimal("0.20"), 2),
    ]
    assert kept.store.usage(by, limit=1) == found[:1]


def test_days_are_those_of_utc(kept: Kept) -> None:
    task = turn(kept)
    late = datetime(2030, 1, 1, 23, 30, tzinfo=UTC)
    east = timezone(timedelta(hours=9))
    record(
        kept,
        entry(task, 0, ended_at=late),
        entry(task, 1, ended_at=late + timedelta(hours=1), price=costs("1")),
        entry(task, 2, ended_at=late.astimezone(east)),
    )
    assert [(each.key, each.requests) for each in kept.store.usage("day")] == [
        ("2030-01-02", 1),
        ("2030-01-01", 2),
    ]


def test_what_has_no_agent_is_under_no_name(kept: Kept) -> None:
    task = turn(kept)
    record(kept, entry(task), entry(task, 1, agent="a", price=costs("1")))
    assert [each.key for each in kept.store.usage("agent")] == ["a", ""]


def test_requests_without_a_price_are_counted_apart(kept: Kept) -> None:
    task = turn(kept)
    unknown = Price(Decimal(0), "unknown")
    record(kept, entry(task, price=costs("0.5")), entry(task, 1, price=unknown))
    assert kept.store.usage("model") == [
        UsageSum("m", 2, Usage(20, 4, 6, 2), Decimal("0.5"), unpriced=1)
    ]


def test_of_equal_cost_the_one_with_more_tokens_comes_first(kept: Kept) -> None:
    task = turn(kept)
    free = Price(Decimal(0), "unknown")
    for n, (model, tokens) in enumerate([("a", 1), ("c", 5), ("b", 5)]):
        record(kept, entry(task, n, model=model, usage=Usage(output=tokens), price=free))
    assert [each.key for each in kept.store.usage("model")] == ["b", "c", "a"]


def test_the_sums_are_those_of_a_tenant_a_run_and_a_time(kept: Kept) -> None:
    task = turn(kept)
    record(
        kept,
        entry(task, 0, run=RunId("one")),
        entry(task, 1, run=RunId("two")),
        entry(task, 2, run=RunId("two"), ended_at=NOON + timedelta(days=1)),
        entry(task, 3, run=RunId("two"), tenant="other"),
    )
    later = NOON + timedelta(hours=1)
    counts = [
        [(each.key, each.requests) for each in sums]
        for sums in (
            kept.store.usage("run"),
            kept.store.usage("run", run="two"),
            kept.store.usage("run", since=later),
            kept.store.usage("run", run="one", since=later),
            kept.store.usage("run", tenant="other"),
            kept.store.usage("run", tenant=None),
            kept.store.usage("run", tenant=None, since=later),
        )
    ]
    assert counts == [
        [("two", 2), ("one", 1)],
        [("two", 2)],
        [("two", 1)],
        [],
        [("two", 1)],
        [("two", 3), ("one", 1)],
        [("two", 1)],
    ]


def test_what_cannot_be_added_up_is_refused(kept: Kept) -> None:
    with pytest.raises(BadRequest, match="use one of run, agent, facet, step, model, task, day"):
        kept.store.usage("color")
    with pytest.raises(BadRequest, match="needs a time zone"):
        kept.store.usage("run", since=datetime(2030, 1, 1))  # noqa: DTZ001 - that is the point


def test_an_impossible_entry_is_refused(kept: Kept) -> None:
    task = turn(kept)
    with pytest.raises(BadRequest, match="negative count"):
        record(kept, entry(task, usage=Usage(input=-1)))
    with pytest.raises(BadRequest, match="cannot be spent"):
        record(kept, entry(task, price=costs("-1")))
    assert kept.store.usage("task") == []
