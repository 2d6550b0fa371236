"""Bulk jobs: what one would do, starting it, and how far it is."""

from __future__ import annotations

from itertools import islice

from afl.base.system import SystemIds
from afl.kernel.model import Json
from afl.runtime.run_search import RunFilter
from afl.runtime.step import WorkflowId
from afl.server.access import Caller
from afl.server.backend import Backend
from afl.server.bulk.selecting import Selection
from afl.server.errors import BadForm, Missing
from afl.server.models.base import Page
from afl.server.models.bulk import (
    BulkFailure,
    BulkFilter,
    BulkForm,
    BulkJob,
    BulkLine,
    BulkPreview,
)
from afl.server.paging import is_id
from afl.server.run_views.lines import run_lines
from afl.server.store import Job

#: How many failures a job notes; of more only the number.
MOST_FAILURES = 1000
MORE = "more"
_SAMPLE = 5
_MOST_RUNS = 10_000
#: How many of the runs that were named a job tells.
_TOLD_RUNS = 1000
_IDS = SystemIds()
#: Comes after every id.
_LAST = "g"

_VERBS = {
    "cancel": ("Cancels", "What they have called is canceled with them."),
    "pause": ("Pauses", "What workers have begun goes on to its end."),
    "resume": ("Resumes", "Nothing that is done is done again."),
    "retry": ("Retries", "Each is a new run that takes over what was finished."),
    "rerun": ("Starts anew", "Each is a new run with the same inputs; the old ones stay."),
}


def preview(backend: Backend, caller: Caller, form: BulkForm) -> BulkPreview:
    """Which runs an action would be done to."""
    _check(form)
    selection = Selection(backend, form, caller.tenant)
    matching, exact = selection.count()
    ids = [WorkflowId(each.run) for each in islice(selection.places(_LAST), _SAMPLE)]
    known = backend.services.persistence.get_runs(ids)
    runs = [known[each] for each in ids if each in known and caller.sees(known[each].tenant)]
    verb, rest = _VERBS[form.verb]
    if not matching:
        sentence = "No run matches that this would change."
    else:
        many = f"{'' if exact else 'more than '}{matching:,} run{'' if matching == 1 else 's'}"
        sentence = f"{verb} {many}. {rest} Runs that are made from now on are left alone."
    return BulkPreview(
        matching=matching, exact=exact, sample=run_lines(backend, runs), sentence=sentence
    )


def start(backend: Backend, caller: Caller, form: BulkForm) -> BulkJob:
    """Starts a job; a server takes it up."""
    _check(form)
    persistence = backend.services.persistence
    total, _ = Selection(backend, form, caller.tenant).count()
    newest = persistence.search_runs(RunFilter(), limit=1)
    kept: dict[str, Json] = form.model_dump(mode="json")
    job = Job(
        id=_IDS.new_id(),
        verb=form.verb,
        form={**kept, "newest": newest[0].id if newest else ""},
        by=caller.subject,
        tenant=caller.tenant,
        state="running",
        total=total,
        done=0,
        failures=(),
        created_at=persistence.now(),
    )
    backend.store.put_job(job)
    return job_view(job)


def get(backend: Backend, caller: Caller, id: str) -> BulkJob:
    """One job.

    Raises:
        Missing: there is none of this id, or it belongs to another tenant.
    """
    job = backend.store.job(id)
    if job is None or not caller.sees(job.tenant):
        raise Missing(f"There is no bulk action {id}. The list of them shows those there are.")
    return job_view(job)


def listed(backend: Backend, caller: Caller, cursor: str | None, limit: int) -> Page[BulkLine]:
    """The jobs that a caller may see, the newest first."""
    found: list[Job] = []
    while len(found) <= limit:
        page = backend.store.jobs(before=cursor, limit=limit + 1)
        found += [job for job in page if caller.sees(job.tenant)]
        if len(page) <= limit:
            break
        cursor = page[-1].id
    shown = found[:limit]
    following = shown[-1].id if len(found) > limit else None
    return Page[BulkLine](items=[job_line(job) for job in shown], next=following)


def failed_count(job: Job) -> int:
    """How many runs a job was refused for."""
    more = sum(_number(each.get("count")) for each in job.failures if each["code"] == MORE)
    return more + sum(1 for each in job.failures if each["code"] != MORE)


def job_line(job: Job) -> BulkLine:
    """A job as a list tells it."""
    named = _named(job)
    asked = {name: job.form[name] for name in BulkFilter.model_fields if name in job.form}
    return BulkLine(
        id=job.id,
        verb=job.verb,
        state=job.state,
        filter=BulkFilter.model_validate(asked) if named is None else None,
        named=len(named or ()),
        reason=str(job.form.get("reason") or ""),
        total=job.total,
        done=job.done,
        failed=failed_count(job),
        by=job.by,
        created_at=job.created_at,
        finished_at=job.finished_at,
    )


def job_view(job: Job) -> BulkJob:
    """A job as its own page tells it."""
    line = job_line(job)
    return BulkJob(
        **{name: getattr(line, name) for name in BulkLine.model_fields},
        runs=(_named(job) or [])[:_TOLD_RUNS],
        failures=[
            BulkFailure(run=str(each["run"]), code=str(each["code"]), message=str(each["message"]))
            for each in job.failures
            if each["code"] != MORE
        ],
    )


def _named(job: Job) -> list[str] | None:
    """The runs that were named; None if a filter was."""
    runs = job.form.get("runs")
    return list(dict.fromkeys(map(str, runs))) if isinstance(runs, list) else None


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _check(form: BulkForm) -> None:
    for name, moment in (("since", form.since), ("until", form.until)):
        if moment is not None and moment.tzinfo is None:
            raise BadForm(f"`{name}` needs a time zone, as in 2027-01-31T09:00:00Z.")
    if form.runs is None:
        return
    if len(form.runs) > _MOST_RUNS:
        raise BadForm(f"Name at most {_MOST_RUNS} runs, or use a filter instead.")
    for run in form.runs:
        if not is_id(run):
            raise BadForm(f"`{run}` is not the id of a run.")
    given = form.model_dump(exclude={"verb", "runs", "reason"}, exclude_defaults=True)
    if given:
        raise BadForm(f"Give `runs` or a filter, not both: leave out {', '.join(given)}.")
