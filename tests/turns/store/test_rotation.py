"""What `afl db rotate` leaves of turns: their accounts, and nothing reserved or waited for."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from afl.cli import exit_codes
from afl.kernel.model import RunId, TaskSpec
from afl.kernel.port import Transaction
from afl.turns.model import Allowance, BudgetKey, Hold, Price, Spending, Usage, UsageEntry
from afl.turns.ports import BudgetWait
from tests.cli.runner import run
from tests.turns.lasting_stores import LastingTurns, waiting

KEY = BudgetKey("run", "r")
AMOUNT = Spending(usd=Decimal("0.5"))


def test_usage_outlives_the_runs_and_reservations_do_not(lasting_turns: LastingTurns) -> None:
    with lasting_turns.store() as store:
        kernel = store.kernel
        store.set_budget(KEY, Allowance(usd=Decimal(1)))
        asks, waits = (task.id for task in kernel.enqueue([TaskSpec("turn", "agent:a")] * 2))
        now = datetime.now(UTC)
        price = Price(AMOUNT.usd, "v1")
        entry = UsageEntry(
            asks, 0, RunId("r"), "default", None, None, None, "m", Usage(1), price, 0, now, now
        )

        def work(transaction: Transaction) -> None:
            store.record_usage(transaction, entry)
            store.reserve(transaction, Hold(asks, 1, (KEY,), AMOUNT))
            store.await_budget(transaction, BudgetWait(waits, "budget:0", (KEY,), AMOUNT))

        kernel.commit((), writes=work)
        for task in (asks, waits):
            kernel.stop(task)
        result = run("db", "rotate", "--older-than", "0s", "--database", lasting_turns.url)
        assert result.exit_code == exit_codes.OK
        assert result.stderr == "removed 2 tasks\n"
        assert [each.key for each in store.usage("task")] == [asks]
        budget = store.get_budget(KEY)
        assert budget is not None
        assert (budget.reserved, budget.spent) == (Spending(), AMOUNT)
        assert waiting(store) == []
