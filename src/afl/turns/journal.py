"""The values of a turn's journal: what it notes, step by step. Values only.

`cards` says how they are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from afl.turns.model import Price, Reply

#: Why a turn waits before its next request.
BUSY, BUDGET, BREAKER = "busy", "budget", "breaker"


@dataclass(frozen=True, slots=True)
class Context:
    """How long the context boxes were when the turn began: what comes later is not for it."""

    lengths: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Thought:
    """One answer of the model, with what it was asked and what it cost."""

    #: counts the thoughts of a turn from 0
    number: int
    reply: Reply
    price: Price
    #: the hash of the canonical request
    request: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that was opened for a tool use: of the tool, or of somebody who has to agree."""

    number: int
    index: int
    key: str
    tool: str
    target: str
    tool_call_id: str


class ResultStatus(Enum):
    """How a tool use came out."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELED = "canceled"
    REFUSED = "refused"  # somebody did not agree


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool use came to, as the model is told."""

    number: int
    index: int
    #: the call that was answered; None if the use broke the rules and nothing was called
    key: str | None
    tool: str
    tool_call_id: str
    status: ResultStatus
    content: str
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """The model is told what was wrong with its last answer."""

    text: str
    #: its next answer has to call a tool
    tool_required: bool = False


@dataclass(frozen=True, slots=True)
class Deferred:
    """The next request has to wait."""

    #: how often in a row, from 1
    attempt: int
    #: `busy`, `budget` or `breaker`
    reason: str
    #: how long; None if that is not known
    until_seconds: float | None
    #: the call by which it waits
    key: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an attempt of the turn ended."""

    code: str
    message: str
