"""What the server refuses before anything is done.

AflError
└── ServerError
    ├── NotSignedIn     nobody knows who asks
    ├── NotAllowed      who asks may not do this
    ├── Missing         what a request names is not there
    ├── Taken           a name is in use
    ├── BadForm         what a request says makes no sense
    ├── TooMany         somebody asks too often
    ├── TooLarge        a body is too large
    ├── WrongHost       a request is for a host that this server is not
    ├── CrossSite       a page of another site asks
    ├── CannotServe     the server cannot be started like this
    ├── IssuerAway      the identity provider cannot be asked for its keys
    └── NoTrace         what was asked could not be written down, so it was not done
"""

from __future__ import annotations

from afl.base.errors import AflError


class ServerError(AflError):
    """The server cannot do this."""

    code = "server"


class NotSignedIn(ServerError):
    """This needs a token. Send one as `Authorization: Bearer TOKEN`; `afl tokens create` makes
    one."""

    code = "server.not_signed_in"


class NotAllowed(ServerError):
    """You may not do this."""

    code = "server.not_allowed"


class Missing(ServerError):
    """There is no such thing."""

    code = "server.missing"


class Taken(ServerError):
    """This name is in use. Choose another one."""

    code = "server.taken"


class BadForm(ServerError):
    """The request makes no sense."""

    code = "server.bad_form"


class TooMany(ServerError):
    """Too many requests. Wait a moment, then try again."""

    code = "server.too_many"
    retryable = True

    def __init__(self, message: str | None = None, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        #: after how many seconds to ask again
        self.retry_after = retry_after


class TooLarge(ServerError):
    """The body of the request is too large."""

    code = "server.too_large"


class WrongHost(ServerError):
    """This server answers only as localhost, because it asks nobody who they are. Open it under
    localhost, or start it without --no-auth."""

    code = "server.wrong_host"


class CrossSite(ServerError):
    """A page of another site may not change anything here."""

    code = "server.cross_site"


class CannotServe(ServerError):
    """The server cannot be started like this."""

    code = "server.cannot_serve"


class IssuerAway(ServerError):
    """The identity provider cannot be reached. Try again in a moment."""

    code = "server.issuer_away"
    retryable = True


class NoTrace(ServerError):
    """The audit trail cannot be written now, so nothing was done. Try again when the database is
    back."""

    code = "server.no_trace"
    retryable = True
