"""Turn workers in many processes on one budget: never above it, and those without room say so and
go on when it is raised."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal

import pytest

from afl.kernel.model import Outcome, ReasonCode, State, Task, TaskId
from afl.kernel.mongo.store import MongoStore
from afl.kernel.postgres.store import PostgresStore
from afl.runtime.mongo_store import MongoStore as MongoPersistence
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.reasons import WhyCode
from afl.runtime.task_reasons import TaskReasons
from afl.turns.model import Allowance, Budget, BudgetKey
from tests.chaos.sink import REPOSITORY
from tests.turns.budget_worker import CALL_USD, SCRIPT
from tests.turns.driving import eventually, turn_task
from tests.turns.lasting_stores import LastingTurns

PROCESSES, TURNS = 8, 16
LIMIT, RAISED = Decimal("1.00"), Decimal("5.00")
TENANT = BudgetKey("tenant", "default")
#: What fits into the limit, and not one more.
FITTING = int(LIMIT / CALL_USD)


@contextmanager
def racing(turns: LastingTurns) -> Iterator[None]:
    """All workers, let loose at once."""
    command = [sys.executable, "-m", "tests.turns.budget_worker", turns.kind, turns.url]
    with ExitStack() as stack:
        processes = []
        for number in range(PROCESSES):
            process = subprocess.Popen(
                [*command, f"worker-{number}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=REPOSITORY,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            processes.append(process)
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "there\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        yield


class Auditor:
    """Looks at the budget again and again: what is spent and reserved is never above the limit."""

    def __init__(self, budget: Callable[[], Budget]) -> None:
        self._budget = budget
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.looks = 0
        self.most = Decimal(0)

    def __enter__(self) -> Auditor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(0.005):
            budget = self._budget()
            self.most = max(self.most, budget.spent.usd + budget.reserved.usd)
            self.looks += 1


def tasks_of(kernel: PostgresStore | MongoStore, turns: list[TaskId]) -> list[Task]:
    found = [kernel.get_task(turn) for turn in turns]
    assert None not in found
    return [task for task in found if task is not None]


@pytest.mark.slow
def test_workers_never_spend_more_than_the_budget_and_the_rest_waits_for_it(
    lasting_turns: LastingTurns,
) -> None:
    with lasting_turns.store(max_size=3) as store:
        kernel = store.kernel
        store.set_budget(TENANT, Allowance(usd=LIMIT))
        turns = [task.id for task in kernel.enqueue([turn_task(f"a-{n}") for n in range(TURNS)])]

        def budget() -> Budget:
            (found,) = store.budgets([TENANT])
            return found

        def settled() -> bool:
            states = {task.state for task in tasks_of(kernel, turns)}
            return states <= {State.WAITING, State.CLOSED}

        with Auditor(budget) as auditor, racing(lasting_turns):
            eventually(lambda: budget().spent.model_calls == FITTING, "what fits is spent")
            eventually(settled, "the rest waits")
            assert budget().spent.usd == FITTING * CALL_USD <= LIMIT
            assert budget().reserved.usd == 0
            waiting = [task for task in tasks_of(kernel, turns) if task.state is State.WAITING]
            assert waiting, "there is not enough for all of them"
            check_reasons(kernel, waiting)
            assert auditor.most <= LIMIT
            assert auditor.looks > 10

            store.set_budget(TENANT, Allowance(usd=RAISED))
            eventually(
                lambda: all(t.state is State.CLOSED for t in tasks_of(kernel, turns)), "all go on"
            )
        assert {task.outcome for task in tasks_of(kernel, turns)} == {Outcome.SUCCESS}
        assert budget().spent.usd == TURNS * len(SCRIPT) * CALL_USD
        assert budget().reserved.usd == 0
        (total,) = store.usage("model")
        assert total.usd == budget().spent.usd, "the accounts and the budget agree"


def check_reasons(kernel: PostgresStore | MongoStore, waiting: list[Task]) -> None:
    """Whoever asks why a turn does not go on is told of the budget, and how to raise it."""
    lasting = (
        PostgresPersistence(kernel)
        if isinstance(kernel, PostgresStore)
        else MongoPersistence(kernel)
    )
    reasons = TaskReasons(lasting)
    for task in waiting:
        reason = kernel.why(task.id)
        assert reason is not None
        assert reason.code is ReasonCode.CALLS_OPEN
        (call,) = [each for each in kernel.calls_of(task.id) if each.replied_at is None]
        assert call.key.startswith("budget:")
        answer = reasons.of_task(task)
        assert answer.code is WhyCode.BUDGET, answer
        assert "tenant default" in answer.sentence
        assert answer.command == "afl cost budget set tenant default"
