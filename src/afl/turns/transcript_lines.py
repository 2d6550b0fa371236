"""A turn as people read it: who said or did what, in order. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from afl.turns.cards import Entry, read
from afl.turns.deliverable import plain_text
from afl.turns.errors import BadBrief
from afl.turns.journal import (
    Deferred,
    Note,
    Problem,
    ResultStatus,
    Thought,
    ToolCall,
    ToolResult,
)
from afl.turns.model import Deliverable, Text, Thinking, ToolUse
from afl.turns.templates import render
from afl.turns.transcript import Turn, context_text


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that somebody said or did."""

    #: `context`, `instruction`, `agent`, `thinking`, `tool`, `note`, `wait`, `error`, `deliverable`
    who: str
    text: str
    #: the thought that it belongs to; None for what comes before the first
    number: int | None = None
    #: for the use of a tool, and for what came of it
    tool: str | None = None
    #: of the use of a tool, as the model wrote them
    arguments: str | None = None
    failed: bool = False


def lines(turn: Turn) -> list[Line]:
    """The whole turn, in the order of its journal."""
    told: list[Line] = []
    for box in turn.context:
        told += [Line("context", text) for card in box.cards if (text := context_text(card))]
    told.append(Line("instruction", _instruction(turn)))
    number: int | None = None
    for card in turn.cards:
        value = read(card)
        if isinstance(value, Thought):
            number = value.number
        told += [replace(line, number=number) for line in _told(value)]
    return told


def lines_of(card: Entry) -> list[Line]:
    """What one card of a turn tells."""
    return list(_told(read(card)))


def _instruction(turn: Turn) -> str:
    try:
        return render(turn.brief.template, turn.arguments)
    except BadBrief:  # it is what the turn failed for, and worth seeing as it is
        return turn.brief.template


def _told(value: object) -> Iterator[Line]:
    match value:
        case Thought():
            yield from _said(value)
        case ToolCall():
            verb = "asks whether it may call" if value.key.startswith("approve:") else "calls"
            yield Line("tool", f"{verb} {value.target} ({value.key})")
        case ToolResult():
            ok = value.status is ResultStatus.OK
            status = "" if ok else f" {value.status.value}"
            text = f"{value.tool} answers{status}: {value.content}"
            yield Line("tool", text, tool=value.tool, failed=not ok)
        case Note():
            yield Line("note", value.text)
        case Deferred():
            until = "" if value.until_seconds is None else f" for {value.until_seconds:.0f}s"
            yield Line("wait", f"waits{until}: {value.message or value.reason}")
        case Problem():
            yield Line("error", f"{value.message} ({value.code})")
        case Deliverable():
            partial = ", partial" if value.partial else ""
            text = f"{value.ending.value}{partial}: {plain_text(value.fields)}"
            yield Line("deliverable", text)


def _said(thought: Thought) -> Iterator[Line]:
    for part in thought.reply.parts:
        match part:
            case Text(text):
                yield Line("agent", text)
            case Thinking(text):
                yield Line("thinking", text)
            case ToolUse(_, name, arguments):
                yield Line("agent", f"{name}({arguments})", tool=name, arguments=arguments)
