"""What a turn does next: ask the model, or change its rows. Values only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from afl.kernel.model import CallId, CallSpec, CardSpec, Json, Then
from afl.turns.model import ModelRequest, Tool
from afl.turns.transcript import Turn

#: The call of a tool, by its arguments and the key of the call: `Tools.call` of one task. Raises
#: `BadBrief`.
ToolCaller = Callable[[Tool, dict[str, Json], str], CallSpec]


@dataclass(frozen=True, slots=True)
class Changes:
    """One commit of a turn."""

    then: Then
    cards: tuple[CardSpec, ...] = ()
    calls: tuple[CallSpec, ...] = ()
    applied: tuple[CallId, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model.

    `before` is what may be committed first, such as with the reservation of a budget: then go on
    with `grown(turn, before)`. Whoever does not commit it goes on with the turn as it is, and what
    is in it comes with the answer.
    """

    request: ModelRequest
    #: which request of the turn, from 0
    number: int
    before: Changes


@dataclass(frozen=True, slots=True)
class Act:
    """Commit this; the model is not needed for it."""

    changes: Changes


Move = Ask | Act


def grown(turn: Turn, changes: Changes) -> Turn:
    """The turn after a commit."""
    left = tuple(call for call in turn.replies if call.id not in changes.applied)
    return replace(turn, cards=(*turn.cards, *changes.cards), replies=left)
