"""Making tasks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from afl.kernel.errors import BadRequest
from afl.kernel.model import (
    Json,
    ReasonCode,
    Retry,
    RunId,
    State,
    TaskSpec,
    Wake,
)
from afl.testing.conformance.cases.base import Cases
from afl.testing.conformance.driver import HOUR, MINUTE, SECOND, SLACK, Driver
from afl.testing.conformance.harness import Harness

_JSON: Json = {"text": "a\nü", "list": [1, 2.5, None, True, {"deep": []}], "empty": {}}


class EnqueueCases(Cases):
    def test_every_field_of_a_spec_is_kept(self, driver: Driver) -> None:
        spec = TaskSpec(
            kind="turn",
            name="billing.Pay",
            run=RunId("run-1"),
            tenant="acme",
            list="slow",
            lane="agent-1",
            hold=False,
            priority=7,
            delay=MINUTE,
            timeout=HOUR,
            wake=Wake.ANY,
            retry=Retry(3, 2 * SECOND, 1.5, 9 * SECOND, False),
            max_crashes=2,
            input=_JSON,
            idem="once",
            trace="00-ab-cd-01",
        )
        (made,) = driver.store.enqueue([spec])
        assert driver.task(made.id) == made
        for name in ("kind", "name", "run", "tenant", "list", "lane", "hold", "priority"):
            assert getattr(made, name) == getattr(spec, name)
        for name in ("wake", "retry", "max_crashes", "input", "idem", "trace"):
            assert getattr(made, name) == getattr(spec, name)
        assert made.run_at == made.created_at + MINUTE
        assert made.deadline == made.created_at + HOUR
        assert made.created_at.utcoffset() == timedelta(0)

    def test_a_new_task_is_ready_and_nothing_else(self, driver: Driver) -> None:
        task = driver.enqueue()
        assert task.state is State.READY
        assert (task.fence, task.worker, task.outcome, task.closed_at) == (None,) * 4
        assert (task.result, task.error, task.parent_call, task.redrives) == (None,) * 4
        assert (task.depth, task.crashes, task.failures, task.commits, task.seq) == (0,) * 5
        assert not task.dead
        assert not task.stop_requested
        assert task.reason is not None
        assert task.reason.code is ReasonCode.CLAIMABLE

    def test_work_outside_a_run_is_a_run_of_its_own(self, driver: Driver) -> None:
        task = driver.enqueue()
        assert task.run == RunId(task.id)

    def test_tasks_are_made_in_the_order_of_their_specs(self, driver: Driver) -> None:
        tasks = driver.store.enqueue([TaskSpec("test", f"n{i}") for i in range(5)])
        assert [task.name for task in tasks] == ["n0", "n1", "n2", "n3", "n4"]
        assert sorted(task.id for task in tasks) == [task.id for task in tasks]
        assert driver.store.enqueue([]) == []

    def test_an_idem_makes_one_task(self, driver: Driver) -> None:
        first = driver.enqueue(idem="once", input=1)
        again = driver.enqueue(idem="once", input=2)
        assert again == first
        two = driver.store.enqueue([TaskSpec("test", "work", idem="both")] * 2)
        assert two[0] == two[1]
        assert len(driver.store.find_tasks()) == 2

    def test_an_idem_belongs_to_a_tenant_and_outlives_the_task(self, driver: Driver) -> None:
        first = driver.enqueue(idem="once")
        other = driver.enqueue(idem="once", tenant="acme")
        assert other.id != first.id
        driver.commit(driver.take().fence)
        assert driver.enqueue(idem="once").state is State.CLOSED

    def test_a_delayed_task_is_claimable_when_its_time_has_come(
        self, driver: Driver, harness: Harness
    ) -> None:
        task = driver.enqueue(delay=MINUTE)
        assert task.reason is not None
        assert (task.reason.code, task.reason.until) == (ReasonCode.DELAYED, task.run_at)
        assert driver.claim() == []
        harness.advance(MINUTE - SLACK)
        assert driver.claim() == []
        harness.advance(SLACK)
        assert driver.take().task.id == task.id

    def test_writes_happen_with_the_task_or_not_at_all(
        self, driver: Driver, harness: Harness
    ) -> None:
        spec = TaskSpec("test", "work", idem="once")
        driver.store.enqueue([spec], harness.mark("made"))
        driver.store.enqueue([spec], harness.mark("known"))
        assert harness.marks() == ["made"]
        with pytest.raises(BadRequest):
            driver.store.enqueue(
                [TaskSpec("test", "good"), TaskSpec("test", "")], harness.mark("refused")
            )
        assert harness.marks() == ["made"]
        assert [task.name for task in driver.store.find_tasks()] == ["work"]

    @pytest.mark.parametrize(
        "change",
        [
            {"kind": ""},
            {"name": ""},
            {"name": "nul\0"},
            {"lane": ""},
            {"idem": ""},
            {"delay": -SECOND},
            {"timeout": timedelta(0)},
            {"timeout": timedelta.max},
            {"max_crashes": -1},
            {"retry": Retry(max_failures=-1)},
            {"retry": Retry(backoff=0.5)},
            {"retry": Retry(delay=-SECOND)},
            {"input": float("nan")},
            {"input": {"when": timedelta(1)}},
            {"input": ("tuple",)},
            {"input": {1: "number"}},
            {"input": ["half a pair \ud800"]},
            {"input": "nul\0"},
        ],
        ids=str,
    )
    def test_a_spec_that_contradicts_itself_is_refused(
        self, driver: Driver, change: dict[str, object]
    ) -> None:
        spec = replace(TaskSpec("test", "work"), **change)  # type: ignore[arg-type]
        with pytest.raises(BadRequest):
            driver.store.enqueue([spec])
        assert driver.store.find_tasks() == []
