"""What can be watched, and by whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from afl.server.access import EVERY_TENANT, Caller
from afl.server.backend import Backend
from afl.server.errors import BadForm
from afl.server.seeing import seen_run, seen_turn
from afl.turns.feed import agent_of

#: What the model of a turn says, which has no mark.
CHUNKS = "chunks"
#: How often the mark of a topic is read while somebody watches it.
SECONDS = {
    "run": 0.25,
    "turn": 0.25,
    "dev": 0.25,
    "runs": 0.5,
    "inbox": 0.5,
    "workers": 1.0,
    "home": 1.0,
}
_MOST = 50


@dataclass(frozen=True, slots=True)
class Topic:
    """Something that a page shows."""

    kind: str
    #: of what, for runs and turns
    id: str = ""
    #: whose; None for everything that there is
    tenant: str | None = None
    #: whose turn it is, for what its model says
    agent: str = ""

    @property
    def name(self) -> str:
        """As those call it who watch it."""
        return f"{self.kind}:{self.id}" if self.id else self.kind

    @property
    def seconds(self) -> float:
        return SECONDS[self.kind]


def topics_of(backend: Backend, caller: Caller, names: Sequence[str]) -> list[Topic]:
    """The topics of these names, each once.

    Raises:
        BadForm: there is no such topic, or there are too many.
        UnknownRun: the run or the turn is not there, or belongs to another tenant.
    """
    if len(names) > _MOST:
        raise BadForm(f"At most {_MOST} topics can be watched at once.")
    return [_topic(backend, caller, name) for name in dict.fromkeys(names)]


def _topic(backend: Backend, caller: Caller, name: str) -> Topic:
    kind, _, id_ = name.partition(":")
    if kind not in (*SECONDS, CHUNKS) or bool(id_) != (kind in ("run", "turn", CHUNKS)):
        raise BadForm(
            f"There is no topic `{name}`. Use `home`, `runs`, `inbox`, `workers`, `run:ID`, "
            "`turn:ID`, `chunks:ID` or `dev`."
        )
    if kind == CHUNKS:
        task = seen_turn(backend, caller, id_)
        return Topic(kind, task.id, agent=agent_of(task))
    if kind == "run":
        return Topic(kind, seen_run(backend, caller, id_).id)
    if kind == "turn":
        return Topic(kind, seen_turn(backend, caller, id_).id)
    owned = kind in ("inbox", "home") and caller.tenant != EVERY_TENANT
    return Topic(kind, tenant=caller.tenant if owned else None)
