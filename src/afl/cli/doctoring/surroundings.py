"""Checks of this machine and what it can reach: Python, the database, its clock, NATS."""

from __future__ import annotations

import platform
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from afl.app import migrating
from afl.app.engines import MONGO, POSTGRES, known_engine
from afl.app.extras import extra_part
from afl.base.errors import AflError
from afl.cli.errors import CommandError
from afl.cli.running.connection import database_url
from afl.cli.running.tables import short
from afl.cli.terminal import count
from afl.server.checks.findings import Finding, Grade, fail, ok, warn
from afl.server.checks.tenants import check_tenants

OLDEST_PYTHON = (3, 11)
_OLDEST = {"postgres": 15, "mongo": 5}
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
    """Whether the database is there, is new enough, has the schema, keeps tenants apart, and what
    its clock says."""
    if url is None:
        yield warn(
            "database",
            "there is none, so only `afl run` works",
            "export AFL_DATABASE_URL=postgresql://host/name",
        )
        return
    try:
        engine = known_engine(database_url(url))
        version, here, there = (_ask_mongo if engine is MONGO else _ask_postgres)(url)
    except (CommandError, AflError) as error:
        yield fail("database", error.message, _fix(error))
        return
    oldest = _OLDEST[engine.package]
    if version < oldest:
        text = f"{engine.name} {version} is too old"
        yield fail("database", text, f"use {engine.name} {oldest} or later")
    else:
        yield ok("database", f"{engine.name} {version} answers")
    yield check_clock(here, there)
    schema = _schema(url)
    yield schema
    if schema.grade is Grade.OK and engine.has_walls:
        with engine.connect(engine.server, url) as store:
            yield check_tenants(store)


def _fix(error: AflError) -> str:
    if isinstance(error, CommandError) and error.help:
        return error.help
    if error.code == "kernel.not_replicated":
        return "mongod --replSet rs0 …, then once: mongosh --eval 'rs.initiate()'"
    return "start the database, or correct AFL_DATABASE_URL"


#: The version of a server, and the time here and there at one moment.
_Answer = tuple[int, datetime, datetime]


def _ask_mongo(url: str) -> _Answer:
    module = extra_part("afl.kernel.mongo.database", MONGO.extra, "The MongoDB store needs")
    with closing(module.Database(url, timeout_seconds=5.0)) as database:
        database.check()
        version = database.command("buildInfo")["version"]
        before = datetime.now(UTC)
        there = database.now()
        here = before + (datetime.now(UTC) - before) / 2
        return int(version.partition(".")[0]), here, there


def _ask_postgres(url: str) -> _Answer:
    psycopg = extra_part("psycopg", POSTGRES.extra, "The PostgreSQL store needs")
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
        steps = migrating.status(url)
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
