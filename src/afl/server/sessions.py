"""Sessions of browsers: who has signed in stands in a signed cookie, so every server knows it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import timedelta

from itsdangerous import BadSignature, SignatureExpired, URLSafeTimedSerializer
from starlette.requests import cookie_parser

from afl.server.errors import CrossSite, NotSignedIn
from afl.server.headers import SAFE_METHODS
from afl.server.store import ServerStore

#: Who signed in. No script can read it.
SESSION = "afl_session"
#: What has to be sent along to change something; the pages of this server can read it, others not.
CSRF = "afl_csrf"
CSRF_HEADER = "x-afl-csrf"
#: How long a session lasts; then the identity provider is asked again.
LASTS = timedelta(hours=8)

_SALT = "afl.session"


class Sessions:
    """Threads may share one."""

    def __init__(self, store: ServerStore) -> None:
        self._store = store
        self._secret: bytes | None = None

    def begin(self, subject: str, role: str, tenant: str) -> str:
        """What stands in the cookie of somebody."""
        return str(self._serializer().dumps([subject, role, tenant]))

    def whose(self, headers: Mapping[str, str], method: str) -> tuple[str, str, str] | None:
        """Subject, role and tenant of whoever asks; None if there is no session.

        Raises:
            NotSignedIn: there was one, and it is over.
            CrossSite: something would be changed by a page that is not of this server.
        """
        cookie = cookie_parser(headers.get("cookie", "")).get(SESSION)
        if not cookie:
            return None
        try:
            found = self._serializer().loads(cookie, max_age=int(LASTS.total_seconds()))
        except SignatureExpired as error:
            raise NotSignedIn("Your sign-in has expired. Sign in again.") from error
        except BadSignature as error:
            raise NotSignedIn("This session is none of ours. Sign in again.") from error
        if method not in SAFE_METHODS and not self._is_ours(cookie, headers.get(CSRF_HEADER, "")):
            raise CrossSite
        subject, role, tenant = found
        return str(subject), str(role), str(tenant)

    def csrf(self, cookie: str) -> str:
        """What belongs to a session and to no other."""
        return hmac.new(self._key(), f"{CSRF} {cookie}".encode(), hashlib.sha256).hexdigest()

    def _is_ours(self, cookie: str, sent: str) -> bool:
        return hmac.compare_digest(self.csrf(cookie).encode(), sent.encode())

    def _serializer(self) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._key(), salt=_SALT)

    def _key(self) -> bytes:
        if self._secret is None:
            self._secret = self._store.secret()
        return self._secret
