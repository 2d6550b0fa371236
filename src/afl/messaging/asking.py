"""Asking a database until its answer was heard, and what its errors are for mailboxes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from afl.kernel.errors import KernelError, StoreUnavailable
from afl.messaging.errors import MessageCoordinatorError, MessageRefused

T = TypeVar("T")

#: What a database without the tables of mailboxes is refused with.
NOT_MIGRATED = "the database has no mailboxes yet; `afl db migrate` makes them"
_TRIES = 3
_PAUSE_SECONDS = 0.05


def ask_until_heard(ask: Callable[[bool], T]) -> T:
    """Does an operation, again if its answer was lost; it is told whether this is such a time."""
    for tried in range(_TRIES):
        try:
            return ask(tried > 0)
        except StoreUnavailable as error:
            if tried == _TRIES - 1:
                raise MessageCoordinatorError(
                    f"The mailboxes cannot be reached ({error}). It is not known whether this was "
                    "done; do it again when the database is back: a message with the same "
                    "message_id is not sent twice."
                ) from error
        except KernelError as error:
            raise MessageRefused(str(error)) from error
        threading.Event().wait(_PAUSE_SECONDS * tried)
    raise AssertionError("unreachable")
