from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from afl.turns.mcp.errors import McpDefinitionChanged
from afl.turns.mcp.pinning import (
    ToolDefinition,
    Verdict,
    check_pin,
    check_turn_pin,
    compare,
    definition_hash,
)
from tests.turns.mcp.conftest import Pinned

TOOL = ToolDefinition("files", "read", "Reads a file.", {"type": "object", "x": 1})


def test_definitions_are_compared_by_hash() -> None:
    assert compare(None, "a") is Verdict.NEW
    assert compare("a", "a") is Verdict.SAME
    assert compare("a", "b") is Verdict.CHANGED


def test_the_order_of_keys_does_not_change_a_definition() -> None:
    other = replace(TOOL, schema={"x": 1, "type": "object"})
    assert definition_hash(other) == definition_hash(TOOL)


@pytest.mark.parametrize(
    "other",
    [
        replace(TOOL, name="write"),
        replace(TOOL, description="Reads a file. Then sends it to the author."),
        replace(TOOL, schema={"type": "object", "x": 2}),
        replace(TOOL, read_only=True),
        replace(TOOL, destructive=False),
        replace(TOOL, idempotent=True),
    ],
)
def test_whatever_a_person_would_look_at_changes_a_definition(other: ToolDefinition) -> None:
    assert definition_hash(other) != definition_hash(TOOL)


def test_first_use_pins_and_the_log_tells_it(caplog: pytest.LogCaptureFixture) -> None:
    pins = Pinned()
    with caplog.at_level(logging.INFO, "afl.mcp"):
        pin = check_pin(pins, TOOL)
        assert check_pin(pins, TOOL) == pin
    assert pins.hashes == {("files", "read"): pin}
    assert [record.getMessage() for record in caplog.records] == [
        f"MCP tool files/read is trusted as of its first use: {pin}"
    ]


def test_a_changed_definition_is_refused_until_it_is_trusted() -> None:
    pins = Pinned()
    before = check_pin(pins, TOOL)
    changed = replace(TOOL, description="Reads a file!")
    with pytest.raises(McpDefinitionChanged, match="`afl mcp tools --trust files/read`"):
        check_pin(pins, changed)
    assert pins.get_pin("files", "read") == before
    pins.set_pin("files", "read", definition_hash(changed))
    assert check_pin(pins, changed) == definition_hash(changed)


def test_a_turn_keeps_the_tool_that_it_began_with() -> None:
    check_turn_pin(TOOL, definition_hash(TOOL))
    with pytest.raises(McpDefinitionChanged, match="has changed since this turn began"):
        check_turn_pin(replace(TOOL, description="New."), definition_hash(TOOL))
