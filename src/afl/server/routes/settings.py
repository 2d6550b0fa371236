"""The server itself: home, health, who is asking, views, tokens, audit."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from afl.base.system import SystemIds
from afl.server.access import EVERY_TENANT, Admin, EveryOperator, Role, Viewer
from afl.server.auditing import note
from afl.server.backend import Work
from afl.server.errors import BadForm, Missing, NotAllowed, Taken
from afl.server.health import health_of
from afl.server.home import home_view
from afl.server.models.base import Page
from afl.server.models.system import (
    AuditLine,
    Emission,
    Emitted,
    Health,
    Home,
    Me,
    NewToken,
    SavedView,
    SavedViewForm,
    TokenForm,
    TokenView,
)
from afl.server.paging import paged
from afl.server.store import SavedFilter
from afl.server.tokens import new_token, span_of

router = APIRouter(prefix="", tags=["settings"])

_ids = SystemIds()


@router.get("/home")
def home(
    backend: Work,
    caller: Viewer,
) -> Home:
    """What somebody who opens the dashboard has to know first."""
    return home_view(backend, caller)


@router.get("/me")
def me(
    backend: Work,
    caller: Viewer,
) -> Me:
    """Who is asking, and what they may do."""
    can = [role.word for role in Role if role <= caller.role]
    if caller.tenant == EVERY_TENANT:
        can.append("everything")
    return Me(subject=caller.subject, role=caller.role.word, tenant=caller.tenant, can=can)


@router.get("/health")
def health(
    backend: Work,
    caller: Viewer,
) -> Health:
    """What `afl doctor` says of this server."""
    return health_of(backend, caller)


@router.post("/events")
def emit(
    backend: Work,
    caller: EveryOperator,
    form: Emission,
) -> Emitted:
    """Gives an event to a run that waits for it. Events belong to no tenant."""
    note(event=form.name)
    return Emitted(new=backend.client.emit(form.name, form.key, form.payload, id=form.id))


@router.get("/views")
def list_views(
    backend: Work,
    caller: Viewer,
    page: str | None = None,
) -> list[SavedView]:
    """Saved filters: one's own and the shared ones."""
    found = backend.store.views(caller.subject, caller.tenant)
    return [SavedView.model_validate(each) for each in found if page in (None, each.page)]


@router.post("/views", status_code=201)
def save_view(
    backend: Work,
    caller: Viewer,
    form: SavedViewForm,
) -> SavedView:
    """Keeps a filter."""
    if not form.name.strip():
        raise BadForm("A view needs a name.")
    id_ = _ids.new_id()
    view = SavedFilter(
        id_, form.name, form.page, form.query, form.shared, caller.subject, caller.tenant
    )
    backend.store.save_view(view)
    note(view=id_)
    return SavedView.model_validate(view)


@router.delete("/views/{view}", status_code=204)
def delete_view(
    backend: Work,
    caller: Viewer,
    view: str,
) -> None:
    """Forgets a filter of one's own."""
    if not backend.store.delete_view(view, caller.subject):
        raise Missing(f"You have no view {view}.")


@router.get("/tokens")
def list_tokens(
    backend: Work,
    caller: Admin,
) -> list[TokenView]:
    """The tokens, without their secrets."""
    found = (each for each in backend.store.tokens() if caller.sees(each.tenant))
    return [TokenView.model_validate(each) for each in found]


@router.post("/tokens", status_code=201)
def create_token(
    backend: Work,
    caller: Admin,
    form: TokenForm,
) -> NewToken:
    """Makes a token; its secret is told once."""
    if not caller.sees(form.tenant):
        raise NotAllowed(
            f"{caller.subject} is an admin of the tenant {caller.tenant} alone, so it can make no "
            f"tokens for {form.tenant}."
        )
    now = backend.services.persistence.now()
    token, secret = new_token(form.name, form.role, form.tenant, now, span_of(form.expires_in))
    note(token=token.id, name=token.name, role=token.role, tenant=token.tenant)
    if not backend.store.add_token(token):
        raise Taken(f"There is a token {form.name} already. Revoke it first, or use another name.")
    return NewToken(**TokenView.model_validate(token).model_dump(), secret=secret)


@router.delete("/tokens/{token}", status_code=204)
def revoke_token(
    backend: Work,
    caller: Admin,
    token: str,
) -> None:
    """Makes a token worthless."""
    found = next((each for each in backend.store.tokens() if each.id == token), None)
    if found is None or not caller.sees(found.tenant) or not backend.store.revoke_token(token):
        raise Missing(f"There is no token {token}. `afl tokens list` shows those there are.")
    note(name=found.name)


@router.get("/audit")
def audit(
    backend: Work,
    caller: Admin,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[AuditLine]:
    """What was done, and what was refused, the newest first."""
    if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise BadForm("The cursor is none that a page had as `next`.")
    found = backend.store.audit(
        tenant=None if caller.tenant == EVERY_TENANT else caller.tenant,
        before=None if cursor is None else int(cursor),
        limit=limit + 1,
    )
    return paged(found, limit, AuditLine.model_validate, lambda each: str(each.id))
