"""The roster of agents and their turns, the accounts, and pins of MCP tools."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from afl.kernel.model import RunId, Task, TaskId
from afl.kernel.port import Transaction
from afl.kernel.postgres.rows import is_id, task_of
from afl.kernel.postgres.transactions import opened
from afl.turns.model import Agent, AgentId, UsageEntry, UsageSum
from afl.turns.postgres.core import PostgresCore
from afl.turns.postgres.rows import agent_of, pack_agent, pack_entry, sum_of
from afl.turns.postgres.statements import SQL, hot
from afl.turns.store_rules import UNPRICED, agent_in, entry_in, rollup_in

_RECORD_USAGE = hot("record_usage")
_FIRST = "00000000-0000-0000-0000-000000000000"
_LAST = "ffffffff-ffff-ffff-ffff-ffffffffffff"


class PostgresRoster(PostgresCore):
    """See `ports.Roster` for what each method promises."""

    def save_agent(self, agent: Agent) -> Agent:
        agent_in(agent)
        row = self._row("save_agent", pack_agent(agent))
        assert row is not None
        return agent_of(row)

    def get_agent(self, id: AgentId, tenant: str = "default") -> Agent | None:
        row = self._row("get_agent", {"tenant": tenant, "id": id})
        return None if row is None else agent_of(row)

    def list_agents(
        self, tenant: str = "default", after: AgentId | None = None, limit: int = 100
    ) -> list[Agent]:
        parameters = {"tenant": tenant, "after": after or "", "limit": max(limit, 0)}
        return [agent_of(row) for row in self._rows("list_agents", parameters)]

    def delete_agent(self, id: AgentId, tenant: str = "default") -> bool:
        return self._row("delete_agent", {"tenant": tenant, "id": id}) is not None


class PostgresAgentTurns(PostgresCore):
    """See `ports.AgentTurns` for what each method promises."""

    def turns_of(
        self,
        agent: AgentId,
        tenant: str = "default",
        before: TaskId | None = None,
        limit: int = 100,
    ) -> list[Task]:
        start = before if before is not None and is_id(before) else _LAST
        parameters = {"tenant": tenant, "agent": agent, "before": start, "limit": max(limit, 0)}
        return [task_of(row) for row in self._rows("turns_of", parameters)]

    def active_turn(self, agent: AgentId, tenant: str = "default") -> Task | None:
        row = self._row("active_turn", {"tenant": tenant, "agent": agent})
        return None if row is None else task_of(row)

    def turns_within(self, run: RunId, after: TaskId | None = None, limit: int = 100) -> list[Task]:
        start = after if after is not None and is_id(after) else _FIRST
        parameters = {"run": run, "after": start, "limit": max(limit, 0)}
        return [task_of(row) for row in self._rows("turns_within", parameters)]


class PostgresAccounts(PostgresCore):
    """See `ports.Accounts` for what each method promises."""

    def record_usage(self, transaction: Transaction, entry: UsageEntry) -> None:
        opened(transaction).send(_RECORD_USAGE, pack_entry(entry_in(entry)))

    def usage(
        self,
        by: str,
        *,
        tenant: str | None = "default",
        run: str | None = None,
        since: datetime | None = None,
        tasks: Sequence[TaskId] | None = None,
        runs: Sequence[str] | None = None,
        limit: int = 100,
    ) -> list[UsageSum]:
        """Reads the rows of the run or the runs, of the turns, or those since then; else all of the
        tenant."""
        rollup_in(by, since)
        parameters = {
            "by": by,
            "tenants": self._tenants() if tenant is None else [tenant],
            "run": run,
            "since": since,
            "tasks": None if tasks is None else [task for task in tasks if is_id(task)],
            "runs": None if runs is None else list(runs),
            "unpriced": UNPRICED,
            "limit": max(limit, 0),
        }
        # not prepared: which index serves depends on what is asked
        rows = self._kernel.database.rows(SQL["usage"], parameters, prepare=False)
        return [sum_of(row) for row in rows]

    def _tenants(self) -> list[str]:
        """All that have asked models: with their names, an index serves what is asked of all."""
        return [tenant for (tenant,) in self._kernel.database.rows(SQL["usage_tenants"], {})]


class PostgresPins(PostgresCore):
    """See `ports.Pins` for what each method promises."""

    def get_pin(self, server: str, tool: str) -> str | None:
        row = self._row("get_pin", {"server": server, "tool": tool})
        return None if row is None else row[0]

    def set_pin(self, server: str, tool: str, hash: str) -> None:
        self._execute("set_pin", {"server": server, "tool": tool, "hash": hash})
