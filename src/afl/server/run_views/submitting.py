"""Starts runs, and says at once what will keep them from going on."""

from __future__ import annotations

from afl.app.run import span_of
from afl.ir.walking import reached
from afl.kernel.rules import serves
from afl.runtime.calls import EXECUTE
from afl.server.access import EVERY_TENANT, Caller
from afl.server.backend import Backend
from afl.server.models.runs import SubmitForm, Submitted
from afl.server.program_views.declarations import unserved
from afl.server.run_views.lines import run_line

_NAMED = 5


def submit(backend: Backend, caller: Caller, form: SubmitForm) -> Submitted:
    """Starts the run that is asked for, for the tenant of the caller.

    Raises:
        RunError: it cannot be started, for the reason that the message says.
    """
    operations = backend.client.operations
    digest = operations.program(form.program)
    run = operations.submit(
        form.workflow,
        form.inputs,
        program=digest,
        key=form.key,
        conflict=form.conflict,
        labels=form.labels,
        priority=form.priority,
        deadline=span_of(form.deadline),
        tenant="default" if caller.tenant == EVERY_TENANT else caller.tenant,
    )
    return Submitted(run=run_line(backend, run), warnings=_warnings(backend, digest, run.workflow))


def _warnings(backend: Backend, digest: str, workflow: str) -> list[str]:
    """What the run needs and no live worker has."""
    workers = backend.services.persistence.kernel.live_workers()
    warnings = []
    if not any(serves(worker.handlers, EXECUTE) for worker in workers):
        warnings.append("No live worker advances runs. Start one: `afl worker`.")
    program = backend.services.evaluator.plans.get(digest).program
    needed = {facet.name for facet in reached(program, workflow)}
    missing = [name for name in unserved(program, workers) if name in needed]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing[:_NAMED])
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        warnings.append(
            f"No live worker serves {listed}{more}: steps that call them wait. "
            "Start one that does: `afl worker --handlers MODULE`."
        )
    return warnings
