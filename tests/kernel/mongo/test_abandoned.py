"""Transactions of processes that were killed keep nobody waiting for long."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from pymongo import UpdateOne

from afl.kernel.mongo.database import Database
from afl.kernel.mongo.refusals import LostRace
from afl.kernel.mongo.transaction import MongoTransaction
from tests.architecture.repository import ROOT

#: Less than the minute after which the server ends a transaction.
_PATIENCE_SECONDS = 45.0
_ONE_MORE = UpdateOne({"_id": "one"}, {"$inc": {"n": 1}}, upsert=True)
_PROCESS = """
import sys, time
from afl.kernel.mongo.database import Database
from tests.kernel.mongo.test_abandoned import _ONE_MORE

def work(transaction):
    transaction.update("mark", _ONE_MORE)
    print("there", flush=True)
    time.sleep(600)

Database(sys.argv[1]).transact(work)
"""


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    database = Database(url)
    yield database
    database.collection("mark").delete_many({})
    database.close()


def _count(database: Database) -> int:
    found = database.find_one("mark", {"_id": "one"})
    return 0 if found is None else int(found["n"])


def _write_until_it_works(database: Database) -> float:
    begun = time.monotonic()
    while time.monotonic() < begun + 2 * _PATIENCE_SECONDS:
        try:
            database.transact(lambda transaction: transaction.update("mark", _ONE_MORE))
        except LostRace:
            continue
        break
    return time.monotonic() - begun


@pytest.mark.timeout(150)
def test_what_a_killed_process_was_writing_can_be_written_soon(
    database: Database, url: str
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _PROCESS, url], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    process.kill()
    process.communicate()
    assert _write_until_it_works(database) < _PATIENCE_SECONDS
    assert _count(database) == 1, "what was not committed never was"


@pytest.mark.timeout(150)
def test_a_process_that_was_only_slow_begins_again(database: Database, url: str) -> None:
    slow = Database(url)
    has_written, may_go_on = threading.Event(), threading.Event()
    tries = []

    def work(transaction: MongoTransaction) -> None:
        tries.append(1)
        transaction.update("mark", _ONE_MORE)
        has_written.set()
        may_go_on.wait(2 * _PATIENCE_SECONDS)

    thread = threading.Thread(target=lambda: slow.transact(work))
    thread.start()
    assert has_written.wait(_PATIENCE_SECONDS)
    assert _write_until_it_works(database) < _PATIENCE_SECONDS
    may_go_on.set()
    thread.join()
    slow.close()
    assert len(tries) == 2
    assert _count(database) == 2, "both were done, each once"


def test_whoever_is_at_work_is_left_alone(database: Database) -> None:
    def work(transaction: MongoTransaction) -> None:
        transaction.update("mark", _ONE_MORE)
        threading.Event().wait(0.5)
        database._abandoned.end()

    database.transact(work)
    assert _count(database) == 1
