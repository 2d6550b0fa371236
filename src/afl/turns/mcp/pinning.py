"""What an MCP tool is, as its server describes it, and whether it still is what was agreed to.

At first use a definition is pinned: trust on first use, and the log tells it. From then on the tool
is used only as it was, since whoever can change a tool's description can talk to the model.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass, field
from enum import Enum

from afl.kernel.model import Json
from afl.turns.mcp.errors import McpDefinitionChanged
from afl.turns.ports import Pins

_log = logging.getLogger("afl.mcp")


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as its server describes it, untouched."""

    server: str
    name: str
    description: str = ""
    schema: dict[str, Json] = field(default_factory=dict)
    #: what the server says about the tool's effect; None where it says nothing
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None

    @property
    def target(self) -> str:
        return f"{self.server}/{self.name}"


class Verdict(Enum):
    """How a definition compares with what was agreed to."""

    NEW = "new"
    SAME = "same"
    CHANGED = "changed"


def definition_hash(definition: ToolDefinition) -> str:
    """The hash of all that a person would look at before agreeing to a tool.

    The hints are in it: a tool that says it only reads is called without asking anybody.
    """
    content: Json = {
        "name": definition.name,
        "description": definition.description,
        "schema": definition.schema,
        "hints": [definition.read_only, definition.destructive, definition.idempotent],
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def compare(pinned: str | None, current: str) -> Verdict:
    """How the hash of a definition compares with the pinned one."""
    if pinned is None:
        return Verdict.NEW
    return Verdict.SAME if pinned == current else Verdict.CHANGED


def check_pin(pins: Pins, definition: ToolDefinition) -> str:
    """The hash of a definition that may be used. Pins it if it is new; the store is asked, so call
    it from a thread. Raises `McpDefinitionChanged`."""
    current = definition_hash(definition)
    verdict = compare(pins.get_pin(definition.server, definition.name), current)
    if verdict is Verdict.CHANGED:
        raise McpDefinitionChanged(
            f"The MCP tool {definition.target} is not what was agreed to: its server describes it "
            f"differently now. Look at it, then `afl mcp tools --trust {definition.target}`."
        )
    if verdict is Verdict.NEW:
        pins.set_pin(definition.server, definition.name, current)
        _log.info("MCP tool %s is trusted as of its first use: %s", definition.target, current)
    return current


def check_turn_pin(definition: ToolDefinition, pin: str) -> None:
    """Refuses a tool that has changed since the turn began, whoever trusts it meanwhile: the model
    was told something else. Raises `McpDefinitionChanged`."""
    if compare(pin, definition_hash(definition)) is Verdict.CHANGED:
        raise McpDefinitionChanged(
            f"The MCP tool {definition.target} has changed since this turn began. A new turn sees "
            f"the new one, after `afl mcp tools --trust {definition.target}`."
        )
