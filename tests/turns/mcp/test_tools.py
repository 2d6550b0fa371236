from __future__ import annotations

import re
from datetime import timedelta

import pytest

from afl.kernel.memory import MemoryStore
from afl.kernel.model import MAX_CRASHES, Json, Task, TaskSpec
from afl.testing import SequentialIds, VirtualClock
from afl.turns.errors import BadBrief
from afl.turns.mcp.config import McpServer
from afl.turns.mcp.pinning import ToolDefinition, definition_hash
from afl.turns.mcp.tools import call_spec, checked_schema, effect_of, to_tool, tool_name
from afl.turns.model import ToolKind

SERVER = McpServer("files", command="x", effects={"wipe": "keyed"}, timeout=timedelta(seconds=7))


def _definition(name: str = "read", **more: object) -> ToolDefinition:
    return ToolDefinition("files", name, **more)  # type: ignore[arg-type]


def _turn() -> Task:
    spec = TaskSpec("turn", "agent:default", tenant="acme", list="gpu", priority=3, trace="tr")
    return MemoryStore(VirtualClock(), SequentialIds()).enqueue([spec])[0]


def test_a_tool_is_named_by_its_server_and_its_name() -> None:
    assert tool_name("files", "read") == "files__read"


@pytest.mark.parametrize("name", ["read file", "a/b", "naïve", "x" * 200, "tool_0123abcd", ""])
def test_a_name_is_always_one_that_providers_take(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool_name("files", name))


def test_no_two_tools_have_the_same_name() -> None:
    names = ["a/b", "a.b", "a_b", "x" * 100, "x" * 101]
    # a server that knows the rule cannot use it against itself
    names += [tool_name("files", name).removeprefix("files__") for name in names]
    given = [tool_name("files", name) for name in dict.fromkeys(names)]
    assert len(set(given)) == len(given)
    assert tool_name("a", "b__c") != tool_name("a-b", "c")


@pytest.mark.parametrize(
    ("definition", "effect"),
    [
        (_definition(read_only=True), "idempotent"),
        (_definition(destructive=True), "irreversible"),
        (_definition(destructive=False, idempotent=True), "idempotent"),
        (_definition(destructive=False), "keyed"),
        (_definition(), "keyed"),
        (_definition("wipe", destructive=True), "keyed"),
    ],
)
def test_the_effect_is_as_configured_or_as_the_hints_say(
    definition: ToolDefinition, effect: str
) -> None:
    assert effect_of(definition, SERVER) == effect


def test_a_definition_becomes_a_tool_that_is_not_trusted() -> None:
    definition = _definition(description="Reads\u200b a\x07 file.\n\U000e0041")
    tool = to_tool(definition, SERVER)
    assert (tool.name, tool.kind, tool.target) == ("files__read", ToolKind.MCP, "files/read")
    assert tool.description == "Reads a file.\n"
    assert tool.schema == {"type": "object", "properties": {}}
    assert tool.pin == definition_hash(definition)
    assert tool.timeout == timedelta(seconds=7)
    assert tool.untrusted


def test_a_schema_is_passed_on_without_what_providers_refuse() -> None:
    schema: dict[str, Json] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "x",
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "integer"}},
    }
    assert checked_schema(_definition(schema=schema)) == {
        key: value for key, value in schema.items() if key not in ("$schema", "$id")
    }


def _deep(levels: int) -> Json:
    value: Json = {}
    for _ in range(levels):
        value = {"items": value}
    return value


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "array"}, "does not describe an object"),
        ({"properties": []}, "does not describe an object"),
        ({"properties": {"a": {"type": 5}}}, "is no JSON Schema"),
        ({"properties": {"a": {"$ref": "http://h/x"}}}, "refers to `http://h/x`"),
        ({"description": "x" * 70_000}, "is longer than 64000 bytes"),
        ({"properties": {"a": _deep(50)}}, "nests deeper than 40 levels"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: dict[str, Json], problem: str) -> None:
    with pytest.raises(BadBrief) as caught:
        checked_schema(_definition(schema=schema))
    assert f"The MCP tool files/read cannot be used: its schema {problem}" in caught.value.message


def test_a_call_is_the_same_whenever_it_is_made() -> None:
    turn, tool = _turn(), to_tool(_definition(), SERVER)
    call = call_spec(turn, tool, {"path": "a"}, "2.0")
    assert call == call_spec(turn, tool, {"path": "a"}, "2.0")
    assert (call.key, call.task.kind, call.task.name) == ("2.0", "mcp", "mcp:files")
    assert (call.task.tenant, call.task.list, call.task.priority, call.task.trace) == (
        "acme",
        "gpu",
        3,
        "tr",
    )
    assert call.task.input == {
        "server": "files",
        "tool": "read",
        "arguments": {"path": "a"},
        "pin": tool.pin,
        "key": f"{turn.id}/2.0",
    }
    assert call.task.max_crashes == MAX_CRASHES
    assert call.timeout > tool.timeout * (call.task.retry.max_failures + 1)


def test_a_tool_with_a_slash_in_its_name_is_called_by_it() -> None:
    call = call_spec(_turn(), to_tool(_definition("a/b"), SERVER), {}, "0.0")
    assert isinstance(call.task.input, dict)
    assert (call.task.input["server"], call.task.input["tool"]) == ("files", "a/b")


def test_what_cannot_be_taken_back_is_not_done_again_after_a_crash() -> None:
    tool = to_tool(_definition(destructive=True), SERVER)
    call = call_spec(_turn(), tool, {}, "0.0")
    assert call.task.max_crashes == 0
    assert isinstance(call.task.input, dict)
    assert call.task.input["effect"] == "irreversible"
