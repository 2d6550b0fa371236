"""Whose rows are read. The server says it for each request; a store that can hides the rest.

Nothing relies on it alone: it is a second wall, for the day on which a check of the first is
forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_tenant: ContextVar[str | None] = ContextVar("afl_tenant", default=None)


@contextmanager
def confined(tenant: str | None) -> Iterator[None]:
    """What is read within shows the rows of this tenant alone; None is for those of all.

    What is written is not touched by it: whoever writes has read before what it is about.
    """
    before = _tenant.set(tenant)
    try:
        yield
    finally:
        _tenant.reset(before)


def confined_to() -> str | None:
    """The tenant whose rows are read now; None if it is those of all."""
    return _tenant.get()
