"""A turn as people read it: who said or did what, in order. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from afl.turns.cards import read
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
        told += [Line(who, text, number) for who, text in _told(value)]
    return told


def _instruction(turn: Turn) -> str:
    try:
        return render(turn.brief.template, turn.arguments)
    except BadBrief:  # it is what the turn failed for, and worth seeing as it is
        return turn.brief.template


def _told(value: object) -> Iterator[tuple[str, str]]:
    match value:
        case Thought():
            yield from _said(value)
        case ToolCall():
            verb = "asks whether it may call" if value.key.startswith("approve:") else "calls"
            yield "tool", f"{verb} {value.target} ({value.key})"
        case ToolResult():
            status = "" if value.status is ResultStatus.OK else f" {value.status.value}"
            yield "tool", f"{value.tool} answers{status}: {value.content}"
        case Note():
            yield "note", value.text
        case Deferred():
            until = "" if value.until_seconds is None else f" for {value.until_seconds:.0f}s"
            yield "wait", f"waits{until}: {value.message or value.reason}"
        case Problem():
            yield "error", f"{value.message} ({value.code})"
        case Deliverable():
            partial = ", partial" if value.partial else ""
            yield "deliverable", f"{value.ending.value}{partial}: {plain_text(value.fields)}"


def _said(thought: Thought) -> Iterator[tuple[str, str]]:
    for part in thought.reply.parts:
        match part:
            case Text(text):
                yield "agent", text
            case Thinking(text):
                yield "thinking", text
            case ToolUse(_, name, arguments):
                yield "agent", f"{name}({arguments})"
