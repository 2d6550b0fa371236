"""API tokens: a secret that is told once, and a digest that is kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from datetime import datetime, timedelta

from afl.base.durations import parse_duration
from afl.base.errors import DurationError
from afl.base.system import SystemIds
from afl.server.errors import BadForm
from afl.server.store import ServerStore, Token

PREFIX = "afl_"
_FORM = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,100}")
_ids = SystemIds()


def new_token(
    name: str, role: str, tenant: str, now: datetime, good_for: timedelta | None = None
) -> tuple[Token, str]:
    """A token that nobody has yet, and its secret.

    Raises:
        BadForm: the name is empty or odd, or it would be worthless from the start.
    """
    if not _NAME.fullmatch(name) or name != name.strip():
        raise BadForm("The name of a token has 1 to 100 characters on one line.")
    if not _NAME.fullmatch(tenant):
        raise BadForm("The tenant of a token has 1 to 100 characters on one line; `*` is all.")
    if good_for is not None and good_for <= timedelta():
        raise BadForm("A token has to be good for some time, such as 90d.")
    secret = PREFIX + secrets.token_urlsafe(32)
    expires_at = None if good_for is None else now + good_for
    return Token(_ids.new_id(), name, role, tenant, digest_of(secret), now, expires_at), secret


def span_of(text: str | None) -> timedelta | None:
    """How long a token is to be good, such as `90d`.

    Raises:
        BadForm: it is no duration.
    """
    if text is None:
        return None
    try:
        return timedelta(milliseconds=parse_duration(text))
    except (DurationError, OverflowError) as error:
        raise BadForm(f"'{text}' is not how long a token can be good: write it as in 90d.") from (
            error
        )


def digest_of(secret: str) -> bytes:
    """What is kept of a secret. It is random enough to need no salt and no slow digest."""
    return hashlib.sha256(secret.encode()).digest()


def find(store: ServerStore, secret: str) -> Token | None:
    """The token with this secret, also one that has expired."""
    if not _FORM.fullmatch(secret):
        return None
    digest = digest_of(secret)
    token = store.find_token(digest)
    # what the index compared leaks nothing of the secret; this is for stores that compare otherwise
    return token if token is not None and hmac.compare_digest(token.digest, digest) else None
