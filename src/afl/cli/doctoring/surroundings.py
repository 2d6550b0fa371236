"""Checks of this machine and what it can reach: Python, the database, its clock, NATS."""

from __future__ import annotations

import platform
import socket
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from afl.base.errors import AflError
from afl.cli.doctoring.findings import Finding, fail, ok, warn
from afl.cli.errors import CommandError
from afl.cli.running.connection import database_url, postgres
from afl.cli.running.tables import short
from afl.cli.terminal import count

OLDEST_PYTHON = (3, 11)
OLDEST_POSTGRES = 15
_NATS_PORT = 4222
_TIMEOUT_SECONDS = 3.0
_SKEW_WARN, _SKEW_FAIL = timedelta(seconds=2), timedelta(seconds=30)


def check_python() -> Finding:
    """Whether this Python is new enough."""
    told = f"Python {platform.python_version()}"
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return ok("python", told)
    wanted = ".".join(map(str, OLDEST_PYTHON))
    return fail("python", f"{told} is too old", f"install Python {wanted} or later")


def check_database(url: str | None) -> Iterator[Finding]:
    """Whether the database is there, is new enough, has the schema, and what its clock says."""
    if url is None:
        yield warn(
            "database",
            "there is none, so only `afl run` works",
            "export AFL_DATABASE_URL=postgresql://host/name",
        )
        return
    try:
        version, here, there = _ask(database_url(url))
    except (CommandError, AflError) as error:
        fix = error.help if isinstance(error, CommandError) and error.help else _REACH
        yield fail("database", error.message, fix)
        return
    if version < OLDEST_POSTGRES:
        text = f"PostgreSQL {version} is too old"
        yield fail("database", text, f"use PostgreSQL {OLDEST_POSTGRES} or later")
    else:
        yield ok("database", f"PostgreSQL {version} answers")
    yield check_clock(here, there)
    yield _schema(url)


_REACH = "start the database, or correct AFL_DATABASE_URL"


def _ask(url: str) -> tuple[int, datetime, datetime]:
    """The version of the server, and the time here and there at one moment."""
    psycopg = postgres("psycopg")
    try:
        with psycopg.connect(url, connect_timeout=5, application_name="afl") as connection:
            before = datetime.now(UTC)
            (there,) = connection.execute("select clock_timestamp()").fetchone()
            here = before + (datetime.now(UTC) - before) / 2
            return connection.info.server_version // 10_000, here, there
    except psycopg.Error as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise CommandError(f"cannot connect to the database: {lines[-1]}") from error


def check_clock(here: datetime, there: datetime) -> Finding:
    """Whether the clocks of two machines agree, as they were at one moment."""
    skew = abs(here - there)
    if skew < _SKEW_WARN:
        return ok("clock", "the clocks of this machine and of the database agree")
    text = f"the clock of this machine is {short(skew)} off the clock of the database"
    grade = fail if skew >= _SKEW_FAIL else warn
    return grade("clock", text, "let NTP set both clocks: `timedatectl set-ntp true`")


def _schema(url: str) -> Finding:
    try:
        steps = postgres("afl.app.migrating").status(url)
    except AflError as error:
        return fail("schema", error.message, "use the version of AgentFlow that made the schema")
    pending = sum(step.applied_at is None for step in steps)
    if pending:
        return fail("schema", f"{count(pending, 'migration')} pending", "afl db migrate")
    return ok("schema", f"up to date, {count(len(steps), 'migration')}")


def check_nats(url: str | None) -> Finding:
    """Whether NATS can be reached, where it is used."""
    if url is None:
        return ok("nats", "not used: workers hear of work through the database")
    parts = urlsplit(url if "://" in url else f"nats://{url}")
    host, port = parts.hostname or "127.0.0.1", parts.port or _NATS_PORT
    try:
        with socket.create_connection((host, port), timeout=_TIMEOUT_SECONDS) as connection:
            greeting = connection.recv(4)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        fix = "start NATS, or correct AFL_NATS_URL; until then workers only poll"
        return fail("nats", f"cannot connect to {host}:{port}: {reason}", fix)
    if greeting != b"INFO":
        return fail("nats", f"what answers at {host}:{port} is not NATS", "correct AFL_NATS_URL")
    return ok("nats", f"{host}:{port} answers")
