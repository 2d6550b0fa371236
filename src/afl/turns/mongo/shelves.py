"""The roster of agents and their turns, the accounts, and pins of MCP tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pymongo import DeleteOne, UpdateOne

from afl.kernel.model import RunId, Task, TaskId
from afl.kernel.mongo.transaction import MongoTransaction, opened
from afl.kernel.mongo.values import to_micros
from afl.kernel.port import Transaction
from afl.turns import store_rules
from afl.turns.model import AGENT_NAME, TURN, Agent, AgentId, UsageEntry, UsageSum
from afl.turns.mongo.core import MongoCore
from afl.turns.mongo.documents import (
    agent_id,
    agent_in,
    agent_out,
    entry_id,
    entry_in,
    sum_out,
)
from afl.turns.store_rules import UNPRICED, rollup_in

_AGENTS, _USAGE, _PINS, _TASKS = "agent", "usage", "mcp_pin", "task"
#: The names of all turns of agents: from the first to before what follows them.
_OF_AGENTS = AGENT_NAME.format(target="")
_NAMES = {"$gte": _OF_AGENTS, "$lt": _OF_AGENTS[:-1] + chr(ord(_OF_AGENTS[-1]) + 1)}
_FIELDS = {by: f"${by}" for by in store_rules.ROLLUPS}


class MongoRoster(MongoCore):
    """See `ports.Roster` for what each method promises."""

    def save_agent(self, agent: Agent) -> Agent:
        store_rules.agent_in(agent)
        name = {"_id": agent_id(agent.id, agent.tenant)}

        def work(transaction: MongoTransaction) -> Agent:
            made = {"created_at": to_micros(transaction.now)}
            change = {"$set": agent_in(agent), "$setOnInsert": made}
            transaction.write(_AGENTS, UpdateOne(name, change, upsert=True))
            (saved,) = transaction.find(_AGENTS, name)
            return agent_out(saved)

        return self._database.transact(work)

    def get_agent(self, id: AgentId, tenant: str = "default") -> Agent | None:
        found = self._database.find_one(_AGENTS, {"_id": agent_id(id, tenant)})
        return None if found is None else agent_out(found)

    def list_agents(
        self, tenant: str = "default", after: AgentId | None = None, limit: int = 100
    ) -> list[Agent]:
        if limit <= 0:
            return []
        where = {"_id.tenant": tenant, "_id.id": {"$gt": after or ""}}
        order = [("_id.tenant", 1), ("_id.id", 1)]
        return [
            agent_out(row) for row in self._database.find(_AGENTS, where, sort=order, limit=limit)
        ]

    def delete_agent(self, id: AgentId, tenant: str = "default") -> bool:
        gone = DeleteOne({"_id": agent_id(id, tenant)})
        return self._database.write(_AGENTS, [gone]).deleted_count > 0


class MongoAgentTurns(MongoCore):
    """See `ports.AgentTurns` for what each method promises."""

    def turns_of(
        self,
        agent: AgentId,
        tenant: str = "default",
        before: TaskId | None = None,
        limit: int = 100,
    ) -> list[Task]:
        where = _turns_of(agent, tenant)
        if before is not None:
            where["_id"] = {"$lt": before}
        return self._turns(where, -1, limit)

    def active_turn(self, agent: AgentId, tenant: str = "default") -> Task | None:
        found = self._turns({**_turns_of(agent, tenant), "active": True}, 1, 1)
        return found[0] if found else None

    def turns_within(self, run: RunId, after: TaskId | None = None, limit: int = 100) -> list[Task]:
        ids = {"$ne": run, "$gt": after or ""}
        return self._turns({"run": run, "kind": TURN, "_id": ids}, 1, limit)

    def _turns(self, where: Mapping[str, Any], direction: int, limit: int) -> list[Task]:
        if limit <= 0:
            return []
        found = self._database.find(_TASKS, where, sort=[("_id", direction)], limit=limit)
        return [self._rows.task_out(row) for row in found]


class MongoAccounts(MongoCore):
    """See `ports.Accounts` for what each method promises."""

    def record_usage(self, transaction: Transaction, entry: UsageEntry) -> None:
        kept = store_rules.entry_in(entry)
        name = {"_id": entry_id(kept), "run": kept.run}
        once = UpdateOne(name, {"$setOnInsert": entry_in(kept)}, upsert=True)
        opened(transaction).write(_USAGE, once)

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
        """Reads the documents of the run or the runs, of the turns, or those since then; else all
        of the tenant, or of all tenants."""
        rollup_in(by, since)
        if limit <= 0:
            return []
        where: dict[str, Any] = {}
        if tenant is not None:
            where["tenant"] = tenant
        if run is not None:
            where["run"] = run
        if runs is not None:
            where["$and"] = [{"run": {"$in": list(runs)}}]
        if tasks is not None:
            where["task"] = {"$in": list(tasks)}
        if since is not None:
            where["ended_at"] = {"$gte": to_micros(since)}
        found = self._database.aggregate(
            _USAGE,
            [
                {"$match": where},
                _sums(by),
                {"$set": {"total": {"$add": ["$input", "$output"]}}},
                {"$sort": {"usd": -1, "total": -1, "_id": 1}},
                {"$limit": limit},
            ],
        )
        return [sum_out(row) for row in found]


class MongoPins(MongoCore):
    """See `ports.Pins` for what each method promises."""

    def get_pin(self, server: str, tool: str) -> str | None:
        found = self._database.find_one(_PINS, {"_id": {"server": server, "tool": tool}})
        return None if found is None else str(found["hash"])

    def set_pin(self, server: str, tool: str, hash: str) -> None:
        name = {"_id": {"server": server, "tool": tool}}

        def work(transaction: MongoTransaction) -> None:
            pinned = {"hash": hash, "pinned_at": to_micros(transaction.now)}
            transaction.write(_PINS, UpdateOne(name, {"$set": pinned}, upsert=True))

        self._database.transact(work)


def _turns_of(agent: AgentId, tenant: str) -> dict[str, Any]:
    """A facet may share an agent's lane by its name, so the name of the task counts too."""
    return {"kind": TURN, "tenant": tenant, "lane": agent, "name": _NAMES}


def _sums(by: str) -> dict[str, Any]:
    is_unpriced = {"$eq": ["$price_version", UNPRICED]}
    tokens = ("input", "output", "cache_read", "cache_write")
    return {
        "$group": {
            "_id": {"$ifNull": [_FIELDS[by], ""]},
            "requests": {"$sum": 1},
            **{name: {"$sum": f"${name}"} for name in tokens},
            "usd": {"$sum": {"$cond": [is_unpriced, 0, "$usd"]}},
            "unpriced": {"$sum": {"$cond": [is_unpriced, 1, 0]}},
        }
    }
