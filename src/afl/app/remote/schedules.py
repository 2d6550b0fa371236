"""The schedules of a server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from afl.app.remote.http import Connection
from afl.app.remote.reads import listed, part
from afl.app.remote.records import decode
from afl.kernel.model import Json
from afl.runtime.schedule import Firing, Schedule
from afl.runtime.scheduling.service import Backfilled

_PAGE = 100


class RemoteSchedules:
    """See `runtime.scheduling.service.Scheduling` for what each method promises."""

    def __init__(self, connection: Connection) -> None:
        self._http = connection

    def get(self, name: str) -> Schedule:
        return decode(Schedule, self._http.get(f"/records/schedules/{part(name)}"))

    def list(self, *, after: str | None = None, limit: int = _PAGE) -> Sequence[Schedule]:
        found = self._http.get("/records/schedules", after=after, limit=limit)
        return [decode(Schedule, each) for each in listed(found)]

    def next(self, name: str, count: int = 5) -> Sequence[datetime]:
        found = self._http.get(f"/records/schedules/{part(name)}/next", count=count)
        return [decode(datetime, each) for each in listed(found)]

    def history(self, name: str, limit: int = _PAGE) -> Sequence[Firing]:
        return self._firings(name, limit=limit)

    def last_run(self, name: str) -> str | None:
        found = self._firings(name, started=True, limit=1)
        return found[0].run if found else None

    def create(self, schedule: Schedule, *, replace_it: bool = False) -> Schedule:
        times = schedule.times
        form: dict[str, Json] = {
            "name": schedule.name,
            "workflow": schedule.workflow,
            "inputs": dict(schedule.inputs),
            "program": schedule.program,
            "cron": times.cron,
            "every": _span(times.every),
            "at": _moment(times.at),
            "zone": times.zone,
            "jitter": _span(times.jitter or None),
            "overlap": schedule.overlap.value,
            "catch_up": schedule.catch_up.value,
            "catch_up_within": _span(schedule.catch_up_within),
            "start": _moment(times.start),
            "end": _moment(times.end),
            "replace": replace_it,
        }
        self._http.post("/schedules", form)
        return self.get(schedule.name)

    def pause(self, name: str) -> Schedule:
        self._http.post(f"/schedules/{part(name)}/pause")
        return self.get(name)

    def resume(self, name: str) -> Schedule:
        self._http.post(f"/schedules/{part(name)}/resume")
        return self.get(name)

    def delete(self, name: str) -> None:
        self._http.delete(f"/schedules/{part(name)}")

    def trigger(self, name: str) -> Firing:
        self._http.post(f"/schedules/{part(name)}/trigger")
        return self._firings(name, started=True, limit=1)[0]

    def backfill(
        self, name: str, start: datetime, end: datetime, *, dry_run: bool = False
    ) -> Backfilled:
        form: dict[str, Json] = {"since": start.isoformat(), "until": end.isoformat()}
        path = f"/records/schedules/{part(name)}/backfill"
        return decode(Backfilled, self._http.post(path, form, dry_run=dry_run))

    def _firings(self, name: str, *, started: bool = False, limit: int) -> Sequence[Firing]:
        path = f"/records/schedules/{part(name)}/firings"
        found = self._http.get(path, started=started, limit=limit)
        return [decode(Firing, each) for each in listed(found)]


def _span(span: timedelta | None) -> str | None:
    return None if span is None else f"{span // timedelta(milliseconds=1)}ms"


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
