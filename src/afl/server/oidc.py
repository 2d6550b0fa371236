"""Signing in through an identity provider (OpenID Connect): its tokens, checked with its keys."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from time import monotonic
from typing import Any

import httpx
import jwt

from afl.server.errors import IssuerAway, NotSignedIn

_ALGORITHMS = ("RS256", "ES256")
_TIMEOUT_SECONDS = 5.0
#: How long keys are used before the issuer is asked again.
_FRESH_SECONDS = 600.0
#: How long after a look a key that is not known is taken for made up, or its issuer for away.
_LOOK_EVERY_SECONDS = 10.0
_LEEWAY_SECONDS = 30


class Oidc:
    """The tokens of one issuer for one audience. Threads may share one."""

    def __init__(self, issuer: str, audience: str) -> None:
        self._issuer = issuer
        self._audience = audience
        self._lock = threading.Lock()
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._looked: float | None = None
        #: why the last look found nothing
        self._away: str | None = None
        self._places: Mapping[str, Any] = {}

    def place(self, name: str) -> str:
        """A URL of the issuer by its name in the discovery document.

        Raises:
            IssuerAway: it cannot be asked, or has no such place.
        """
        with self._lock:
            if self._looked is None or monotonic() - self._looked > _LOOK_EVERY_SECONDS:
                self._look()
            found = self._places.get(name)
        if not isinstance(found, str):
            raise IssuerAway(
                f"The identity provider {self._issuer} does not say where its {name} is: "
                f"{self._away or 'it is not in its discovery document'}."
            )
        return found

    def claims(self, token: str, audience: str | None = None) -> Mapping[str, Any]:
        """What a token says, if the issuer has signed it for us and its time is not over.

        Args:
            audience: for whom it has to be, if not for programs.

        Raises:
            NotSignedIn: it has not, or it is.
            IssuerAway: the keys of the issuer are needed and cannot be had.
        """
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in _ALGORITHMS:
                raise NotSignedIn("The token is not signed with RS256 or ES256.")
            claims: Mapping[str, Any] = jwt.decode(
                token,
                self._key(header.get("kid")),
                algorithms=list(_ALGORITHMS),
                audience=audience or self._audience,
                issuer=self._issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.ExpiredSignatureError as error:
            raise NotSignedIn("Your sign-in has expired. Sign in again.") from error
        except jwt.InvalidTokenError as error:
            raise NotSignedIn(f"This token is not accepted: {error}") from error
        return claims

    def _key(self, kid: str | None) -> jwt.PyJWK:
        with self._lock:
            age = None if self._looked is None else monotonic() - self._looked
            after = _FRESH_SECONDS if kid in self._keys else _LOOK_EVERY_SECONDS
            if age is None or age > after:
                self._look()
            if kid in self._keys:
                return self._keys[kid]
            if self._away is not None:
                raise IssuerAway(
                    f"The identity provider {self._issuer} cannot be asked for its keys: "
                    f"{self._away}. Try again in a moment."
                )
            raise NotSignedIn("The token is signed with a key that its issuer does not have.")

    def _look(self) -> None:
        """Asks the issuer for its keys; those that are known serve on while it is away."""
        self._looked, self._away = monotonic(), None
        try:
            with httpx.Client(timeout=_TIMEOUT_SECONDS) as client:
                place = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
                found = client.get(place).raise_for_status().json()
                keys = client.get(str(found["jwks_uri"])).raise_for_status().json()
            self._places = found
            self._keys = {key.key_id: key for key in jwt.PyJWKSet.from_dict(keys).keys}
        except (httpx.HTTPError, httpx.InvalidURL, jwt.PyJWTError) as error:
            self._away = str(error)
        except (ValueError, KeyError, TypeError) as error:
            self._away = f"what it answers is no list of keys ({error!r})"
