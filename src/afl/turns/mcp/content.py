"""What a tool answers, as text for a model. Pure; what comes in is what the wire brought."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool has answered. An error is an answer too: the model is to read it."""

    content: str
    is_error: bool = False


def answer_of(result: Mapping[str, Any], max_bytes: int) -> ToolAnswer:
    """The answer in a `tools/call` result, cut to so many bytes."""
    blocks = [block for block in result.get("content") or () if isinstance(block, Mapping)]
    text = "\n".join(map(_text_of, blocks))
    structured = result.get("structuredContent")
    # servers repeat it as text for readers of texts; some do not
    if not blocks and structured is not None:
        text = json.dumps(structured, ensure_ascii=False)
    return ToolAnswer(cut(storable(text), max_bytes), bool(result.get("isError")))


def cut(text: str, max_bytes: int) -> str:
    """A text of at most so many bytes, and a note about what was cut, if anything was."""
    data = text.encode()
    if len(data) <= max_bytes:
        return text
    kept = data[:max_bytes].decode("utf-8", "ignore")
    return f"{kept}\n[cut here: these are the first {max_bytes} of {len(data)} bytes]"


def storable(text: str) -> str:
    """A text of somebody else, without what a store cannot take."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def _text_of(block: Mapping[str, Any]) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            return _left_out(str(kind), block, data)
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource", "resource": {"blob": str(data)} as resource}:
            return _left_out(f"resource {resource.get('uri', '')}", resource, data)
        case {"type": "resource_link", "uri": uri}:
            return f"[resource {uri}]"
        case _:
            return f"[{block.get('type', 'something')} left out]"


def _left_out(what: str, block: Mapping[str, Any], base64: str) -> str:
    size = len(base64) * 3 // 4 - base64[-2:].count("=")
    return f"[{what} left out: {block.get('mimeType', 'unknown type')}, {size} bytes]"
