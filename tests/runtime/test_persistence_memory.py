"""What only the memory store promises: tables that come back, and none left behind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from afl.kernel.errors import BadRequest
from afl.kernel.memory.transaction import MemoryTransaction
from afl.kernel.port import Transaction
from afl.runtime.entities import Run
from afl.runtime.memory_store import MemoryStore
from afl.runtime.persistence import Await, LogLine, Wait
from afl.runtime.step import WorkflowId
from tests.runtime.kept import MemoryKept, changes, step

RUN = WorkflowId("r")


def test_a_dropped_table_comes_back_with_its_transaction() -> None:
    kernel = MemoryStore().kernel

    def fill(transaction: Transaction) -> None:
        assert isinstance(transaction, MemoryTransaction)
        transaction.tables["t"]["a"] = 1

    def drop(transaction: Transaction) -> None:
        assert isinstance(transaction, MemoryTransaction)
        transaction.tables.drop("t")
        transaction.tables.drop("never there")
        transaction.tables["t"]["b"] = 2
        raise RuntimeError("on purpose")

    kernel.commit((), writes=fill)
    with pytest.raises(RuntimeError, match="on purpose"):
        kernel.commit((), writes=drop)
    assert kernel.read_tables(lambda tables: dict(tables["t"])) == {"a": 1}
    assert kernel.read_tables(lambda tables: dict(tables["nothing"])) == {}


def test_tables_cannot_be_dropped_when_the_transaction_is_over() -> None:
    kernel = MemoryStore().kernel
    kept: list[Transaction] = []
    kernel.commit((), writes=kept.append)
    (transaction,) = kept
    assert isinstance(transaction, MemoryTransaction)
    with pytest.raises(BadRequest, match="over"):
        transaction.tables.drop("t")


def test_the_time_of_a_run_is_that_of_its_transaction() -> None:
    kept = MemoryKept()
    seen = []

    def begin(transaction: Transaction) -> None:
        assert isinstance(transaction, MemoryTransaction)
        seen.append(transaction.now)
        kept.store.write_run(transaction, Run(RUN, "p", "w", {}))

    kept.store.kernel.commit((), writes=begin)
    found = kept.store.get_run(RUN)
    assert found is not None
    assert [found.created_at] == seen


def test_a_forgotten_run_leaves_no_table_behind() -> None:
    store = MemoryStore()
    made = changes(step(RUN, ""), step(RUN, "0/y", yields_to=""), step(RUN, "0/z", yields_to="0"))
    made.waits += [Wait("0/y", "1"), Wait("0/z", "1")]
    made.logs.append(LogLine("0/l", {}))
    made.awaits += [Await("0/v", "n", "k"), Await("0/w", "n", "other")]

    def begin(transaction: Transaction) -> None:
        store.write_run(transaction, Run(RUN, "p", "w", {}))
        store.write_changes(transaction, RUN, made)

    store.kernel.commit((), writes=begin)
    store.emit("n", "k", 1)
    assert len(store.match_events()) == 1
    store.settle_event(RUN, "0/v")
    store.kernel.commit((), writes=lambda tx: store.finish_run(tx, RUN, "completed", {}, None))
    assert store.forget_runs(timedelta(0)) == 1
    store.match_events()
    filled = {name for name, rows in store.kernel._tables.items() if rows}
    assert filled == set()
    left = {name for name in store.kernel._tables if RUN in name.split(":") or "\0" in name}
    assert left == set()


def test_a_transaction_of_another_store_is_refused() -> None:
    class Other:
        pass

    with pytest.raises(TypeError, match="not one of the memory store"):
        MemoryStore().write_changes(Other(), RUN, changes())
