"""Programs, events from outside, and memos."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta

from afl.ir.codec import loads
from afl.ir.digest import program_hash
from afl.kernel.errors import NotFound
from afl.kernel.model import Json
from afl.kernel.postgres.packing import json_text
from afl.runtime.postgres.core import PostgresCore
from afl.runtime.postgres.rows import dumps
from afl.runtime.run_values import map_in
from afl.runtime.step import WorkflowId


class PostgresPrograms(PostgresCore):
    """See `persistence.Programs` for what each method promises."""

    def save_program(self, text: str) -> str:
        name = program_hash(loads(text))
        self._execute("save_program", {"hash": name, "text": text})
        return name

    def get_program(self, program: str) -> str | None:
        row = self._row("get_program", {"hash": program})
        return None if row is None else row[0]

    def deploy(self, name: str, program: str) -> None:
        if self._row("deploy", {"name": name, "program": program}) is None:
            raise NotFound(f"there is no program {program}; save it before it is deployed")

    def deployed(self, name: str = "default") -> str | None:
        row = self._row("deployed", {"name": name})
        return None if row is None else row[0]

    def deployments(self) -> Mapping[str, str]:
        return dict(self._rows("deployments", {}))

    def newest_programs(self, limit: int) -> Sequence[str]:
        return [program for (program,) in self._rows("newest_programs", {"limit": limit})]


class PostgresSignals(PostgresCore):
    """See `persistence.Signals` for what each method promises."""

    def emit(self, name: str, key: str, payload: Json, *, id: str | None = None) -> bool:
        parameters = {
            "id": secrets.token_hex(16) if id is None else id,
            "name": name,
            "key": key,
            "payload": json_text(payload, "the payload"),
        }
        return self._row("emit", parameters) is not None

    def match_events(self, limit: int = 100) -> list[tuple[WorkflowId, str, Json]]:
        return [
            (run, key, payload)
            for run, key, payload in self._rows("match_events", {"limit": limit})
        ]

    def settle_event(self, run: WorkflowId, call_key: str) -> None:
        self._execute("settle_event", {"run": run, "call_key": call_key})


class PostgresMemos(PostgresCore):
    """See `persistence.Memos` for what each method promises."""

    def get_memo(self, facet: str, key: str) -> Mapping[str, Json] | None:
        row = self._row("get_memo", {"facet": facet, "key": key})
        return None if row is None else row[0]

    def put_memo(
        self, facet: str, key: str, returns: Mapping[str, Json], ttl: timedelta | None
    ) -> None:
        kept = dumps(map_in(returns, "the returns"))
        self._execute("put_memo", {"facet": facet, "key": key, "returns": kept, "ttl": ttl})
