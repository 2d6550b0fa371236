"""Errors that a server has told of, as what they were there."""

from __future__ import annotations

from collections.abc import Iterator

# so that their errors are known by their codes
import afl.app.errors
import afl.kernel.errors
import afl.runtime.errors
import afl.turns.errors
from afl.base.errors import AflError


class RemoteError(AflError):
    """The server has refused this."""

    code = "app.remote"


class ServerUnavailable(afl.kernel.errors.StoreUnavailable):
    """The server cannot be reached."""

    code = "app.server_unavailable"


class NeedsDatabase(AflError):
    """This needs the database itself, and not a server."""

    code = "app.needs_database"


def error_of(code: str, message: str) -> AflError:
    """The error with this code; one that is not known here is a `RemoteError`."""
    kind = next((each for each in _all(AflError) if each.__dict__.get("code") == code), RemoteError)
    error = kind.__new__(kind)
    # some take more than a message where they are made; what was made there is in the message
    AflError.__init__(error, message)
    return error


def _all(kind: type[AflError]) -> Iterator[type[AflError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _all(each)
