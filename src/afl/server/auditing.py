"""The audit trail: what somebody is about to do is written down before it is done.

A route may add to it with `note`: names and ids, never secrets or what a body says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from afl.base.errors import AflError
from afl.kernel.model import Json
from afl.server.access import Caller
from afl.server.errors import NoTrace
from afl.server.store import AuditEntry, ServerStore

#: Whoever signs with a link or a hook instead of a token.
NOBODY = "anonymous"

_LONGEST = 200
#: Parameters of paths that are secrets.
_SECRETS = {("/links/{token}", "token")}

_notes: ContextVar[dict[str, Json] | None] = ContextVar("afl_audit_notes", default=None)


def note(**names: str) -> None:
    """Adds names or ids to the entry of this request; nothing, if it has none."""
    notes = _notes.get()
    if notes is not None:
        notes.update({name: printable(value) for name, value in names.items()})


def printable(text: str) -> str:
    """A text as it can be kept and shown on a line, whatever somebody has sent."""
    shown = text[:_LONGEST]
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in shown)


@dataclass(frozen=True, slots=True)
class Deed:
    """What a request asks for: the route, and what its path names."""

    method: str
    route: str
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """What it is done to, such as `run=… verb=cancel`."""
        return " ".join(f"{name}={self._shown(name)}" for name in self.names)

    def _shown(self, name: str) -> str:
        value = self.names[name]
        if (self.route, name) in _SECRETS:
            return f"#{hashlib.sha256(value.encode()).hexdigest()[:12]}"
        return printable(value)

    def entry(self, caller: Caller | None, status: int = 0) -> AuditEntry:
        action = f"{self.method} {self.route}"
        if caller is None:
            return AuditEntry(NOBODY, "", "", action, self.target, status)
        who = (printable(caller.subject), caller.role.word, caller.tenant)
        return AuditEntry(*who, action, self.target, status)


class Trail:
    """Writes entries. Threads may share one."""

    def __init__(self, store: ServerStore) -> None:
        self._store = store

    def refuse(self, deed: Deed, caller: Caller | None, status: int) -> None:
        """Notes that somebody was refused."""
        self._begin(deed.entry(caller, status))

    def begin(self, deed: Deed, caller: Caller | None) -> int:
        """Notes what is about to be done.

        Raises:
            NoTrace: it cannot be written down, so it must not be done.
        """
        return self._begin(deed.entry(caller))

    def end(self, id: int, status: int, notes: Mapping[str, Json]) -> None:
        """Notes how it ended. If that cannot be written, the status 0 says that it was begun."""
        self._store.end_audit(id, status, notes)

    def _begin(self, entry: AuditEntry) -> int:
        try:
            return self._store.begin_audit(entry)
        except AflError as error:
            raise NoTrace from error


@contextmanager
def taking_notes() -> Iterator[Mapping[str, Json]]:
    """While this lasts, `note` adds to what is answered here."""
    notes: dict[str, Json] = {}
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)
