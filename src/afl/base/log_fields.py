"""What every line says that is logged while some work is done, such as the run that it is for.

Fields follow the work: a thread, an `asyncio` task or a request has those that were set in it. They
cost next to nothing when nobody writes them down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

Fields = Mapping[str, str | int]

_NONE: Fields = MappingProxyType({})
_current: ContextVar[Fields] = ContextVar("afl_log_fields", default=_NONE)


def current_log_fields() -> Fields:
    """The fields of the work that goes on here."""
    return _current.get()


def add_log_fields(fields: Fields) -> None:
    """Adds fields for the rest of what goes on here, such as a request."""
    _current.set({**_current.get(), **fields})


@contextmanager
def log_fields(fields: Fields) -> Iterator[None]:
    """Adds fields while this lasts."""
    before = _current.set({**_current.get(), **fields})
    try:
        yield
    finally:
        _current.reset(before)
