"""Budgets: room is taken before a request and given back after it, in every budget or in none."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from afl.kernel.errors import BadRequest, Fenced
from afl.kernel.model import (
    ClaimRequest,
    Close,
    Commit,
    Continue,
    Outcome,
    TaskId,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Transaction
from afl.turns.errors import BudgetExhausted
from afl.turns.model import Allowance, Budget, BudgetKey, Hold, Spending
from tests.turns.store.kept import (
    RUN,
    TENANT,
    Kept,
    LastingKept,
    allow,
    figures,
    reserve,
    settle,
    turn,
    usd,
    write,
)

D = Decimal
BOTH = (RUN, TENANT)
WORKER = WorkerId("w")


# Rows


def test_a_budget_is_what_was_set(kept: Kept) -> None:
    limit = Allowance(D("1.50"), 1000, 10, None)
    made = kept.store.set_budget(RUN, limit)
    assert made == Budget(RUN, limit)
    assert kept.store.get_budget(RUN) == made
    assert kept.store.get_budget(TENANT) is None


def test_setting_a_budget_again_keeps_what_was_spent(kept: Kept) -> None:
    allow(kept, RUN, "1")
    task = turn(kept)
    reserve(kept, task, usd("0.5"))
    settle(kept, task, usd("0.4"))
    reserve(kept, task, usd("0.3"), number=1)
    changed = allow(kept, RUN, "0.1")
    assert changed == Budget(RUN, Allowance(D("0.1")), usd("0.3"), usd("0.4"))
    assert kept.store.get_budget(RUN) == changed


def test_those_of_the_keys_that_have_a_row_are_found(kept: Kept) -> None:
    other = replace(RUN, tenant="other")
    for key in (TENANT, RUN, other):
        allow(kept, key, "1")
    found = kept.store.budgets([other, BudgetKey("agent", "a"), RUN, other])
    assert [budget.key for budget in found] == [other, RUN]
    assert kept.store.budgets([]) == []
    assert [budget.key for budget in kept.store.list_budgets()] == [RUN, TENANT]
    assert [budget.key for budget in kept.store.list_budgets(limit=1)] == [RUN]
    assert [budget.key for budget in kept.store.list_budgets("other")] == [other]
    assert [budget.key for budget in kept.store.list_budgets(None)] == [RUN, TENANT, other]


@pytest.mark.parametrize(
    ("key", "limit", "words"),
    [
        (BudgetKey("planet", "x"), Allowance(), "use one of turn, run, agent, tenant"),
        (BudgetKey("run", ""), Allowance(), "give it a key"),
        (RUN, Allowance(usd=D(-1)), "use 0 or more"),
        (RUN, Allowance(usd=D("NaN")), "cannot be spent"),
        (RUN, Allowance(usd=D(10**10)), "less than 10000000000"),
        (RUN, Allowance(tokens=-1), "tokens cannot be -1"),
    ],
)
def test_an_impossible_budget_is_refused(
    kept: Kept, key: BudgetKey, limit: Allowance, words: str
) -> None:
    with pytest.raises(BadRequest, match=words):
        kept.store.set_budget(key, limit)
    assert kept.store.list_budgets() == []


# Reserving and settling


def test_room_is_reserved_and_then_spent(kept: Kept) -> None:
    allow(kept, RUN, "1")
    task = turn(kept)
    reserve(kept, task, usd("0.7"))
    assert figures(kept) == (D("0.7"), 0)
    settle(kept, task, usd("0.25"))
    assert figures(kept) == (0, D("0.25"))
    settle(kept, task, usd("0.25"))
    assert figures(kept) == (0, D("0.25"))


def test_money_is_kept_to_ten_places(kept: Kept) -> None:
    allow(kept, RUN, "1")
    task = turn(kept)
    reserve(kept, task, usd("0.00000000015"))
    assert figures(kept) == (D("0.0000000002"), 0)
    settle(kept, task, usd("0.0000000001"))
    assert figures(kept) == (0, D("0.0000000001"))


def test_the_last_cent_can_be_reserved_and_not_one_more(kept: Kept) -> None:
    allow(kept, RUN, "1")
    one, two = turn(kept), turn(kept)
    reserve(kept, one, usd("0.99"))
    with pytest.raises(BudgetExhausted):
        reserve(kept, two, usd("0.0100000001"))
    reserve(kept, two, usd("0.01"))
    assert figures(kept) == (1, 0)


def test_a_refusal_says_what_is_left_and_how_to_raise_it(kept: Kept) -> None:
    allow(kept, RUN, "1")
    reserve(kept, turn(kept), usd("0.93"))
    with pytest.raises(BudgetExhausted) as caught:
        reserve(kept, turn(kept), usd("0.125"))
    assert (caught.value.scope, caught.value.key) == ("run", "r")
    assert caught.value.message == (
        "the budget of run r has 0.07 of 1.00 USD left, and the next request may take 0.125; "
        "raise it with `afl cost budget set run r --usd AMOUNT`"
    )
    key = BudgetKey("agent", "anna", "other")
    kept.store.set_budget(key, Allowance(model_calls=0))
    with pytest.raises(BudgetExhausted, match="--model-calls AMOUNT --tenant other") as caught:
        reserve(kept, turn(kept), Spending(model_calls=1), budgets=(key,))
    assert "has 0 of 0 model calls left" in caught.value.message


@pytest.mark.parametrize("unit", ["tokens", "model_calls", "tool_calls"])
def test_every_unit_has_its_own_limit(kept: Kept, unit: str) -> None:
    kept.store.set_budget(RUN, Allowance(**{unit: 10}))  # type: ignore[arg-type]
    one, two = turn(kept), turn(kept)
    reserve(kept, one, Spending(D(5), 6, 6, 6))
    with pytest.raises(BudgetExhausted):
        reserve(kept, two, Spending(**{unit: 5}))  # type: ignore[arg-type]
    reserve(kept, two, Spending(D(99), **{unit: 4}))


def test_all_budgets_give_room_or_none_does(kept: Kept) -> None:
    allow(kept, RUN, "1")
    allow(kept, TENANT, "0.5")
    task = turn(kept)
    with pytest.raises(BudgetExhausted) as caught:
        reserve(kept, task, usd("0.6"), budgets=BOTH)
    assert caught.value.scope == "tenant"
    assert figures(kept, RUN) == figures(kept, TENANT) == (0, 0)
    reserve(kept, task, usd("0.5"), budgets=BOTH)
    settle(kept, task, usd("0.4"))
    assert figures(kept, RUN) == figures(kept, TENANT) == (0, D("0.4"))


def test_a_refusal_leaves_no_trace_even_where_it_is_caught(kept: Kept) -> None:
    allow(kept, RUN, "1")
    task = turn(kept)
    reserve(kept, task, usd("0.3"))

    def work(transaction: Transaction) -> None:
        with pytest.raises(BudgetExhausted):
            kept.store.reserve(transaction, Hold(task, 1, BOTH, usd("0.8")))

    write(kept, work)
    assert figures(kept) == (D("0.3"), 0)
    settle(kept, task, usd("0.1"))
    assert figures(kept) == (0, D("0.1"))


def test_what_no_budget_covers_needs_no_room(kept: Kept) -> None:
    task = turn(kept)
    reserve(kept, task, usd("1000"), budgets=BOTH)
    allow(kept, RUN, "1")
    settle(kept, task, usd("1000"))
    assert figures(kept) == (0, 0)


def test_a_key_that_is_named_twice_counts_once(kept: Kept) -> None:
    allow(kept, RUN, "1")
    task = turn(kept)
    reserve(kept, task, usd("0.6"), budgets=(RUN, RUN))
    assert figures(kept) == (D("0.6"), 0)
    write(kept, lambda transaction: kept.store.spend(transaction, (RUN, RUN), usd("0.1")))
    assert figures(kept) == (D("0.6"), D("0.1"))


def test_more_may_be_spent_than_was_reserved(kept: Kept) -> None:
    allow(kept, RUN, "1")
    task = turn(kept)
    reserve(kept, task, usd("0.9"))
    settle(kept, task, usd("1.1"))
    assert figures(kept) == (0, D("1.1"))
    with pytest.raises(BudgetExhausted, match=r"has 0\.00 of 1\.00 USD left"):
        reserve(kept, task, usd("0"), number=1)


def test_reserving_the_same_number_again_replaces_it(kept: Kept) -> None:
    allow(kept, RUN, "1")
    allow(kept, TENANT, "1")
    task = turn(kept)
    reserve(kept, task, usd("0.8"), budgets=BOTH)
    reserve(kept, task, usd("0.9"), budgets=(RUN,))
    assert figures(kept) == (D("0.9"), 0)
    assert figures(kept, TENANT) == (0, 0)
    settle(kept, task, usd("0.2"))
    assert figures(kept) == (0, D("0.2"))
    assert figures(kept, TENANT) == (0, 0)


def test_what_was_not_settled_is_spent_when_the_turn_asks_again(kept: Kept) -> None:
    allow(kept, RUN, "1")
    task = turn(kept)
    reserve(kept, task, usd("0.6"))
    with pytest.raises(BudgetExhausted):
        reserve(kept, task, usd("0.5"), number=1)
    reserve(kept, task, usd("0.4"), number=1)
    assert figures(kept) == (D("0.4"), D("0.6"))
    settle(kept, task, usd("0.1"), number=0)
    assert figures(kept) == (D("0.4"), D("0.6"))
    settle(kept, task, usd("0.1"), number=1)
    assert figures(kept) == (0, D("0.7"))


def test_spending_is_counted_and_never_refused(kept: Kept) -> None:
    kept.store.set_budget(RUN, Allowance(tool_calls=2))

    def call_tools(count: int) -> None:
        spent = Spending(tool_calls=count)
        write(kept, lambda transaction: kept.store.spend(transaction, BOTH, spent))

    call_tools(2)
    task = turn(kept)
    reserve(kept, task, Spending(model_calls=1))
    settle(kept, task, Spending(model_calls=1))
    call_tools(3)
    budget = kept.store.get_budget(RUN)
    assert budget is not None
    assert budget.spent == Spending(model_calls=1, tool_calls=5)
    with pytest.raises(BudgetExhausted, match="has 0 of 2 tool calls left"):
        reserve(kept, task, Spending(model_calls=1), number=1)


@pytest.mark.parametrize("spending", [usd("-1"), Spending(tokens=-1), usd("Infinity")])
def test_impossible_amounts_are_refused(kept: Kept, spending: Spending) -> None:
    allow(kept, RUN, "1")
    task = turn(kept)
    reserve(kept, task, usd("0.5"))
    with pytest.raises(BadRequest):
        reserve(kept, task, spending, number=1)
    with pytest.raises(BadRequest):
        settle(kept, task, spending)
    with pytest.raises(BadRequest):
        write(kept, lambda transaction: kept.store.spend(transaction, (RUN,), spending))
    assert figures(kept) == (D("0.5"), 0)


# With the kernel's commits


def held(kept: Kept) -> tuple[TaskId, Commit]:
    """A turn in a worker's hands, and its next commit."""
    task = turn(kept)
    kept.store.kernel.register(WorkerSpec(WORKER, "w", lease=timedelta(hours=1)))
    (claim,) = kept.store.kernel.claim(ClaimRequest(WORKER, ("agent:default",)))
    assert claim.task.id == task
    return task, Commit(claim.fence, Continue())


def test_a_commit_that_is_repeated_reserves_and_settles_once(kept: Kept) -> None:
    allow(kept, RUN, "1")
    task, asks = held(kept)
    hold = Hold(task, 0, (RUN,), usd("0.6"))
    done = Commit(asks.fence, Close(Outcome.SUCCESS), number=1)
    for _ in range(2):
        kept.store.kernel.commit(
            [asks], writes=lambda transaction: kept.store.reserve(transaction, hold)
        )
        assert figures(kept) == (D("0.6"), 0)

    def pay(transaction: Transaction) -> None:
        kept.store.settle(transaction, task, 0, usd("0.5"))
        kept.store.spend(transaction, (RUN,), usd("0.1"))

    for _ in range(2):
        kept.store.kernel.commit([done], writes=pay)
        assert figures(kept) == (0, D("0.6"))


def test_a_refused_commit_is_not_made_and_can_be_made_otherwise(kept: Kept) -> None:
    allow(kept, RUN, "0.1")
    task, asks = held(kept)
    hold = Hold(task, 0, (RUN,), usd("0.6"))
    with pytest.raises(BudgetExhausted):
        kept.store.kernel.commit(
            [asks], writes=lambda transaction: kept.store.reserve(transaction, hold)
        )
    found = kept.store.kernel.get_task(task)
    assert found is not None
    assert found.commits == 0
    kept.store.kernel.commit([replace(asks, then=Close(Outcome.FAILED, permanent=True))])


def test_who_has_lost_its_turn_reserves_nothing(kept: Kept) -> None:
    allow(kept, RUN, "1")
    task, asks = held(kept)
    kept.store.kernel.stop(task, force=True)
    hold = Hold(task, 0, (RUN,), usd("0.6"))
    with pytest.raises(Fenced):
        kept.store.kernel.commit(
            [asks], writes=lambda transaction: kept.store.reserve(transaction, hold)
        )
    assert figures(kept) == (0, 0)


# Turns that end without a word


def test_what_ended_turns_had_reserved_counts_as_spent(kept: Kept) -> None:
    allow(kept, RUN, "10")
    allow(kept, TENANT, "10")
    live, *ended = [turn(kept) for _ in range(4)]
    for task in (live, *ended):
        reserve(kept, task, usd("0.5"), budgets=BOTH)
    assert kept.store.settle_holds_of_closed() == 0
    for task in ended:
        kept.store.kernel.stop(task)
    assert kept.store.settle_holds_of_closed(limit=2) == 2
    assert figures(kept) == figures(kept, TENANT) == (1, 1)
    assert kept.store.settle_holds_of_closed(limit=2) == 1
    assert kept.store.settle_holds_of_closed(limit=2) == 0
    assert figures(kept) == figures(kept, TENANT) == (D("0.5"), D("1.5"))
    settle(kept, live, usd("0.1"))
    assert figures(kept) == (0, D("1.6"))


def test_what_forgotten_turns_had_reserved_counts_as_spent(kept: Kept) -> None:
    allow(kept, RUN, "1")
    task = turn(kept)
    reserve(kept, task, usd("0.5"))
    kept.store.kernel.stop(task)
    kept.advance(timedelta(days=90))
    assert kept.store.kernel.rotate(timedelta(days=30)) == 1
    assert kept.store.settle_holds_of_closed() == 1
    assert figures(kept) == (0, D("0.5"))


def test_processes_that_look_at_once_count_each_turn_once(lasting_kept: LastingKept) -> None:
    kept = lasting_kept
    allow(kept, RUN, "100")
    allow(kept, TENANT, "100")
    for _ in range(40):
        task = turn(kept)
        reserve(kept, task, usd("0.5"), budgets=BOTH)
        kept.store.kernel.stop(task)

    def sweep(_: int) -> int:
        counted = 0
        while found := kept.store.settle_holds_of_closed(limit=3):
            counted += found
        return counted

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(sweep, range(4)))
    sweep(0)
    assert figures(kept) == figures(kept, TENANT) == (0, 20)
