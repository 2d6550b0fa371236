"""What is read for a tenant, and what is not: told by the text of a statement."""

from __future__ import annotations

import asyncio
import re
import threading
from importlib import import_module

import pytest

from afl.kernel.confining import confined, confined_to
from afl.kernel.postgres.walls import only_reads

PACKAGES = ("kernel", "runtime", "turns", "logs", "server")
#: Neither write rows nor read any.
NO_READS = {
    "lock_box",
    "lock_budgets",
    "lock_migrations",
    "lock_spools",
    "lock_streams",
    "lock_task",
    "notify",
    "tell_chunks",
    "tell_wishes",
    "be_tenant",
    "listen",
    "listen_chunks",
    "listen_wishes",
    "make_history",
    "make_history_schema",
}
_CHANGES = re.compile(rb"insert into|update afl|delete from|afl\.(?!told_|kept_)\w+_v\d+\(")


def statements() -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for package in PACKAGES:
        for name, text in import_module(f"afl.{package}.postgres.statements").SQL.items():
            found[f"{package}.{name}"] = text
    return found


def test_what_calls_no_transaction_and_writes_nothing_is_a_read() -> None:
    doubtful = {
        name.partition(".")[2]
        for name, text in statements().items()
        if not only_reads(text) and _CHANGES.search(text) is None
    }
    assert doubtful <= NO_READS


@pytest.mark.parametrize(
    "name",
    [
        "kernel.get_task",
        "kernel.find_tasks_of_run",
        "kernel.calls_of",
        "kernel.read_box",
        "kernel.why",
        "runtime.get_run",
        "runtime.search_runs",
        "runtime.history",
        "runtime.load",
        "runtime.change_mark",
        "turns.usage",
        "turns.turns_within",
        "logs.bodies",
        "server.tokens",
        "server.audit",
    ],
)
def test_reads(name: str) -> None:
    assert only_reads(statements()[name])


@pytest.mark.parametrize(
    "name",
    [
        "kernel.claim",
        "kernel.stop",
        "kernel.reply",
        "kernel.lock_task",
        "kernel.number_outbox",
        "kernel.be_tenant",
        "runtime.set_pause",
        "runtime.deploy",
        "runtime.finish_run",
        "turns.settle",
        "turns.lock_budgets",
        "logs.lock_streams",
        "server.take_job",
    ],
)
def test_no_reads(name: str) -> None:
    assert not only_reads(statements()[name])


@pytest.mark.parametrize(
    "text",
    [
        b"set role nobody",
        b"create table x ()",
        b"select 1 from afl.task for share",
        b"with gone as (delete from afl.run) select 1",
        b"select afl.stop_v1('x')",
        b"select pg_advisory_xact_lock(1)",
    ],
)
def test_what_may_change_something_is_no_read(text: bytes) -> None:
    assert not only_reads(text)


def test_a_remark_changes_nothing() -> None:
    assert only_reads(b"-- to update later\nselect 1")


def test_the_tenant_is_that_of_the_request_and_of_nothing_else() -> None:
    heard: list[str | None] = []

    async def work() -> None:
        heard.append(await asyncio.to_thread(confined_to))
        other = threading.Thread(target=lambda: heard.append(confined_to()))
        other.start()
        other.join()

    with confined("amber"):
        asyncio.run(work())
        with confined(None):
            heard.append(confined_to())
        heard.append(confined_to())
    heard.append(confined_to())
    assert heard == ["amber", None, None, "amber", None]
