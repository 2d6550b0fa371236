"""Signed web hooks that start runs."""

from __future__ import annotations

from fastapi import APIRouter, Request

from afl.server.access import EveryDeveloper, EveryViewer
from afl.server.backend import Backend, Work
from afl.server.bodies import RawBody, takes
from afl.server.hooking import HookTaken, UnknownHook, delivery_id, new_secret, start_run
from afl.server.models.agents import Hook, HookForm, HookRun, NewHook
from afl.server.store import WebHook

router = APIRouter(prefix="", tags=["hooks"])


@router.get("/hooks")
def list_hooks(backend: Work, caller: EveryViewer) -> list[Hook]:
    """The web hooks."""
    return [_view(each) for each in backend.store.hooks()]


@router.post("/hooks", status_code=201)
def create_hook(backend: Work, caller: EveryDeveloper, form: HookForm) -> NewHook:
    """Makes a web hook; its secret is told once."""
    hook = WebHook(form.name, form.workflow, form.program, new_secret())
    if not backend.store.add_hook(hook):
        raise HookTaken(f"There is a web hook {form.name} already. Choose another name.")
    return NewHook(**_view(hook).model_dump(), secret=hook.secret)


@router.delete("/hooks/{name}", status_code=204)
def delete_hook(backend: Work, caller: EveryDeveloper, name: str) -> None:
    """Removes a web hook."""
    if not backend.store.delete_hook(name):
        raise _unknown(name)


@router.post(
    "/hooks/{name}/call",
    status_code=202,
    openapi_extra=takes("application/json", {"type": "object"}),
)
def call_hook(
    backend: Work,
    name: str,
    request: Request,
    body: RawBody,
) -> HookRun:
    """Starts a run, for whoever signs with the secret of the hook.

    The same delivery id starts one run.
    """
    hook = _hook(backend, name)
    delivery = delivery_id(hook, request.headers, body)
    return HookRun(run=start_run(backend, hook, delivery, body))


def _hook(backend: Backend, name: str) -> WebHook:
    found = backend.store.hook(name)
    if found is None:
        raise _unknown(name)
    return found


def _unknown(name: str) -> UnknownHook:
    return UnknownHook(f"There is no web hook {name}. `afl hooks list` shows those there are.")


def _view(hook: WebHook) -> Hook:
    return Hook(
        name=hook.name,
        workflow=hook.workflow,
        program=hook.program,
        path=f"/api/v1/hooks/{hook.name}/call",
    )
