"""What an actor of a simulation says: it sleeps, or it asks the store for something.

An actor is a generator. It yields a number of seconds or an `Ask`, and is handed the answer. At
every yield the scheduler may let others go first, or let something go wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from afl.kernel.errors import StoreUnavailable

T = TypeVar("T")

_RETRY_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Ask:
    """One transaction of the store, to be carried out when the request arrives there."""

    what: str
    call: Callable[[], object]
    #: who and what it is about, for people
    about: object = ""
    #: whether it may arrive a second time, while the one who asked lives on
    echoes: bool = False


#: The life of an actor, or a part of it with a result.
Steps = Generator[float | Ask, Any, T]


class Died(Exception):
    """The work itself kills the process that does it."""


def ask(what: str, call: Callable[[], T], about: object = "", *, echoes: bool = False) -> Steps[T]:
    """Asks until there is an answer: the same request each time, as every worker must."""
    request = Ask(what, call, about, echoes)
    while True:
        try:
            return cast("T", (yield request))
        except StoreUnavailable:
            yield _RETRY_SECONDS
