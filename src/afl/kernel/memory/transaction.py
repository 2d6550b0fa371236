"""One transaction at a time, each undone if it fails, and the tables that callers may write to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from afl.kernel.errors import BadRequest

_MISSING = object()
_EMPTY: Mapping[str, Any] = MappingProxyType({})


class Journal:
    """What the open transaction has done, in the order in which it did it."""

    __slots__ = ("_undo", "is_open")

    def __init__(self) -> None:
        self.is_open = False
        self._undo: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def begin(self) -> None:
        if self.is_open:
            raise BadRequest(
                "the store is asked for a transaction from inside another one; use the transaction "
                "that `writes` is handed"
            )
        self.is_open = True

    def record(self, undo: Callable[..., Any], *arguments: Any) -> None:  # noqa: ANN401 - of undo
        """Notes how to take back what was just done."""
        self._undo.append((undo, arguments))

    def end(self, *, keep: bool) -> None:
        """Closes the transaction; unless it is kept, everything goes back to where it was."""
        undo, self._undo = self._undo, []
        try:
            if not keep:
                for step, arguments in reversed(undo):
                    step(*arguments)
        finally:
            self.is_open = False


class Table(MutableMapping[str, Any]):
    """A map that a transaction writes to. Values count as fixed: replace, do not change them."""

    __slots__ = ("_journal", "_rows")

    def __init__(self, journal: Journal, rows: dict[str, Any]) -> None:
        self._journal = journal
        self._rows = rows

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - what the caller put there
        return self._rows[key]

    def __setitem__(self, key: str, value: Any) -> None:  # noqa: ANN401
        self._write(key, value)

    def __delitem__(self, key: str) -> None:
        if key not in self._rows:
            raise KeyError(key)
        self._write(key, _MISSING)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def _write(self, key: str, value: object) -> None:
        if not self._journal.is_open:
            raise BadRequest("the transaction of this table is over; `writes` must not keep it")
        self._journal.record(self._put, key, self._rows.get(key, _MISSING))
        self._put(key, value)

    def _put(self, key: str, value: object) -> None:
        if value is _MISSING:
            self._rows.pop(key, None)
        else:
            self._rows[key] = value


class Tables:
    """The tables by name. Each is there as soon as it is asked for."""

    __slots__ = ("_data", "_journal")

    def __init__(self, journal: Journal, data: dict[str, dict[str, Any]]) -> None:
        self._journal = journal
        self._data = data

    def __getitem__(self, name: str) -> Table:
        return Table(self._journal, self._data.setdefault(name, {}))

    def drop(self, name: str) -> None:
        """Removes a table with all that is in it. A `Table` got before is of no use afterwards."""
        if not self._journal.is_open:
            raise BadRequest("the transaction of these tables is over; `writes` must not keep it")
        rows = self._data.pop(name, None)
        if rows is not None:
            self._journal.record(self._data.__setitem__, name, rows)


class TablesView:
    """The tables by name, for reading."""

    __slots__ = ("_data",)

    def __init__(self, data: Mapping[str, Mapping[str, Any]]) -> None:
        self._data = data

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        return self._data.get(name, _EMPTY)


class MemoryTransaction:
    """What `writes` is handed: named tables, committed or rolled back with the rest, and the
    transaction's time."""

    __slots__ = ("now", "tables")

    def __init__(self, tables: Tables, now: datetime) -> None:
        self.tables = tables
        self.now = now
