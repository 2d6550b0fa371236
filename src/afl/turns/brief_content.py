"""A brief as the content of a card, and back.

JSON Schemas are kept as text. Equal cards are kept once, and the order of keys makes no difference
between cards; to a model it does, so the text keeps it.
"""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal

from afl.kernel.model import Json
from afl.turns.contents import (
    Content,
    as_map,
    flag,
    integer,
    integer_or_none,
    items,
    json_text,
    mapping,
    number_or_none,
    text,
    text_or_none,
)
from afl.turns.model import After, Allowance, Brief, Limits, Tool, ToolKind

_MICROSECOND = timedelta(microseconds=1)


def write_brief(brief: Brief) -> Content:
    """The content of the first card of a turn."""
    return {
        "system": brief.system,
        "template": brief.template,
        "models": list(brief.models),
        "tools": [_write_tool(tool) for tool in brief.tools],
        "returns": None if brief.returns is None else json_text(brief.returns),
        "limits": _write_limits(brief.limits),
        "allowance": _write_allowance(brief.allowance),
        "max_tokens": brief.max_tokens,
        "temperature": brief.temperature,
    }


def read_brief(content: Content) -> Brief:
    """The brief that was written so."""
    returns = text_or_none(content, "returns")
    return Brief(
        system=text(content, "system"),
        template=text(content, "template"),
        models=tuple(str(name) for name in items(content, "models")),
        tools=tuple(_read_tool(as_map(tool)) for tool in items(content, "tools")),
        returns=None if returns is None else as_map(json.loads(returns)),
        limits=_read_limits(mapping(content, "limits")),
        allowance=_read_allowance(mapping(content, "allowance")),
        max_tokens=integer(content, "max_tokens"),
        temperature=number_or_none(content, "temperature"),
    )


def _write_tool(tool: Tool) -> Json:
    return {
        "name": tool.name,
        "description": tool.description,
        "schema": json_text(tool.schema),
        "kind": tool.kind.value,
        "target": tool.target,
        "effect": tool.effect,
        "needs_approval": tool.needs_approval,
        "timeout_us": tool.timeout // _MICROSECOND,
        "after": tool.after.value,
        "pin": tool.pin,
        "untrusted": tool.untrusted,
    }


def _read_tool(content: Content) -> Tool:
    return Tool(
        name=text(content, "name"),
        description=text(content, "description"),
        schema=as_map(json.loads(text(content, "schema"))),
        kind=ToolKind(content["kind"]),
        target=text(content, "target"),
        effect=text(content, "effect"),
        needs_approval=flag(content, "needs_approval"),
        timeout=integer(content, "timeout_us") * _MICROSECOND,
        after=After(content["after"]),
        pin=text_or_none(content, "pin"),
        untrusted=flag(content, "untrusted"),
    )


def _write_limits(limits: Limits) -> Content:
    return {
        "model_calls": limits.model_calls,
        "tool_calls": limits.tool_calls,
        "repairs": limits.repairs,
        "busy": limits.busy,
        "argument_bytes": limits.argument_bytes,
        "result_bytes": limits.result_bytes,
    }


def _read_limits(content: Content) -> Limits:
    return Limits(
        model_calls=integer(content, "model_calls"),
        tool_calls=integer(content, "tool_calls"),
        repairs=integer(content, "repairs"),
        busy=integer(content, "busy"),
        argument_bytes=integer(content, "argument_bytes"),
        result_bytes=integer(content, "result_bytes"),
    )


def _write_allowance(allowance: Allowance) -> Content:
    return {
        "usd": None if allowance.usd is None else str(allowance.usd),
        "tokens": allowance.tokens,
        "model_calls": allowance.model_calls,
        "tool_calls": allowance.tool_calls,
    }


def _read_allowance(content: Content) -> Allowance:
    usd = text_or_none(content, "usd")
    return Allowance(
        usd=None if usd is None else Decimal(usd),
        tokens=integer_or_none(content, "tokens"),
        model_calls=integer_or_none(content, "model_calls"),
        tool_calls=integer_or_none(content, "tool_calls"),
    )
