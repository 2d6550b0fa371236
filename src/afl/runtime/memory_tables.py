"""What the parts of the memory store share: tables that are part of the kernel's transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from afl.kernel import memory
from afl.kernel.machine.copies import json_out
from afl.kernel.memory.tables import write_tables
from afl.kernel.memory.transaction import MemoryTransaction, Tables, TablesView
from afl.kernel.model import Json
from afl.runtime.kernel_queue import KernelQueue

T = TypeVar("T")

#: The table of runs by id.
RUNS = "run"


def step_table(run: str) -> str:
    """The name of the table of a run's steps, by path."""
    return f"step:{run}"


class MemoryTables(KernelQueue[memory.MemoryStore]):
    """Transactions and reads on the kernel's store."""

    def _write(self, work: Callable[[MemoryTransaction], T]) -> T:
        return write_tables(self._kernel, work)

    def _read(self, work: Callable[[TablesView], T]) -> T:
        return self._kernel.read_tables(work)


class Lists:
    """A table of lists of texts, each list a table of its own, so that adding to one costs the same
    whatever it has."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def add(self, tables: Tables, key: str, item: str) -> None:
        items = tables[self._of(key)]
        if not items:
            tables[self._name][key] = True
        items[item] = True

    def read(self, tables: TablesView, key: str) -> list[str]:
        """The items in their order."""
        return sorted(tables[self._of(key)])

    def drop(self, tables: Tables) -> None:
        for key in tables[self._name]:
            tables.drop(self._of(key))
        tables.drop(self._name)

    def _of(self, key: str) -> str:
        return f"{self._name}:{key}"


def map_out(value: Mapping[str, Json]) -> dict[str, Json]:
    """A copy of a map that is stored."""
    return {key: json_out(item) for key, item in value.items()}
