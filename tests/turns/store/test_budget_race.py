"""Many processes on one budget: what is settled is never more than it allows."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from decimal import Decimal

import pytest

from afl.kernel.model import CallStatus, State, TaskSpec
from afl.turns.model import TURN, Allowance, BudgetKey
from afl.turns.ports import TurnStore
from tests.architecture.repository import ROOT
from tests.turns.lasting_stores import KINDS, fresh_turns, lasting_store
from tests.turns.store.spender import COVERING

PROCESSES, TURNS, CENTS = 8, 48, 7
RUN, AGENT, TENANT = COVERING
D = Decimal


def spend(kind: str, url: str) -> None:
    """Lets all processes loose on the turns at once, and waits until nothing is left to do."""
    command = [sys.executable, "-m", "tests.turns.store.spender", kind, url]
    with ExitStack() as stack:
        processes = []
        for number in range(PROCESSES):
            process = subprocess.Popen(
                [*command, f"spender-{number}", str(CENTS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            processes.append(process)
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "there\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in processes:
            assert process.stderr is not None
            problems = process.stderr.read()
            assert process.wait(60) == 0, problems


def wake(store: TurnStore) -> int:
    """Answers all whose budgets have room, as often as there is somebody new."""
    woken = 0
    while waits := store.ready_waits(limit=5):
        for wait in waits:
            call = store.kernel.find_call(wait.task, wait.call_key)
            assert call is not None
            assert store.kernel.reply(call.id, CallStatus.OK)
            store.end_wait(wait.task, wait.call_key)
        woken += len(waits)
    return woken


def spent(store: TurnStore, key: BudgetKey) -> Decimal:
    budget = store.get_budget(key)
    assert budget is not None
    assert budget.reserved.usd == 0
    assert budget.spent.usd == budget.spent.model_calls * D("0.07")
    return budget.spent.usd


def states(store: TurnStore) -> Counter[State]:
    return Counter(task.state for task in store.kernel.find_tasks(limit=1000) if task.kind == TURN)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_processes_never_settle_more_than_the_budget(kind: str) -> None:
    with fresh_turns(kind) as url, lasting_store(kind, url) as store:
        kernel = store.kernel
        kernel.enqueue([TaskSpec(TURN, "agent:default")] * TURNS)
        store.set_budget(RUN, Allowance(usd=D("1.00")))
        store.set_budget(TENANT, Allowance(usd=D("50")))
        spend(kind, url)
        assert spent(store, RUN) == spent(store, TENANT) == D("0.98")
        assert states(store) == {State.CLOSED: 14, State.WAITING: 34}
        assert wake(store) == 0

        store.set_budget(RUN, Allowance(usd=D("1.50")))
        assert wake(store) == 7
        spend(kind, url)
        assert spent(store, RUN) == spent(store, TENANT) == D("1.47")
        assert states(store) == {State.CLOSED: 21, State.WAITING: 27}

        store.set_budget(RUN, Allowance())
        assert wake(store) == 27
        spend(kind, url)
        assert spent(store, RUN) == spent(store, TENANT) == TURNS * D("0.07")
        assert states(store) == {State.CLOSED: TURNS}
        assert store.get_budget(AGENT) is None
