"""For what is kept beside the kernel's rows: its tables, in the store's transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from afl.kernel.memory.store import MemoryStore
from afl.kernel.memory.transaction import MemoryTransaction
from afl.kernel.port import Transaction

T = TypeVar("T")


def opened(transaction: Transaction) -> MemoryTransaction:
    """The transaction, which must be one of the memory store."""
    if not isinstance(transaction, MemoryTransaction):
        raise TypeError("the transaction is not one of the memory store")
    return transaction


def write_tables(kernel: MemoryStore, work: Callable[[MemoryTransaction], T]) -> T:
    """What `work` answers, in a transaction of its own."""
    answers: list[T] = []
    kernel.commit((), writes=lambda each: answers.append(work(opened(each))))
    return answers[0]
