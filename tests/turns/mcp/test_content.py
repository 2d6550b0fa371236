from __future__ import annotations

import base64
from typing import Any

import pytest

from afl.turns.mcp.content import ToolAnswer, answer_of, cut

PICTURE = base64.b64encode(b"12345").decode()


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"content": []}, ""),
        ({"content": [], "structuredContent": {"ä": 1}}, '{"ä": 1}'),
        ({"content": [{"type": "text", "text": "a"}], "structuredContent": {"b": 1}}, "a"),
        (
            {"content": [{"type": "image", "data": PICTURE, "mimeType": "image/png"}]},
            "[image left out: image/png, 5 bytes]",
        ),
        ({"content": [{"type": "resource", "resource": {"uri": "u:1", "text": "t"}}]}, "t"),
        (
            {"content": [{"type": "resource", "resource": {"uri": "u:1", "blob": PICTURE}}]},
            "[resource u:1 left out: unknown type, 5 bytes]",
        ),
        ({"content": [{"type": "resource_link", "uri": "u:1", "name": "n"}]}, "[resource u:1]"),
        ({"content": [{"type": "smell"}]}, "[smell left out]"),
        ({"content": [{"type": "text", "text": "a\0b\ud800"}]}, "a\ufffdb?"),
    ],
)
def test_an_answer_becomes_text(result: dict[str, Any], content: str) -> None:
    assert answer_of(result, 1000) == ToolAnswer(content)


def test_an_error_stays_an_error() -> None:
    result = {"content": [{"type": "text", "text": "no"}], "isError": True}
    assert answer_of(result, 1000) == ToolAnswer("no", is_error=True)


def test_a_text_is_cut_between_characters() -> None:
    assert cut("ääää", 8) == "ääää"
    assert cut("ääää", 5) == "ää\n[cut here: these are the first 5 of 8 bytes]"
