"""Who is asking, and what they may do. Every route takes one of `Viewer`, `Operator`, `Developer`
and `Admin`, or is open on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Annotated

from fastapi import Depends, Request

from afl.server import tokens
from afl.server.backend import Backend
from afl.server.errors import NotAllowed, NotSignedIn
from afl.server.oidc import Oidc
from afl.server.sessions import Sessions

#: The tenant of callers who work on the whole installation.
EVERY_TENANT = "*"
#: The key of the caller in the state of a request.
CALLER = "afl_caller"

_NOTED_EVERY = timedelta(minutes=1)
_SCHEME = "bearer "


class Role(IntEnum):
    """Each may do what those before it may."""

    VIEWER = 1
    OPERATOR = 2  # retry, cancel, answer, send
    DEVELOPER = 3  # deploy, submit other programs, schedules
    ADMIN = 4  # tokens, audit, settings

    @property
    def word(self) -> str:
        """The role as tokens and claims name it."""
        return self.name.lower()


ROLES: Mapping[str, Role] = {role.word: role for role in Role}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking."""

    subject: str
    role: Role
    tenant: str

    def sees(self, tenant: str) -> bool:
        """Whether what belongs to a tenant is this caller's to see."""
        return self.tenant in (EVERY_TENANT, tenant)

    @property
    def only_tenant(self) -> str | None:
        """The one tenant whose rows are this caller's to see; None if it is every tenant."""
        return None if self.tenant == EVERY_TENANT else self.tenant


#: Everybody, where nobody is asked who they are.
LOCAL = Caller("local", Role.ADMIN, EVERY_TENANT)


class Needs:
    """What a route wants of its caller."""

    def __init__(self, role: Role, *, everything: bool = False) -> None:
        self.role = role
        self.everything = everything

    def check(self, caller: Caller) -> None:
        """
        Raises:
            NotAllowed: the role is too low, or the tenant too narrow.
        """
        if caller.role < self.role:
            raise NotAllowed(
                f"This needs the role {self.role.word}, and {caller.subject} has the role "
                f"{caller.role.word}. Ask an admin for another token."
            )
        if self.everything and caller.tenant != EVERY_TENANT:
            raise NotAllowed(
                f"This concerns the whole installation, and {caller.subject} is of the tenant "
                f"{caller.tenant}. Ask an admin for a token of the tenant `*`."
            )

    def __call__(self, request: Request) -> Caller:
        # who it is was found out before the body was read; here is where it would be noticed if not
        caller = getattr(request.state, CALLER, None)
        if not isinstance(caller, Caller):
            raise NotSignedIn
        self.check(caller)
        return caller


Viewer = Annotated[Caller, Depends(Needs(Role.VIEWER))]
Operator = Annotated[Caller, Depends(Needs(Role.OPERATOR))]
Developer = Annotated[Caller, Depends(Needs(Role.DEVELOPER))]
Admin = Annotated[Caller, Depends(Needs(Role.ADMIN))]
#: For what belongs to no tenant, such as workers: callers who see every tenant.
EveryViewer = Annotated[Caller, Depends(Needs(Role.VIEWER, everything=True))]
EveryOperator = Annotated[Caller, Depends(Needs(Role.OPERATOR, everything=True))]
EveryDeveloper = Annotated[Caller, Depends(Needs(Role.DEVELOPER, everything=True))]


class Access:
    """Finds out who is asking. Threads may share one."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._sessions = Sessions(backend.store)
        settings = backend.settings
        self._oidc = (
            Oidc(settings.oidc_issuer, settings.oidc_audience)
            if settings.oidc_issuer and settings.oidc_audience
            else None
        )

    def identify(self, headers: Mapping[str, str], method: str) -> Caller:
        """The caller of a request with these headers.

        Raises:
            NotSignedIn: there is no token, or it is none of ours, or not any more.
            CrossSite: the page of another site would change something in the name of somebody.
        """
        if not self._backend.auth:
            return LOCAL
        authorization = headers.get("authorization")
        if authorization is None:
            session = self._sessions.whose(headers, method)
            if session is None:
                raise NotSignedIn
            subject, role, tenant = session
            return Caller(subject, ROLES[role], tenant)
        if not authorization.lower().startswith(_SCHEME):
            raise NotSignedIn("The header Authorization has to be `Bearer TOKEN`.")
        secret = authorization[len(_SCHEME) :].strip()
        if secret.startswith(tokens.PREFIX) or self._oidc is None:
            return self._by_token(secret)
        return caller_of(self._oidc.claims(secret))

    def _by_token(self, secret: str) -> Caller:
        store, now = self._backend.store, self._backend.services.persistence.now()
        token = tokens.find(store, secret)
        if token is None:
            raise NotSignedIn("This token is not known here. `afl tokens create` makes one.")
        if token.expires_at is not None and token.expires_at <= now:
            raise NotSignedIn(f"The token {token.name} has expired. `afl tokens create` makes one.")
        if token.last_used_at is None or token.last_used_at <= now - _NOTED_EVERY:
            store.note_use(token.id, now)
        return Caller(token.name, ROLES[token.role], token.tenant)


def caller_of(claims: Mapping[str, object]) -> Caller:
    """Who it is, by what an identity provider says of them.

    Raises:
        NotSignedIn: it does not say enough.
    """
    role, tenant, subject = (claims.get(each) for each in ("afl_role", "afl_tenant", "sub"))
    if not isinstance(role, str) or role not in ROLES:
        raise NotSignedIn(
            "The identity provider gives no role. It has to send the claim `afl_role`: one of "
            f"{', '.join(ROLES)}."
        )
    if tenant is not None and (not isinstance(tenant, str) or not tenant):
        raise NotSignedIn("The claim `afl_tenant` has to be a text.")
    # the prefix keeps apart a person and a token of the same name
    return Caller(f"oidc:{subject}", ROLES[role], tenant or "default")
