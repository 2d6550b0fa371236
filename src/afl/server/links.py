"""Signed links: whoever has one may answer one request, without an account, until it ends."""

from __future__ import annotations

from datetime import timedelta

from itsdangerous import BadSignature, SignatureExpired, URLSafeTimedSerializer

from afl.server.errors import Missing
from afl.server.store import ServerStore

_SALT = "afl.inbox.link"
_GOOD_FOR = timedelta(days=30)


class BadLink(Missing):
    """This link is not one of ours, or was cut off on its way. Ask for a new one."""

    code = "server.bad_link"


class OldLink(Missing):
    """This link is too old to be used. Ask for a new one."""

    code = "server.old_link"


def link_token(store: ServerStore, task: str) -> str:
    """What stands in a link that answers this request."""
    return str(_serializer(store).dumps(task))


def linked_task(store: ServerStore, token: str) -> str:
    """The request that a link is for.

    Raises:
        BadLink: nobody here has signed it. OldLink: its time is over.
    """
    try:
        return str(_serializer(store).loads(token, max_age=int(_GOOD_FOR.total_seconds())))
    except SignatureExpired as error:
        raise OldLink from error
    except BadSignature as error:
        raise BadLink from error


def _serializer(store: ServerStore) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(store.secret(), salt=_SALT)
