"""The least that PostgreSQL can do for a task: insert, claim, complete, driven by pgbench.

Three transactions a cycle, prepared statements, one table with one index, no Python: what remains
is the database itself. A queue can come near this and not beyond it, unless it does less.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import psycopg

_SQL = files("bench").joinpath("sql")
_COUNT = "select count(*) from bare.task where state = 'closed'"
#: pgbench itself needs little; more threads would only take time from the database.
_THREADS = 2


@dataclass(frozen=True, slots=True)
class Bare:
    """A queue of the simplest kind in the database at this URL."""

    url: str
    pgbench: str

    @classmethod
    def create(cls, url: str) -> Bare:
        """Makes its table. Raises `SystemExit` if there is no pgbench."""
        pgbench = shutil.which("pgbench")
        if pgbench is None:
            raise SystemExit("pgbench is not there; it comes with the PostgreSQL server")
        with psycopg.connect(url) as connection:
            connection.execute(_read("bare_schema.sql"))
        return cls(url, pgbench)

    def tasks_per_second(self, clients: int, batch: int, warm_up: int, seconds: int) -> float:
        """One measurement on an empty queue, after a warm-up unless that is 0 seconds."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(_read("bare_reset.sql"))
            if warm_up:
                self._run(clients, batch, warm_up)
            before = _count(connection)
            self._run(clients, batch, seconds)
            return (_count(connection) - before) / seconds

    def _run(self, clients: int, batch: int, seconds: int) -> None:
        script = _read("bare_single.sql" if batch == 1 else "bare_batch.sql")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "cycle.sql")
            # as a literal: a limit that is a parameter would be planned for any number
            file.write_bytes(script.replace(b":batch", str(batch).encode()))
            options = f"-n -M prepared -c {clients} -j {min(clients, _THREADS)} -T {seconds}"
            command = [self.pgbench, *options.split(), "-f", str(file), self.url]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"pgbench failed: {done.stderr.strip()}")


def _read(name: str) -> bytes:
    return _SQL.joinpath(name).read_bytes()


def _count(connection: psycopg.Connection[tuple[int]]) -> int:
    row = connection.execute(_COUNT).fetchone()
    assert row is not None
    return row[0]
