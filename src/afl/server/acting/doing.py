"""Actions on runs, one at a time."""

from __future__ import annotations

import json
import shlex

from afl.runtime.entities import Run
from afl.runtime.states import RunState
from afl.runtime.step import ROOT
from afl.server.access import Caller
from afl.server.acting.telling import Told, Wish, is_open, told, waiting_facet
from afl.server.backend import Backend
from afl.server.models.runs import ActionForm, ActionResult
from afl.server.run_views.lines import run_line
from afl.server.seeing import seen_run

_AGAIN = ("retry", "rerun", "fork")
_FAILED = "It was failed by a request."


def act(
    backend: Backend, caller: Caller, run: str, verb: str, form: ActionForm, *, dry_run: bool
) -> ActionResult:
    """Does something to a run or a step of it, or only says what would happen.

    Raises:
        UnknownRun: there is no such run, or it belongs to another tenant.
        AflError: it cannot be done; the message says what to do instead.
    """
    wish = Wish(backend, seen_run(backend, caller, run), verb, form)
    before = told(wish)
    command = _command(wish)
    if dry_run:
        return ActionResult(
            done=False,
            dry_run=True,
            sentence=before.sentence,
            run=run_line(backend, wish.run),
            reused=before.reused,
            command=command,
        )
    done, after, sentence = _do(wish, before)
    return ActionResult(
        done=done,
        dry_run=False,
        sentence=sentence,
        run=run_line(backend, after),
        reused=before.reused,
        command=command,
    )


def _do(wish: Wish, before: Told) -> tuple[bool, Run, str]:
    """Whether something has changed, the run to look at, and what became of it."""
    if wish.verb in _AGAIN:
        made = _again(wish)
        return True, made, f"Run {made.id} was started. {before.sentence}"
    if wish.verb in ("cancel", "pause", "resume"):
        return _change(wish, before)
    return _answer(wish, before)


def _again(wish: Wish) -> Run:
    operations, run, form = wish.backend.client.operations, wish.run.id, wish.form
    match wish.verb:
        case "retry":
            return operations.retry(run, form.step, force=form.force)
        case "rerun":
            return operations.rerun(run, program=form.program)
        case _:
            return operations.fork(run, form.step or ROOT, form.values, force=form.force)


def _change(wish: Wish, before: Told) -> tuple[bool, Run, str]:
    operations, run = wish.backend.client.operations, wish.run.id
    is_new = wish.run.pause_requested is not (wish.verb == "pause")
    match wish.verb:
        case "cancel":
            is_new = wish.run.state != RunState.CANCELED
            after = operations.cancel(run, force=wish.form.force, reason=wish.form.reason)
            if after.state != RunState.CANCELED:
                return True, after, "The run was told to stop; its worker lets go of it first."
        case "pause":
            after = operations.pause(run)
        case _:
            after = operations.resume(run)
    words = {"cancel": "canceled", "pause": "paused", "resume": "resumed"}
    return is_new, after, f"The run was {words[wish.verb]}." if is_new else before.sentence


def _answer(wish: Wish, before: Told) -> tuple[bool, Run, str]:
    operations, run, step = wish.backend.client.operations, wish.run.id, wish.step
    waiting_facet(wish)
    if not is_open(wish):
        return False, wish.run, before.sentence
    match wish.verb:
        case "skip":
            done = operations.skip(run, step)
        case "continue":
            done = operations.continue_step(run, step, wish.form.values or {})
        case _:
            message = wish.form.reason or _FAILED
            done = operations.fail_step(run, step, message, wish.form.error_type)
    if not done:
        # somebody else was faster
        return False, operations.get(run), f"`{step}` had its answer already; nothing was changed."
    words = {"skip": "skipped", "continue": "given its result", "fail": "failed"}
    return True, operations.get(run), f"`{step}` was {words[wish.verb]}."


def _command(wish: Wish) -> str:
    """What does the same in a terminal."""
    run, verb, form = wish.run.id, wish.verb, wish.form
    words = ["afl", "runs", verb, run]
    force = ["--force"] if form.force else []
    match verb:
        case "cancel":
            words += [*force, *(["--reason", form.reason] if form.reason else [])]
        case "retry":
            words += [*(["--step", form.step] if form.step else []), *force]
        case "fork":
            words += ["--from", form.step] if form.step else []
            for name, value in (form.values or {}).items():
                words += ["--input", f"{name}={_text(value)}"]
            words += force
        case "skip" | "continue" | "fail":
            body = form.model_dump(mode="json", exclude_defaults=True)
            header = "content-type: application/json"
            address = f"$AFL_SERVER/api/v1/runs/{run}/actions/{verb}"
            data = shlex.quote(json.dumps(body, ensure_ascii=False))
            return f'curl -X POST "{address}" -H {shlex.quote(header)} -d {data}'
    return shlex.join(words)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
