"""`MemoryTurnStore`: everything that turns keep beside the kernel's rows, in memory.

The rows are in tables of the kernel's store, so they are part of its transactions. Values in the
tables are never changed, only replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

from afl.kernel import memory
from afl.kernel.memory.tables import opened, write_tables
from afl.kernel.memory.transaction import MemoryTransaction
from afl.kernel.model import RunId, Task, TaskId
from afl.kernel.port import Transaction
from afl.turns.memory_budgets import MemoryBudgets
from afl.turns.model import AGENT_NAME, TURN, Agent, AgentId, Usage, UsageEntry, UsageSum
from afl.turns.store_rules import UNPRICED, agent_in, entry_in, rollup_in

_AGENTS = "agent"
_USAGE = "usage"
_PINS = "mcp-pin"
_PAGE = 1000
_OF_AGENTS = AGENT_NAME.format(target="")


class MemoryTurnStore(MemoryBudgets):
    """Everything that turns keep, in memory: see `ports.TurnStore`. Threads may share one."""

    def __init__(self, kernel: memory.MemoryStore) -> None:
        """Beside the rows of a kernel store."""
        super().__init__(kernel)

    @property
    def kernel(self) -> memory.MemoryStore:
        return self._kernel

    # The roster

    def save_agent(self, agent: Agent) -> Agent:
        agent_in(agent)

        def work(transaction: MemoryTransaction) -> Agent:
            table = transaction.tables[_AGENTS]
            found: Agent | None = table.get(_pair(agent.tenant, agent.id))
            made_at = transaction.now if found is None else found.created_at
            saved = replace(agent, created_at=made_at)
            table[_pair(agent.tenant, agent.id)] = saved
            return saved

        return write_tables(self._kernel, work)

    def get_agent(self, id: AgentId, tenant: str = "default") -> Agent | None:
        return self._kernel.read_tables(lambda tables: tables[_AGENTS].get(_pair(tenant, id)))

    def list_agents(
        self, tenant: str = "default", after: AgentId | None = None, limit: int = 100
    ) -> list[Agent]:
        every: Iterable[Agent] = self._kernel.read_table(_AGENTS).values()
        found = [
            each for each in every if each.tenant == tenant and (after is None or each.id > after)
        ]
        return sorted(found, key=lambda each: each.id)[: max(limit, 0)]

    def delete_agent(self, id: AgentId, tenant: str = "default") -> bool:
        def work(transaction: MemoryTransaction) -> bool:
            return transaction.tables[_AGENTS].pop(_pair(tenant, id), None) is not None

        return write_tables(self._kernel, work)

    # The turns of agents

    def turns_of(
        self,
        agent: AgentId,
        tenant: str = "default",
        before: TaskId | None = None,
        limit: int = 100,
    ) -> list[Task]:
        found = [task for task in self._turns(agent, tenant) if before is None or task.id < before]
        return found[::-1][: max(limit, 0)]

    def active_turn(self, agent: AgentId, tenant: str = "default") -> Task | None:
        return next((task for task in self._turns(agent, tenant) if task.is_active), None)

    def turns_within(self, run: RunId, after: TaskId | None = None, limit: int = 100) -> list[Task]:
        found: list[Task] = []
        while len(found) < limit:
            page = self._kernel.find_tasks(run=run, after=after, limit=_PAGE)
            found += [task for task in page if task.kind == TURN and task.id != str(run)]
            if len(page) < _PAGE:
                break
            after = page[-1].id
        return found[: max(limit, 0)]

    def _turns(self, agent: AgentId, tenant: str) -> Iterator[Task]:
        after: TaskId | None = None
        while page := self._kernel.find_tasks(after=after, limit=_PAGE):
            for task in page:
                place = (task.kind, task.tenant, task.lane)
                if place == (TURN, tenant, agent) and task.name.startswith(_OF_AGENTS):
                    yield task
            after = page[-1].id

    # The accounts

    def record_usage(self, transaction: Transaction, entry: UsageEntry) -> None:
        table = opened(transaction).tables[_USAGE]
        table.setdefault(_pair(entry.task, str(entry.number)), entry_in(entry))

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
        rollup_in(by, since)
        every: Iterable[UsageEntry] = self._kernel.read_table(_USAGE).values()
        groups: dict[str, list[UsageEntry]] = {}
        for each in every:
            if (
                tenant in (None, each.tenant)
                and (run is None or each.run == run)
                and (since is None or each.ended_at >= since)
                and (tasks is None or each.task in tasks)
                and (runs is None or each.run in runs)
            ):
                groups.setdefault(_key(by, each), []).append(each)
        sums = [_sum(key, entries) for key, entries in groups.items()]
        sums.sort(key=lambda each: (-each.usd, -each.usage.total, each.key))
        return sums[: max(limit, 0)]

    # Pins of MCP tools

    def get_pin(self, server: str, tool: str) -> str | None:
        return self._kernel.read_tables(lambda tables: tables[_PINS].get(_pair(server, tool)))

    def set_pin(self, server: str, tool: str, hash: str) -> None:
        def work(transaction: MemoryTransaction) -> None:
            transaction.tables[_PINS][_pair(server, tool)] = hash

        write_tables(self._kernel, work)


def _pair(one: str, other: str) -> str:
    return f"{one}\0{other}"


def _key(by: str, entry: UsageEntry) -> str:
    if by == "day":
        return entry.ended_at.astimezone(UTC).date().isoformat()
    return str(getattr(entry, by) or "")


def _sum(key: str, entries: list[UsageEntry]) -> UsageSum:
    priced = [each.price.usd for each in entries if each.price.version != UNPRICED]
    return UsageSum(
        key,
        len(entries),
        Usage(
            sum(each.usage.input for each in entries),
            sum(each.usage.output for each in entries),
            sum(each.usage.cache_read for each in entries),
            sum(each.usage.cache_write for each in entries),
        ),
        sum(priced, Decimal(0)),
        len(entries) - len(priced),
    )
