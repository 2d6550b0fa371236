"""What the model is asked, made from nothing but cards: made twice, it is the same to the byte.

The order is: the system text, the context cards, the instruction, then the journal as it grew. So
each request starts with the one before it, and prompt caches hold. Results of tools come in the
order of the thought's tool uses, whatever the order in which they arrived.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from afl.kernel.model import Call, Card, Json, Task
from afl.turns.arguments import as_shown
from afl.turns.cards import THOUGHT, Entry, find, is_of_turn, read
from afl.turns.contents import json_text, sorted_text
from afl.turns.deliverable import offered_tools, plain_text
from afl.turns.journal import Context, ResultStatus, Thought, ToolResult
from afl.turns.model import (
    AgentSaid,
    Brief,
    Deliverable,
    Message,
    ModelRequest,
    Part,
    Text,
    Thinking,
    ToolAnswered,
    ToolUse,
    UserSays,
)
from afl.turns.steps import Step, steps
from afl.turns.templates import render
from afl.turns.tool_use import labelled, shown_name

_ID = re.compile(r"[A-Za-z0-9_.:|-]{1,200}\Z")


@dataclass(frozen=True, slots=True)
class ContextBox:
    """A box that the turn was given to read, with all the cards that it has now."""

    name: str
    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """All that a turn's next move depends on."""

    task: Task
    brief: Brief
    #: what the texts of the brief are filled with
    arguments: dict[str, Json]
    context: tuple[ContextBox, ...] = ()
    #: its own box; empty before the first commit
    cards: tuple[Entry, ...] = ()
    #: answers to its calls that it has not taken in yet
    replies: tuple[Call, ...] = ()


def request(turn: Turn, number: int | None = None) -> ModelRequest:
    """The next request of a turn or, with a number, that request as it was. Raises `BadBrief`.

    Answers that the turn has not taken in are not in it: only cards are.
    """
    brief, cards = turn.brief, turn.cards
    if number is not None:
        cards = _before(cards, number)
    journal = steps(cards)
    last = journal[-1] if journal else None
    return ModelRequest(
        system=render(brief.system, turn.arguments),
        messages=(
            *_context(turn),
            UserSays(render(brief.template, turn.arguments)),
            *_journal(journal, brief.limits.argument_bytes),
        ),
        tools=offered_tools(brief),
        max_tokens=brief.max_tokens,
        temperature=brief.temperature,
        tool_required=last is not None and last.note is not None and last.note.tool_required,
    )


def canonical(request: ModelRequest) -> bytes:
    """All of a request that reaches the model, in one form."""
    content: Json = {
        "system": request.system,
        "messages": [_plain(message) for message in request.messages],
        "tools": [
            # the order of a schema's keys reaches the model too
            [tool.name, tool.description, json_text(tool.schema)]
            for tool in request.tools
        ],
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "tool_required": request.tool_required,
    }
    text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode(errors="replace")


def request_hash(request: ModelRequest) -> str:
    """The name of a request: equal requests have equal names."""
    return f"sha256:{hashlib.sha256(canonical(request)).hexdigest()}"


def growth(turn: Turn) -> tuple[int, int]:
    """How many tokens of the next request its provider has counted before, and how many bytes are
    new since then: what the request can cost follows from them."""
    size = len(canonical(request(turn)))
    thoughts = find(turn.cards, Thought)
    if not thoughts:
        return 0, size
    last = thoughts[-1]
    before = len(canonical(request(turn, last.number)))
    return last.reply.usage.input, max(size - before, 0)


def context_lengths(turn: Turn) -> Context | None:
    """What a turn that begins has to note about its context boxes; None without any."""
    if not turn.context:
        return None
    return Context(tuple((box.name, len(box.cards)) for box in turn.context))


# The parts of a request


def _before(cards: tuple[Entry, ...], number: int) -> tuple[Entry, ...]:
    for position, card in enumerate(cards):
        if card.kind == THOUGHT:
            thought = read(card)
            if isinstance(thought, Thought) and thought.number == number:
                return cards[:position]
    return cards


def _context(turn: Turn) -> Iterator[Message]:
    noted = find(turn.cards, Context)
    lengths = dict(noted[0].lengths) if noted else {}
    for box in turn.context:
        for card in box.cards[: lengths.get(box.name, len(box.cards))]:
            text = context_text(card)
            if text:
                yield UserSays(text)


def context_text(card: Entry) -> str:
    """A card of a context box as the model reads it; empty if it says nothing to others."""
    if not isinstance(card.content, dict) or not is_of_turn(card):
        return plain_text(card.content)
    try:
        value = read(card)
    except (KeyError, TypeError, ValueError):  # anybody may put cards into boxes
        return plain_text(card.content)
    match value:
        case Thought():
            return value.reply.text
        case ToolResult() if value.status is ResultStatus.OK:
            return labelled(value)
        case Deliverable():
            return plain_text(value.fields)
    return ""


def _journal(journal: list[Step], argument_bytes: int) -> Iterator[Message]:
    used: set[str] = set()
    for step in journal:
        ids = _ids(step, used)
        said = tuple(_said(step, ids, argument_bytes))
        if any(not isinstance(part, Thinking) for part in said):
            yield AgentSaid(said, step.thought.reply.model)
        for index, use in enumerate(step.thought.reply.tool_uses):
            result = step.results.get(index)
            if result is not None:
                yield ToolAnswered(
                    ids[index],
                    shown_name(use.name),
                    labelled(result),
                    is_error=result.status is not ResultStatus.OK,
                )
        if step.note is not None:
            yield UserSays(step.note.text)


def _ids(step: Step, used: set[str]) -> list[str]:
    """The ids of a step's tool uses: the provider's own, unless it has none that can be used or
    gives one twice."""
    ids = []
    for index, use in enumerate(step.thought.reply.tool_uses):
        own = f"call_{step.number}_{index}"
        chosen = use.id if _ID.match(use.id) and use.id not in used else own
        used.add(chosen)
        ids.append(chosen)
    return ids


def _said(step: Step, ids: list[str], argument_bytes: int) -> Iterator[Part]:
    """The parts of a thought as its provider takes them back."""
    remaining = iter(ids)
    for part in step.thought.reply.parts:
        match part:
            case ToolUse(_, name, arguments):
                shown = as_shown(arguments, argument_bytes)
                yield ToolUse(next(remaining), shown_name(name), shown)
            case Text(text) if not text.strip():
                continue
            case _:
                yield part


def _plain(message: Message) -> Json:
    match message:
        case UserSays(text):
            return {"user": text}
        case AgentSaid(parts, model):
            return {"agent": [_plain_part(part) for part in parts], "model": model}
        case ToolAnswered(id, name, content, is_error):
            return {"tool": name, "id": id, "content": content, "error": is_error}


def _plain_part(part: Part) -> Json:
    match part:
        case Text(text):
            return {"text": text}
        case Thinking(text, opaque):
            return {"thinking": text, "opaque": sorted_text(opaque)}
        case ToolUse(id, name, arguments):
            return {"tool": name, "id": id, "arguments": arguments}
