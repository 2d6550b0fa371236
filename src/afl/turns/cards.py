"""The cards of a turn's journal: what is written down, and how it is read again.

| kind            | value         | written                                                    |
|-----------------|---------------|------------------------------------------------------------|
| task            | `Brief`       | first; equal briefs are one card                           |
| task.context    | `Context`     | second, where there are context boxes                      |
| agent.thought   | `Thought`     | for each answer of the model                               |
| tool.call       | `ToolCall`    | for each call that is opened; its arguments are in the thought |
| tool.result     | `ToolResult`  | for each tool use, once                                    |
| agent.note      | `Note`        | when an answer broke the rules                             |
| agent.deferred  | `Deferred`    | when the model, or a budget, has no room now               |
| agent.error     | `Problem`     | when an attempt ends badly                                 |
| task.deliverable| `Deliverable` | last                                                       |

What is written can always be stored: characters that no store takes are replaced. Answers of tools
are kept as the text that the model is shown, so any request can be made again as it was.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import TypeVar

from afl.kernel.model import Card, CardSpec, Json
from afl.turns.brief_content import read_brief, write_brief
from afl.turns.contents import (
    Content,
    as_map,
    flag,
    integer,
    items,
    mapping,
    number_or_none,
    text,
    text_or_none,
)
from afl.turns.journal import (
    Context,
    Deferred,
    Note,
    Problem,
    ResultStatus,
    Thought,
    ToolCall,
    ToolResult,
)
from afl.turns.model import (
    Brief,
    Deliverable,
    Ending,
    Part,
    Price,
    Reply,
    Text,
    Thinking,
    ToolUse,
    Usage,
)

TASK, CONTEXT, THOUGHT = "task", "task.context", "agent.thought"
CALL, RESULT = "tool.call", "tool.result"
NOTE, DEFERRED, ERROR = "agent.note", "agent.deferred", "agent.error"
DELIVERABLE = "task.deliverable"

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
#: Shown in place of a character that cannot be stored.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


Value = Brief | Context | Thought | ToolCall | ToolResult | Note | Deferred | Problem | Deliverable
#: A card of a journal: written already, or about to be.
Entry = Card | CardSpec


def write(value: Value) -> CardSpec:
    """The card of a value."""
    kind, content = _content(value)
    return CardSpec(kind, storable(content))


def read(card: Entry) -> Value | None:
    """The value of a card; None if a turn does not write such cards."""
    reader = _READERS.get(card.kind)
    return None if reader is None else reader(as_map(card.content))


def is_of_turn(card: Entry) -> bool:
    """Whether turns write cards of this kind."""
    return card.kind in _READERS


_V = TypeVar("_V")


def find(cards: Iterable[Entry], kind: type[_V]) -> list[_V]:
    """The values of one kind, in their order."""
    return [value for card in cards if isinstance(value := read(card), kind)]


def storable(value: Json) -> Json:
    """The value, with a replacement for every character that no store can keep."""
    if isinstance(value, str):
        return _UNSTORABLE.sub(REPLACEMENT, value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {_UNSTORABLE.sub(REPLACEMENT, key): storable(item) for key, item in value.items()}
    return value


# How they are kept


def _content(value: Value) -> tuple[str, Content]:
    match value:
        case Brief():
            return TASK, write_brief(value)
        case Context():
            return CONTEXT, _write_context(value)
        case Thought():
            return THOUGHT, _write_thought(value)
        case ToolCall():
            return CALL, _write_call(value)
        case ToolResult():
            return RESULT, _write_result(value)
        case Note():
            return NOTE, _write_note(value)
        case Deferred():
            return DEFERRED, _write_deferred(value)
        case Problem():
            return ERROR, _write_problem(value)
        case Deliverable():
            return DELIVERABLE, _write_deliverable(value)


def _write_context(context: Context) -> Content:
    return {"boxes": [{"box": box, "cards": count} for box, count in context.lengths]}


def _read_context(content: Content) -> Context:
    boxes = [as_map(each) for each in items(content, "boxes")]
    return Context(tuple((text(each, "box"), integer(each, "cards")) for each in boxes))


def _write_thought(thought: Thought) -> Content:
    reply = thought.reply
    return {
        "number": thought.number,
        "parts": [_write_part(part) for part in reply.parts],
        "finish": reply.finish,
        "model": reply.model,
        "usage": _write_usage(reply.usage),
        "provider_id": reply.provider_id,
        "price": {"usd": str(thought.price.usd), "version": thought.price.version},
        "request": thought.request,
    }


def _read_thought(content: Content) -> Thought:
    price = mapping(content, "price")
    reply = Reply(
        parts=tuple(_read_part(as_map(part)) for part in items(content, "parts")),
        finish=text(content, "finish"),
        model=text(content, "model"),
        usage=_read_usage(mapping(content, "usage")),
        provider_id=text_or_none(content, "provider_id"),
    )
    return Thought(
        integer(content, "number"),
        reply,
        Price(Decimal(text(price, "usd")), text(price, "version")),
        text(content, "request"),
    )


def _write_usage(usage: Usage) -> Content:
    return {
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
    }


def _read_usage(content: Content) -> Usage:
    return Usage(
        integer(content, "input"),
        integer(content, "output"),
        integer(content, "cache_read"),
        integer(content, "cache_write"),
    )


def _write_part(part: Part) -> Content:
    match part:
        case Text(text):
            return {"text": text}
        case Thinking(text, opaque):
            return {"thinking": text, "opaque": opaque}
        case ToolUse(id, name, arguments):
            return {"tool": name, "id": id, "arguments": arguments}


def _read_part(content: Content) -> Part:
    if "tool" in content:
        return ToolUse(text(content, "id"), text(content, "tool"), text(content, "arguments"))
    if "thinking" in content:
        return Thinking(text(content, "thinking"), content["opaque"])
    return Text(text(content, "text"))


def _write_call(call: ToolCall) -> Content:
    return {
        "number": call.number,
        "index": call.index,
        "key": call.key,
        "tool": call.tool,
        "target": call.target,
        "tool_call_id": call.tool_call_id,
    }


def _read_call(content: Content) -> ToolCall:
    return ToolCall(
        integer(content, "number"),
        integer(content, "index"),
        text(content, "key"),
        text(content, "tool"),
        text(content, "target"),
        text(content, "tool_call_id"),
    )


def _write_result(result: ToolResult) -> Content:
    return {
        "number": result.number,
        "index": result.index,
        "key": result.key,
        "tool": result.tool,
        "tool_call_id": result.tool_call_id,
        "status": result.status.value,
        "content": result.content,
        "untrusted": result.untrusted,
    }


def _read_result(content: Content) -> ToolResult:
    return ToolResult(
        integer(content, "number"),
        integer(content, "index"),
        text_or_none(content, "key"),
        text(content, "tool"),
        text(content, "tool_call_id"),
        ResultStatus(content["status"]),
        text(content, "content"),
        flag(content, "untrusted"),
    )


def _write_note(note: Note) -> Content:
    return {"text": note.text, "tool_required": note.tool_required}


def _read_note(content: Content) -> Note:
    return Note(text(content, "text"), flag(content, "tool_required"))


def _write_deferred(deferred: Deferred) -> Content:
    return {
        "attempt": deferred.attempt,
        "reason": deferred.reason,
        "until_seconds": deferred.until_seconds,
        "key": deferred.key,
        "message": deferred.message,
    }


def _read_deferred(content: Content) -> Deferred:
    return Deferred(
        integer(content, "attempt"),
        text(content, "reason"),
        number_or_none(content, "until_seconds"),
        text(content, "key"),
        text(content, "message"),
    )


def _write_problem(problem: Problem) -> Content:
    return {"code": problem.code, "message": problem.message}


def _read_problem(content: Content) -> Problem:
    return Problem(text(content, "code"), text(content, "message"))


def _write_deliverable(deliverable: Deliverable) -> Content:
    return {
        "ending": deliverable.ending.value,
        "partial": deliverable.partial,
        "fields": deliverable.fields,
        "message": deliverable.message,
    }


def _read_deliverable(content: Content) -> Deliverable:
    return Deliverable(
        Ending(content["ending"]),
        flag(content, "partial"),
        mapping(content, "fields"),
        text(content, "message"),
    )


_READERS: dict[str, Callable[[Content], Value]] = {
    TASK: read_brief,
    CONTEXT: _read_context,
    THOUGHT: _read_thought,
    CALL: _read_call,
    RESULT: _read_result,
    NOTE: _read_note,
    DEFERRED: _read_deferred,
    ERROR: _read_problem,
    DELIVERABLE: _read_deliverable,
}
