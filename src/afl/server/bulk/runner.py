"""The thread of a server that carries out bulk jobs."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from afl.base.errors import AflError
from afl.kernel.confining import confined
from afl.kernel.errors import StoreUnavailable
from afl.kernel.model import Json
from afl.runtime.errors import UnknownRun
from afl.server.access import EVERY_TENANT
from afl.server.backend import Backend
from afl.server.bulk.jobs import MORE, MOST_FAILURES, failed_count
from afl.server.bulk.selecting import Place, Selection
from afl.server.models.bulk import BulkForm
from afl.server.store import Job

_log = logging.getLogger("afl.server")

#: How long a server that is gone is believed to be at a job.
LEASE_SECONDS = 10.0
_LOOK_SECONDS = 2.0
_NOTE_SECONDS = 0.5
#: How many failures are written again with every run.
_FEW = 50
#: Actions that make a run each time they are done. The others may be done again.
_MAKING = ("retry", "rerun")
#: Behind the place of a run that an action was begun with.
_BEGUN = "?"


class _Lost(Exception):
    """Another server has the job now, or this one ends."""


class BulkRunner:
    """Carries out jobs from `start` to `stop`, one after the other."""

    def __init__(self, backend: Backend, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self._backend = backend
        self._lease = lease_seconds
        self._name = f"server-{secrets.token_hex(8)}"
        self._bell = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="afl-bulk", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ring(self) -> None:
        """Tells that there is a new job."""
        self._bell.set()

    def stop(self) -> None:
        """Ends after the run that it is at. What is left of a job is for another server, or for
        the next life of this one."""
        self._ended.set()
        self._bell.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._ended.is_set():
            try:
                while (job := self._backend.store.take_job(self._name, self._lease)) is not None:
                    self._carry_out(job)
            except _Lost:
                continue
            except StoreUnavailable as error:
                _log.warning("bulk jobs wait for the database: %s", error)
            self._bell.wait(_LOOK_SECONDS)
            self._bell.clear()

    def _carry_out(self, job: Job) -> None:
        doing = _Doing(self._backend, job, self._name, self._lease, self._ended)
        try:
            # as a request of whoever began it would be
            with confined(None if job.tenant == EVERY_TENANT else job.tenant):
                doing.run()
        except (_Lost, StoreUnavailable):
            raise
        except Exception as error:  # noqa: BLE001 - a job that breaks must not break the others
            _log.exception("the bulk job %s cannot go on", job.id)
            doing.give_up(error)


class _Doing:
    """One server at one job."""

    def __init__(
        self, backend: Backend, job: Job, by: str, lease: float, ended: threading.Event
    ) -> None:
        self._backend = backend
        self._job = job
        self._by = by
        self._lease = lease
        self._ended = ended
        self._noted = time.monotonic()
        form = {name: value for name, value in job.form.items() if name != "newest"}
        self._form = BulkForm.model_validate(form)
        self._newest = str(job.form["newest"])

    def run(self) -> None:
        selection = Selection(self._backend, self._form, self._job.tenant)
        for place in selection.places(self._newest, self._resumed()):
            if self._ended.is_set():
                self._note()
                raise _Lost
            self._begin(place)
            self._count(place, self._act(place.run))
        now = self._backend.services.persistence.now()
        self._job = replace(self._job, state="done", finished_at=now)
        self._note()

    def give_up(self, error: Exception) -> None:
        """Ends a job that nobody can carry out."""
        failure = _failure("", "server.error", f"{type(error).__name__}: {error}")
        now = self._backend.services.persistence.now()
        failures = _with(self._job.failures, failure)
        self._job = replace(self._job, state="failed", failures=failures, finished_at=now)
        self._note()

    def _resumed(self) -> Place | None:
        """Where somebody has come to before."""
        cursor = self._job.cursor
        if cursor is None:
            return None
        place = Place.of(cursor.removesuffix(_BEGUN))
        if cursor.endswith(_BEGUN):
            is_making = self._form.verb in _MAKING
            self._count(place, _unsure(place.run) if is_making else self._act(place.run))
        return place

    def _begin(self, place: Place) -> None:
        """Writes down what is about to be done, so that whoever goes on knows of it. Where doing
        it again does no harm, and much would have to be written, not each time."""
        self._job = replace(self._job, cursor=place.text + _BEGUN)
        is_light = len(self._job.failures) < _FEW
        is_due = time.monotonic() - self._noted >= _NOTE_SECONDS
        if is_light or is_due or self._form.verb in _MAKING:
            self._note()

    def _act(self, run: str) -> Mapping[str, Json] | None:
        """What kept the action from being done; None if it was."""
        operations, form = self._backend.client.operations, self._form
        try:
            tenant = operations.get(run).tenant
            if self._job.tenant not in (EVERY_TENANT, tenant):
                raise UnknownRun(f"There is no run {run}.")
            match form.verb:
                case "cancel":
                    operations.cancel(run, reason=form.reason)
                case "pause":
                    operations.pause(run)
                case "resume":
                    operations.resume(run)
                case "retry":
                    operations.retry(run)
                case "rerun":
                    operations.rerun(run)
        except StoreUnavailable:
            raise
        except AflError as error:
            return _failure(run, error.code, error.message)
        return None

    def _count(self, place: Place, failure: Mapping[str, Json] | None) -> None:
        job = replace(self._job, cursor=place.text)
        if failure is None:
            job = replace(job, done=job.done + 1)
        else:
            job = replace(job, failures=_with(job.failures, failure))
        self._job = replace(job, total=max(job.total, job.done + failed_count(job)))

    def _note(self) -> None:
        """Writes how far the job is, if it is still ours."""
        if not self._backend.store.renew_job(self._job.id, self._by, self._lease):
            raise _Lost
        self._backend.store.put_job(self._job)
        self._noted = time.monotonic()


def _failure(run: str, code: str, message: str) -> Mapping[str, Json]:
    return {"run": run, "code": code, "message": message}


def _unsure(run: str) -> Mapping[str, Json]:
    return _failure(
        run,
        "server.unsure",
        "The server ended while it did this, so it may have been done or not. Look at the forks "
        "and the newest runs before you do it again.",
    )


def _with(
    failures: Sequence[Mapping[str, Json]], failure: Mapping[str, Json]
) -> Sequence[Mapping[str, Json]]:
    """The failures and one more; those beyond the cap are only counted."""
    if len(failures) < MOST_FAILURES:
        return [*failures, failure]
    last = failures[-1]
    if last["code"] != MORE:
        return [*failures, {"run": "", "code": MORE, "message": "", "count": 1}]
    count = last["count"]
    assert isinstance(count, int)
    return [*failures[:-1], {**last, "count": count + 1}]
