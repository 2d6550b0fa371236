"""What a model may call: event facets, other agents and MCP tools, as tools."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

from afl.ir import model as ir
from afl.kernel.model import Json
from afl.runtime.calls import SLEEP, UNTIL, WAIT
from afl.runtime.expressions import constant
from afl.runtime.json_types import JsonTypes
from afl.runtime.plan import Plan
from afl.turns.deliverable import SUBMIT
from afl.turns.errors import BadBrief
from afl.turns.model import Agent, Tool, ToolKind
from afl.turns.ports import NO_TIMEOUT

#: What an agent's list of tools writes before the name of another agent.
AGENT_PREFIX = "agent:"
#: The argument of a tool that is an agent.
INSTRUCTION = "instruction"

_LONGEST_NAME, _DIGEST = 64, 8
_TIMED = (SLEEP, UNTIL, WAIT)


class McpTools(Protocol):
    """Tools of MCP servers that this process is connected to."""

    def find(self, server: str, tool: str) -> Tool:
        """Raises an `AflError` that says what is wrong if it cannot be used."""
        ...


class NoMcpTools:
    """A process that is connected to no MCP server."""

    def find(self, server: str, tool: str) -> Tool:
        raise BadBrief(
            f"The MCP tool {server}/{tool} is not there: no MCP server is set up here. Name a file "
            f"with a table [mcp.{server}] by AFL_MCP."
        )


def facet_tool(plan: Plan, program: str, name: str) -> Tool:
    """An event facet as a tool. The pin is the program, so that it stays what it is."""
    if name in _TIMED:
        raise BadBrief(f"`{name}` cannot be a tool: it waits, and does no work.")
    facet = plan.facet(name).facet
    types = JsonTypes(plan.program)
    is_human = policy(facet, "Human") is not None
    return Tool(
        name=name.rpartition(".")[2],
        description=_description(types, facet),
        schema=types.params(facet),
        kind=ToolKind.FACET,
        target=name,
        # who is asked decides: nobody has to agree to asking
        effect="keyed" if is_human else _effect(facet),
        timeout=_timeout(facet),
        pin=program,
    )


def agent_tool(agent: Agent) -> Tool:
    """Another agent as a tool: it takes a turn of its own, and delivers text."""
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {
            INSTRUCTION: {
                "type": "string",
                "description": "What it is to do. It knows nothing but what stands here.",
            }
        },
        "required": [INSTRUCTION],
        "additionalProperties": False,
    }
    known_for = f" It is known for: {', '.join(agent.tags)}." if agent.tags else ""
    return Tool(
        name=agent.id,
        description=f"Has the agent `{agent.id}` do something, and answers with what it says."
        f"{known_for}",
        schema=schema,
        kind=ToolKind.AGENT,
        target=agent.id,
        timeout=NO_TIMEOUT,
    )


def named_apart(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """The tools under names that providers take, and no two the same."""
    taken = Counter(tool.name for tool in tools)
    return tuple(_named(tool, taken[tool.name] > 1 or tool.name == SUBMIT) for tool in tools)


def policy(facet: ir.Facet, name: str) -> dict[str, Json] | None:
    """The constant arguments of a policy of a declaration, None if it has none."""
    for each in facet.policies:
        if each.name.rpartition(".")[2] == name:
            return {arg.name: constant(arg.value) for arg in each.args if arg.name != "key"}
    return None


def _named(tool: Tool, is_taken: bool) -> Tool:
    wanted = f"{tool.kind.value}_{tool.target}" if is_taken else tool.name
    name = "".join(char if char.isascii() and _is_plain(char) else "_" for char in wanted)
    if name == tool.name and len(name) <= _LONGEST_NAME:
        return tool
    digest = hashlib.sha256(tool.target.encode()).hexdigest()[:_DIGEST]
    short = f"{name[: _LONGEST_NAME - _DIGEST - 1]}_{digest}"
    return replace(tool, name=short)


def _is_plain(char: str) -> bool:
    return char.isalnum() or char in "_-"


def _description(types: JsonTypes, facet: ir.Facet) -> str:
    doc = types.doc(facet.name)
    returns = [
        f"- {name}: {text}" if (text := doc.returns.get(name)) else f"- {name}"
        for name in (each.name for each in facet.returns)
    ]
    told = doc.text or f"Does {facet.name}."
    return "\n".join([told, *(["It answers with:", *returns] if returns else [])])


def _effect(facet: ir.Facet) -> str:
    given = policy(facet, "Effect")
    return "keyed" if given is None else str(given["kind"])


def _timeout(facet: ir.Facet) -> timedelta:
    given = policy(facet, "Timeout")
    if given is None:
        return NO_TIMEOUT
    names = {"hours": "hours", "minutes": "minutes", "seconds": "seconds", "milliseconds": "ms"}
    return timedelta(**{unit: float(str(given.get(name, 0))) for unit, name in names.items()})
