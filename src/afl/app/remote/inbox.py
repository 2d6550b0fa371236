"""What waits for people on a server."""

from __future__ import annotations

from collections.abc import Mapping

from afl.app.remote.http import Connection
from afl.app.remote.reads import listed, mapped, part
from afl.app.remote.records import decode
from afl.kernel.model import Json
from afl.runtime.inbox import InboxItem

_PAGE = 100


class RemoteInbox:
    """See `runtime.inbox.Inbox` for what each method promises. Who answers is who the token is."""

    def __init__(self, connection: Connection) -> None:
        self._http = connection

    def list(
        self, group: str | None = None, *, after: str | None = None, limit: int = _PAGE
    ) -> list[InboxItem]:
        found = self._http.get("/records/inbox", group=group, after=after, limit=limit)
        return [decode(InboxItem, each) for each in listed(found)]

    def get(self, task: str) -> InboxItem:
        return decode(InboxItem, mapped(self._http.get(f"/inbox/{part(task)}")))

    def answer(self, task: str, values: Mapping[str, Json], *, by: str = "") -> None:
        self._http.post(f"/inbox/{part(task)}", {"verb": "answer", "values": dict(values)})

    def reject(self, task: str, reason: str = "", *, by: str = "") -> None:
        self._http.post(f"/inbox/{part(task)}", {"verb": "reject", "reason": reason})
