"""Two tenants in one PostgreSQL, with rows of both in every table that has rows of tenants."""

from __future__ import annotations

import secrets

import psycopg
from starlette.testclient import TestClient

from afl.base.system import SystemIds
from afl.kernel.postgres.database import Database
from afl.kernel.postgres.store import PostgresStore
from afl.runtime.driver import Driver
from afl.server.application import create_app
from afl.server.backend import Backend
from tests.server.calling import token_for
from tests.server.run_stage import FLOW

TENANTS = ("amber", "blue")
#: What belongs to no tenant, and everybody may read.
OPEN = {
    "card",
    "worker",
    "claim_level",
    "program",
    "program_source",
    "deployment",
    "deployment_version",
    "log_spool",
}
#: A row of each table for one tenant: `run` and `task` are its own.
ROWS = {
    "loss": "(task, fence, worker, lost_at) values (%(task)s, %(n)s, 'w', now())",
    "lane": "(tenant, name, active) values (%(tenant)s, 'l', %(task)s)",
    "box_card": "(box, seq, cards) values (%(task)s, 0, %(bytes)s)",
    "step": """(run, path, object_type, statement_id, facet_name, state, created_at, changed_at)
        values (%(run)s, '9/x', 'x', 'x', 'x', 'x', now(), now())""",
    "step_tally": """(run, statement_id, facet_name, object_type, state, steps)
        values (%(run)s, 'x', 'x', 'x', 'x', 1)""",
    "step_wait": "(run, on_path, block) values (%(run)s, 'x', 'x')",
    "step_log": "(run, path, line, at) values (%(run)s, 'x', '{}', now())",
    "signal_wait": "(run, call_key, name, key) values (%(run)s, 'x', 'x', 'x')",
    "superseded_result": """(run, path, worker, status, noted_at)
        values (%(run)s, 'x', 'x', 'ok', now())""",
    "agent": """(tenant, id, kind, target, system, models, tools, tags, limits, max_tokens,
        created_at) values (%(tenant)s, 'x', 'model', 'x', '', '{}', '{}', '{}', '{}', 1, now())""",
    "budget": "(tenant, scope, key) values (%(tenant)s, 'agent', 'x')",
    "budget_hold": """(task, tenant, scope, key, number, usd, tokens, model_calls, tool_calls)
        values (%(task)s, %(tenant)s, 'agent', 'x', 1, 0, 0, 0, 0)""",
    "budget_wait": """(task, call_key, tenants, scopes, keys, usd, tokens, model_calls, tool_calls)
        values (%(task)s, 'x', '{}', '{}', '{}', 0, 0, 0, 0)""",
    "usage": """(task, number, run, tenant, model, input, output, cache_read, cache_write, usd,
        price_version, tool_calls, started_at, ended_at)
        values (%(task)s, 1, %(run)s, %(tenant)s, 'x', 1, 1, 0, 0, 1, 'x', 0, now(), now())""",
    "log_stream": """(id, run, path, attempt, name, spool, opened_us, last_us)
        values (%(stream)s, %(run)s, 'x', 1, 'x', 'x', 1, 1)""",
    "log_chunk": """(stream, first_seq, count, kind, level, first_us, last_us, body)
        values (%(stream)s, 1, 1, 0, 1, 1, 1, %(bytes)s)""",
    "server_token": """(id, name, role, tenant, digest, created_at)
        values (%(tenant)s, 'wall ' || %(tenant)s, 'viewer', %(tenant)s, %(digest)s, now())""",
    "server_audit": """(at, subject, role, tenant, action, target, status, detail)
        values (now(), 'x', 'viewer', %(tenant)s, 'x', 'x', 200, '{}')""",
    "server_view": """(id, name, page, query, shared, owner, tenant)
        values (%(tenant)s, 'x', 'x', 'x', true, 'x', %(tenant)s)""",
    "server_job": """(id, verb, form, by, tenant, state, total, done, failures, created_at)
        values (%(tenant)s, 'cancel', '{}', 'x', %(tenant)s, 'done', 0, 0, '[]', now())""",
}
#: Those that runs have filled already.
FILLED = {"task", "call", "run"}


class House:
    """Two tenants in one database, each with a run that waits, and rows in every table."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.web = create_app(backend)
        self.persistence = backend.services.persistence
        kernel = self.persistence.kernel
        assert isinstance(kernel, PostgresStore)
        self.kernel = kernel
        self.database: Database = kernel.database
        with psycopg.connect(str(backend.database)) as connection:
            for table in ROWS:
                connection.execute(f"delete from afl.{table}".encode())
        backend.client.deploy(FLOW)
        self.runs: dict[str, str] = {}
        #: what a person is asked for in the run of a tenant
        self.tasks: dict[str, str] = {}
        self.streams: dict[str, str] = {}
        for tenant in TENANTS:
            made = backend.client.operations.submit(
                "shop.Waits", {}, tenant=tenant, labels={"secret": f"word-of-{tenant}"}
            )
            self.runs[tenant] = made.id
        self._advance()
        for number, tenant in enumerate(TENANTS):
            self._fill(tenant, number)

    def _advance(self) -> None:
        """Has the runs come to where they wait for a person."""
        Driver(self.persistence, lambda _task: None, SystemIds()).drive()
        for task in self.persistence.human_tasks(limit=100):
            self.tasks[task.tenant] = task.id
        assert set(self.tasks) == set(TENANTS)

    def _fill(self, tenant: str, number: int) -> None:
        self.streams[tenant] = SystemIds().new_id()
        values = {
            "tenant": tenant,
            "run": self.runs[tenant],
            "task": self.tasks[tenant],
            "stream": self.streams[tenant],
            "n": number + 1,
            "bytes": bytes(32),
            "digest": tenant.encode(),
        }
        with psycopg.connect(str(self.backend.database)) as connection:
            for table, row in ROWS.items():
                connection.execute(f"insert into afl.{table} {row}".encode(), values)

    def caller(self, role: str, tenant: str) -> TestClient:
        headers = token_for(self.backend, role, tenant, secrets.token_hex(4))
        return TestClient(self.web, headers=headers, raise_server_exceptions=False)

    def rows(self, table: str) -> set[str]:
        """The rows of a table as texts, as far as they may be read now."""
        statement = f"select x::text from afl.{table} x".encode()
        return {row[0] for row in self.database.rows(statement, {})}
