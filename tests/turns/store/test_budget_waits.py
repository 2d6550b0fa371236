"""Turns that wait for room: told of it by age, and of the same room once."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from afl.turns.errors import BudgetExhausted
from afl.turns.model import Allowance, Spending
from afl.turns.ports import BudgetWait
from tests.turns.lasting_stores import waiting
from tests.turns.store.kept import (
    RUN,
    TENANT,
    Kept,
    LastingKept,
    allow,
    await_room,
    figures,
    ready,
    reserve,
    turn,
    usd,
)

BOTH = (RUN, TENANT)


def test_who_waits_is_told_when_there_is_room(kept: Kept) -> None:
    allow(kept, RUN, "0")
    task = turn(kept)
    await_room(kept, task, usd("0.07"))
    assert ready(kept) == []
    assert ready(kept) == []
    allow(kept, RUN, "0.07")
    (wait,) = kept.store.ready_waits()
    assert wait == BudgetWait(task, "budget:0", (RUN,), usd("0.07"))
    kept.store.end_wait(task, "budget:0")
    assert ready(kept) == []


def test_a_wait_is_told_of_until_it_is_ended(kept: Kept) -> None:
    allow(kept, RUN, "1")
    task = turn(kept)
    await_room(kept, task, usd("0.07"))
    assert ready(kept) == ready(kept) == [task]
    kept.store.end_wait(task, "budget:7")
    assert ready(kept) == [task]
    kept.store.end_wait(task, "budget:0")
    kept.store.end_wait(task, "budget:0")
    assert ready(kept) == []


def test_room_is_handed_out_by_age_and_counted_once(kept: Kept) -> None:
    allow(kept, RUN, "0")
    tasks = [turn(kept) for _ in range(5)]
    for task in reversed(tasks):
        await_room(kept, task, usd("0.4"))
    assert ready(kept) == []
    allow(kept, RUN, "1")
    assert ready(kept) == [tasks[4], tasks[3]]
    assert ready(kept, limit=1) == [tasks[4]]


def test_room_that_was_promised_is_not_handed_out_again(kept: Kept) -> None:
    allow(kept, RUN, "1")
    first, second, third = [turn(kept) for _ in range(3)]
    for task in (first, second, third):
        await_room(kept, task, usd("0.4"))
    for task in ready(kept):
        kept.store.end_wait(task, "budget:0")
    assert ready(kept) == []
    reserve(kept, first, usd("0.3"))
    reserve(kept, second, usd("0.3"))
    assert ready(kept) == [third]


def test_a_promise_that_nobody_comes_for_is_given_to_others(kept: Kept) -> None:
    allow(kept, RUN, "0.5")
    lost, next_ = turn(kept), turn(kept)
    for task in (lost, next_):
        await_room(kept, task, usd("0.4"))
    kept.store.end_wait(lost, "budget:0")
    assert ready(kept) == []
    kept.advance(timedelta(minutes=2))
    assert ready(kept) == [next_]


def test_a_wait_that_does_not_fit_keeps_nobody_waiting(kept: Kept) -> None:
    allow(kept, RUN, "0")
    large, small = turn(kept), turn(kept)
    await_room(kept, large, usd("5"))
    await_room(kept, small, usd("0.1"))
    assert ready(kept) == []
    allow(kept, RUN, "1")
    assert ready(kept) == [small]
    allow(kept, RUN, "6")
    assert ready(kept) == [large, small]


def test_room_is_needed_in_every_budget(kept: Kept) -> None:
    allow(kept, RUN, "0")
    allow(kept, TENANT, "0")
    task = turn(kept)
    await_room(kept, task, usd("0.5"), budgets=BOTH)
    assert ready(kept) == []
    allow(kept, RUN, "1")
    assert ready(kept) == []
    allow(kept, RUN, "0")
    allow(kept, TENANT, "1")
    assert ready(kept) == []
    assert ready(kept) == []
    allow(kept, RUN, "0.5")
    assert ready(kept) == [task]


def test_every_unit_is_looked_at(kept: Kept) -> None:
    kept.store.set_budget(RUN, Allowance(Decimal(1), 10, 0, 0))
    task = turn(kept)
    await_room(kept, task, Spending(Decimal(1), 10, 1))
    for limit in (
        Allowance(Decimal(1), 10, 1, 0),
        Allowance(None, None, None, None),
        Allowance(model_calls=1),
    ):
        kept.store.set_budget(RUN, Allowance(Decimal(1), 10, 0, 0))
        assert ready(kept) == []
        kept.store.set_budget(RUN, limit)
        assert ready(kept) == [task]


def test_one_full_budget_hides_no_other(kept: Kept) -> None:
    allow(kept, RUN, "0")
    allow(kept, TENANT, "1")
    stuck = [turn(kept) for _ in range(3)]
    for task in stuck:
        await_room(kept, task, usd("0.5"))
    other = turn(kept)
    await_room(kept, other, usd("0.5"), budgets=(TENANT,))
    assert ready(kept, limit=1) == [other]
    assert ready(kept) == [other]


def test_who_reserves_waits_no_longer(kept: Kept) -> None:
    allow(kept, RUN, "1")
    task = turn(kept)
    await_room(kept, task, usd("0.5"))
    reserve(kept, task, usd("0.5"))
    assert ready(kept) == []
    assert figures(kept) == (Decimal("0.5"), 0)


def test_who_finds_the_room_gone_keeps_its_place(kept: Kept) -> None:
    allow(kept, RUN, "0.5")
    first, second = turn(kept), turn(kept)
    await_room(kept, first, usd("0.5"))
    await_room(kept, second, usd("0.5"))
    kept.store.end_wait(first, "budget:0")
    thief = turn(kept)
    reserve(kept, thief, usd("0.5"))
    with pytest.raises(BudgetExhausted):
        reserve(kept, first, usd("0.5"))
    await_room(kept, first, usd("0.5"), call_key="budget:1")
    assert ready(kept) == []
    allow(kept, RUN, "1")
    assert [(wait.task, wait.call_key) for wait in kept.store.ready_waits()] == [
        (first, "budget:1")
    ]


def test_turns_that_have_ended_wait_for_nothing(kept: Kept) -> None:
    allow(kept, RUN, "0.5")
    ended, live = turn(kept), turn(kept)
    await_room(kept, ended, usd("0.5"))
    await_room(kept, live, usd("0.5"))
    kept.store.kernel.stop(ended)
    assert ready(kept) == [live]


def test_a_cleaning_leaves_nothing_of_ended_turns(lasting_kept: LastingKept) -> None:
    kept = lasting_kept
    allow(kept, RUN, "0.5")
    ended, live, holds = turn(kept), turn(kept), turn(kept)
    await_room(kept, ended, usd("5"))
    await_room(kept, live, usd("0.1"))
    reserve(kept, holds, usd("0.2"))
    for task in (ended, holds):
        kept.store.kernel.stop(task)
    kept.turns.forget_closed()
    assert waiting(kept.turns) == [live]
    assert figures(kept) == (0, Decimal("0.2"))
