"""What MongoDB and its driver mean when they refuse, in the words of the kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pymongo.errors import (
    BulkWriteError,
    ConnectionFailure,
    DocumentTooLarge,
    DuplicateKeyError,
    OperationFailure,
    PyMongoError,
    WTimeoutError,
)

from afl.kernel.errors import BadRequest, KernelError, StoreUnavailable

#: Nobody knows yet whether a transaction was committed.
UNKNOWN = "UnknownTransactionCommitResult"
_DUPLICATE = 11000
#: Said by a server without a replica set when a transaction begins.
_ILLEGAL = 20
#: Shut down, stepped down, interrupted by an operator, unreachable, over its time.
_AWAY = frozenset({6, 7, 50, 64, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436})
#: What the driver says of a member of a replica set that nobody has begun.
_NOT_INITIATED = "server_type: RSGhost"
_TIMEOUTS = re.compile(r" \(configured timeouts: [^)]*\)|, Timeout: .*", re.DOTALL)
#: Said to a user who is not known, or may not do this.
_REFUSED = frozenset({13, 18})
_TRANSIENT = "TransientTransactionError"


class NotReplicated(KernelError):
    """The server has no transactions, on which everything here depends."""

    code = "kernel.not_replicated"


class LostRace(StoreUnavailable):
    """Somebody else is writing the same: at work, or gone without having ended a transaction, which
    whoever meets it ends after some seconds."""


def is_duplicate(error: PyMongoError) -> bool:
    """Whether a write was refused because its key is there already."""
    if isinstance(error, BulkWriteError):
        details: Mapping[str, Any] = error.details or {}
        codes = {each.get("code") for each in details.get("writeErrors", ())}
        return codes == {_DUPLICATE}
    return isinstance(error, DuplicateKeyError)


def is_race(error: PyMongoError) -> bool:
    return error.has_error_label(_TRANSIENT) or is_duplicate(error)


def _reason(error: PyMongoError) -> str:
    """What is wrong, without all that the driver knows of the servers."""
    if _NOT_INITIATED in str(error):
        return (
            "its replica set was never initiated. Run `rs.initiate()` once in the shell of a member"
        )
    return _TIMEOUTS.sub("", str(error))


def translate(error: PyMongoError) -> Exception:
    if isinstance(error, DocumentTooLarge):
        return BadRequest(f"MongoDB cannot store this: {error}")
    if isinstance(error, OperationFailure) and error.code == _ILLEGAL:
        return NotReplicated(
            "This MongoDB has no transactions. Make it a replica set: start it with "
            "`--replSet rs0` and run `rs.initiate()` once in its shell."
        )
    if isinstance(error, OperationFailure) and error.code in _REFUSED:
        return StoreUnavailable(
            f"The database refuses the user of the URL: {error.details and error.details['errmsg']}"
        )
    away = isinstance(error, OperationFailure) and error.code in _AWAY
    if isinstance(error, ConnectionFailure | WTimeoutError) or away:
        return StoreUnavailable(f"The database cannot answer now: {_reason(error)}")
    if is_race(error):
        return LostRace(f"Others are writing the same documents: {error}")
    if error.has_error_label(UNKNOWN):
        return StoreUnavailable(f"The database does not say whether it has committed: {error}")
    return error
