"""What models have cost, and what may be spent."""

from __future__ import annotations

from datetime import datetime, timedelta

from afl.app.run import span_of
from afl.app.services import Services
from afl.bridges.turn_stores import turn_store
from afl.kernel.model import TaskId
from afl.runtime.errors import BadInputs
from afl.turns.budget_waits import wake_waiting
from afl.turns.model import Allowance, Budget, BudgetKey, UsageSum

#: What budgets are of.
SCOPES = ("turn", "run", "agent", "tenant")
#: By what requests can be added up.
ROLLUPS = ("run", "agent", "facet", "step", "model", "day")


class Costs:
    """The accounts and the budgets of one tenant. Threads may share one."""

    def __init__(self, services: Services, tenant: str = "default") -> None:
        self._persistence = services.persistence
        self._store = turn_store(services.persistence)
        self._doorbell = services.doorbell
        self._tenant = tenant

    def usage(
        self,
        by: str = "run",
        *,
        run: str | None = None,
        since: str | timedelta | datetime | None = None,
        limit: int = 100,
        every_tenant: bool = False,
    ) -> list[UsageSum]:
        """Requests added up by `run`, `agent`, `facet`, `step`, `model` or `day`, the most
        expensive first; those of what has no agent, facet or step are under an empty key.

        Args:
            run: only those of this run and of all that it has called.
            since: only those since this time, or not longer ago than `7d`.
            every_tenant: those of all tenants, for callers who may see them.
        """
        if by not in ROLLUPS:
            raise BadInputs(f"Cost is not added up by {by}. Use one of {', '.join(ROLLUPS)}.")
        if run is not None:
            self._refuse_called(run)
        if isinstance(since, str | timedelta):
            span = span_of(since)
            assert span is not None
            since = self._persistence.now() - span
        tenant = None if every_tenant else self._tenant
        return self._store.usage(by, tenant=tenant, run=run, since=since, limit=limit)

    def budgets(self, *, limit: int = 100, every_tenant: bool = False) -> list[Budget]:
        """All budgets, with what is reserved and what was spent."""
        return self._store.list_budgets(None if every_tenant else self._tenant, limit)

    def budget(self, scope: str, key: str) -> Budget | None:
        """The budget of a turn, a run, an agent or the tenant; None if it has none."""
        return self._store.get_budget(self._key(scope, key))

    def set_budget(self, scope: str, key: str, limit: Allowance) -> tuple[Budget, int]:
        """Sets what may be spent; what was spent stays. Turns that waited for room go on at once.

        Returns:
            The budget, and how many turns go on.
        """
        budget = self._store.set_budget(self._key(scope, key), limit)
        woken = 0
        while some := wake_waiting(self._store):
            woken += some
        if woken:
            self._doorbell.ring(["default"])
            # what was promised is in the row by now
            budget = self._store.get_budget(budget.key) or budget
        return budget, woken

    def _key(self, scope: str, key: str) -> BudgetKey:
        if scope not in SCOPES:
            raise BadInputs(f"There is no budget of a {scope}. Use one of {', '.join(SCOPES)}.")
        return BudgetKey(scope, key, self._tenant)

    def _refuse_called(self, run: str) -> None:
        """What a called run has cost is in the accounts of the run that everything began with."""
        task = self._persistence.kernel.get_task(TaskId(run))
        if task is not None and task.run != run:
            raise BadInputs(
                f"Run {run} was called by another, and its cost is counted there: "
                f"`afl cost --run {task.run}`."
            )
