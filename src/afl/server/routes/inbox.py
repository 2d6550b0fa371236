"""What people are asked for, and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from afl.runtime.errors import UnknownItem
from afl.runtime.inbox import InboxItem
from afl.runtime.step import WorkflowId
from afl.server.access import EVERY_TENANT, Caller, Operator, Role, Viewer
from afl.server.backend import Backend, Work
from afl.server.links import link_token, linked_task
from afl.server.models.agents import Answered, AnswerForm, InboxView
from afl.server.models.base import Page

router = APIRouter(prefix="", tags=["inbox"])

#: Who has answered, when nobody knows more than that they had the link.
_BY_LINK = "somebody with a link"


@router.get("/inbox")
def list_inbox(
    backend: Work,
    caller: Viewer,
    group: str | None = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[InboxView]:
    """What waits for an answer, the oldest first."""
    found = backend.client.inbox().list(group, after=cursor, limit=limit)
    more = found[-1].task if len(found) == limit else None
    return Page(
        items=[_view(backend, item, caller) for item in _seen(backend, caller, found)], next=more
    )


@router.get("/inbox/{task}")
def get_item(backend: Work, caller: Viewer, task: str) -> InboxView:
    """One request."""
    return _view(backend, _item(backend, caller, task), caller)


@router.post("/inbox/{task}")
def answer(backend: Work, caller: Operator, task: str, form: AnswerForm) -> Answered:
    """Answers or rejects. The first one counts."""
    return _answered(backend, _item(backend, caller, task), form, caller.subject)


@router.get("/links/{token}")
def open_link(backend: Work, token: str) -> InboxView:
    """What a signed link asks for; needs no account."""
    item = backend.client.inbox().get(linked_task(backend.store, token))
    return _view(backend, item, None)


@router.post("/links/{token}")
def answer_link(backend: Work, token: str, form: AnswerForm) -> Answered:
    """Answers through a signed link; needs no account."""
    item = backend.client.inbox().get(linked_task(backend.store, token))
    return _answered(backend, item, form, _BY_LINK)


def _item(backend: Backend, caller: Caller, task: str) -> InboxItem:
    item = backend.client.inbox().get(task)
    if not _seen(backend, caller, [item]):
        raise UnknownItem(
            f"Nobody is asked for anything by {task}. `afl inbox list` shows what waits."
        )
    return item


def _seen(backend: Backend, caller: Caller, items: Sequence[InboxItem]) -> list[InboxItem]:
    """Those that belong to the caller's tenant."""
    if caller.tenant == EVERY_TENANT:
        return list(items)
    runs = backend.services.persistence.get_runs([WorkflowId(item.run) for item in items])
    return [
        item
        for item in items
        if (run := runs.get(WorkflowId(item.run))) is not None and caller.sees(run.tenant)
    ]


def _answered(backend: Backend, item: InboxItem, form: AnswerForm, by: str) -> Answered:
    inbox = backend.client.inbox()
    if form.verb == "reject":
        inbox.reject(item.task, form.reason, by=by)
        sentence = f"`{item.title}` was rejected."
    else:
        inbox.answer(item.task, form.values, by=by)
        sentence = f"`{item.title}` was answered, and the run goes on."
    return Answered(task=item.task, run=item.run, sentence=sentence)


def _view(backend: Backend, item: InboxItem, caller: Caller | None) -> InboxView:
    may_share = caller is not None and caller.role >= Role.OPERATOR
    link = f"/answer/{link_token(backend.store, item.task)}" if may_share else None
    return InboxView.model_validate({**item.as_json(), "link": link})
