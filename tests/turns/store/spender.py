"""A process that serves turns: each asks once for what one call costs, or waits for room.

    python -m tests.turns.store.spender KIND URL NAME CENTS

It tells on its output that it is there, and begins when its input ends.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from decimal import Decimal

from afl.kernel.model import (
    CallSpec,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Continue,
    Outcome,
    Suspend,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.turns.errors import BudgetExhausted
from afl.turns.model import BUDGETS, BudgetKey, Hold, Spending
from afl.turns.ports import NO_TIMEOUT, BudgetWait, TurnStore
from tests.turns.lasting_stores import lasting_store

#: Named in another order by every other process, so that locks are taken in no order but the right.
COVERING = (BudgetKey("run", "r"), BudgetKey("agent", "a"), BudgetKey("tenant", "default"))


def spend(store: TurnStore, claim: Claim, amount: Spending, keys: tuple[BudgetKey, ...]) -> None:
    """One request of a turn, which costs as much as was reserved for it."""
    task, fence = claim.task.id, claim.fence
    applied = tuple(reply.id for reply in claim.replies)
    hold = Hold(task, 0, keys, amount)
    try:
        store.kernel.commit(
            [Commit(fence, Continue(), applied=applied)],
            writes=lambda transaction: store.reserve(transaction, hold),
        )
    except BudgetExhausted:
        key = f"budget:{claim.task.seq + len(store.kernel.calls_of(task))}"
        call = CallSpec(key, TaskSpec("budget", "budget", list=BUDGETS), NO_TIMEOUT)
        wait = BudgetWait(task, key, keys, amount)
        store.kernel.commit(
            [Commit(fence, Suspend(), calls=(call,), applied=applied)],
            writes=lambda transaction: store.await_budget(transaction, wait),
        )
    else:
        store.kernel.commit(
            [Commit(fence, Close(Outcome.SUCCESS), number=1)],
            writes=lambda transaction: store.settle(transaction, task, 0, amount),
        )


def main(kind: str, url: str, name: str, cents: str) -> None:
    worker = WorkerId(name)
    keys = COVERING if name[-1] in "02468" else COVERING[::-1]
    amount = Spending(usd=Decimal(cents) / 100, model_calls=1)
    with lasting_store(kind, url) as store:
        kernel = store.kernel
        kernel.register(WorkerSpec(worker, name, lease=timedelta(minutes=5)))
        print("there", flush=True)
        sys.stdin.read()
        while claims := kernel.claim(ClaimRequest(worker, ("agent:default",))):
            spend(store, claims[0], amount, keys)


if __name__ == "__main__":
    main(*sys.argv[1:])
