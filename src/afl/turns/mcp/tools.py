"""From a definition of an MCP tool to what a model sees, and to the task of a call. Pure."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator
from datetime import timedelta

from jsonschema import Draft202012Validator, SchemaError
from jsonschema.validators import validator_for

from afl.kernel.model import MAX_CRASHES, CallSpec, Json, Retry, Task, TaskSpec
from afl.turns.errors import BadBrief
from afl.turns.mcp.config import McpServer
from afl.turns.mcp.content import storable
from afl.turns.mcp.pinning import ToolDefinition, definition_hash
from afl.turns.model import MCP, MCP_NAME, Tool, ToolKind

#: What a call does when its server cannot be reached, or was lost and may be called again.
RETRY = Retry(max_failures=4, max_delay=timedelta(seconds=30))

_NAME_LENGTH = 64
_DIGEST_LENGTH = 8
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_LOOKS_SHORTENED = re.compile(rf"_[0-9a-f]{{{_DIGEST_LENGTH}}}$")
_MAX_DESCRIPTION = 8_000
_MAX_SCHEMA_BYTES = 64_000
_MAX_SCHEMA_DEPTH = 40
#: The worker tells of the end of an attempt by itself, if it is given this much longer.
_SLACK = timedelta(seconds=10)


def tool_name(server: str, tool: str) -> str:
    """The name of a tool for the model: `server__tool`, shortened if need be. No two are the same.

    A name that cannot be used as it is gets a digest at its end, and so does one that looks as if
    it had one: else a server could give one of its tools the name that another has been given.
    """
    plain = f"{server}__{tool}"
    safe = _UNSAFE.sub("_", plain)
    if safe == plain and len(plain) <= _NAME_LENGTH and not _LOOKS_SHORTENED.search(plain):
        return plain
    digest = hashlib.sha256(f"{server}/{tool}".encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{safe[: _NAME_LENGTH - _DIGEST_LENGTH - 1]}_{digest}"


def effect_of(definition: ToolDefinition, server: McpServer) -> str:
    """What a call does to the world: as the settings say, else as the server's hints do.

    A tool that only reads is idempotent and not pure: what it reads may change.
    """
    configured = server.effects.get(definition.name)
    if configured is not None:
        return configured
    if definition.read_only:
        return "idempotent"
    if definition.destructive:
        return "irreversible"
    return "idempotent" if definition.idempotent else "keyed"


def to_tool(definition: ToolDefinition, server: McpServer) -> Tool:
    """The tool that the model sees. Raises `BadBrief` if its schema is not one."""
    return Tool(
        name=tool_name(definition.server, definition.name),
        description=_clean(definition.description)[:_MAX_DESCRIPTION],
        schema=checked_schema(definition),
        kind=ToolKind.MCP,
        target=definition.target,
        effect=effect_of(definition, server),
        timeout=server.timeout,
        pin=definition_hash(definition),
        untrusted=True,
    )


def checked_schema(definition: ToolDefinition) -> dict[str, Json]:
    """The schema of a tool's arguments, without what providers refuse. Raises `BadBrief`."""
    schema = {
        key: value for key, value in definition.schema.items() if key not in ("$schema", "$id")
    }
    schema.setdefault("type", "object")
    schema.setdefault("properties", {})
    problem = _problem(definition.schema, schema)
    if problem is not None:
        raise BadBrief(
            f"The MCP tool {definition.target} cannot be used: its schema {problem}. Tell whoever "
            f"made the server, or leave the tool out of `tools` in [mcp.{definition.server}]."
        )
    return schema


def call_spec(task: Task, tool: Tool, arguments: dict[str, Json], key: str) -> CallSpec:
    """The call of a tool by a turn: the same whenever it is made again, and so is its key."""
    server, _, name = tool.target.partition("/")
    given: dict[str, Json] = {
        "server": server,
        "tool": name,
        "arguments": arguments,
        "pin": tool.pin,
        # unique everywhere, and the same in every attempt
        "key": f"{task.id}/{key}",
    }
    if tool.effect != "keyed":
        given["effect"] = tool.effect
    total = _total(tool.timeout)
    spec = TaskSpec(
        kind=MCP,
        name=MCP_NAME.format(server=server),
        tenant=task.tenant,
        list=task.list,
        priority=task.priority,
        timeout=total,
        retry=RETRY,
        # an effect that cannot be taken back is never done again unseen
        max_crashes=0 if tool.effect == "irreversible" else MAX_CRASHES,
        input=given,
        trace=task.trace,
    )
    return CallSpec(key, spec, total)


def _total(attempt: timedelta) -> timedelta:
    """The longest that all attempts can take together, with the waits between them."""
    waits = timedelta()
    for number in range(RETRY.max_failures):
        waits += min(RETRY.delay * RETRY.backoff**number, RETRY.max_delay)
    return (attempt + _SLACK) * (RETRY.max_failures + 1) + waits


def _clean(text: str) -> str:
    """A text without what people cannot see and a model can: invisible and control characters."""
    return "".join(
        char for char in storable(text) if char in "\n\t" or unicodedata.category(char)[0] != "C"
    )


def _problem(original: dict[str, Json], schema: dict[str, Json]) -> str | None:
    """What is wrong with a schema, None if nothing is."""
    if schema["type"] != "object" or not isinstance(schema["properties"], dict):
        return "does not describe an object"
    if len(json.dumps(schema)) > _MAX_SCHEMA_BYTES:
        return f"is longer than {_MAX_SCHEMA_BYTES} bytes"
    for depth, key, value in _members(schema):
        if depth > _MAX_SCHEMA_DEPTH:
            return f"nests deeper than {_MAX_SCHEMA_DEPTH} levels"
        if key in ("$ref", "$dynamicRef") and not str(value).startswith("#"):
            return f"refers to `{value}`, which is outside of it"
    try:
        validator_for(original, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return f"is no JSON Schema: {error.message[:200]}"
    return None


def _members(schema: Json) -> Iterator[tuple[int, str, Json]]:
    """Every member of every object in a value, with its depth; too deep ones are not entered."""
    rest: list[tuple[int, Json]] = [(1, schema)]
    while rest:
        depth, value = rest.pop()
        if isinstance(value, dict):
            for key, member in value.items():
                yield depth, key, member
        if depth <= _MAX_SCHEMA_DEPTH and isinstance(value, dict | list):
            members = value.values() if isinstance(value, dict) else value
            rest.extend((depth + 1, member) for member in members)
