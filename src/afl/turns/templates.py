"""Texts with placeholders, as prompts have them: `{name}` or `{name.field}`, braces doubled. Pure.

The checker of the language reads them by the same rules, so what it lets through can be filled in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from afl.kernel.model import Json
from afl.turns.contents import sorted_text
from afl.turns.errors import BadBrief

_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*\Z")


def render(template: str, arguments: Mapping[str, Json]) -> str:
    """The text with its placeholders filled in: text as it is, anything else as JSON.

    Raises `BadBrief` if a placeholder names nothing that is given, or is none.
    """
    return _BRACES.sub(lambda match: _filled(match, arguments), template)


def literal(text: str) -> str:
    """A template that renders to this text, whatever braces it has."""
    return text.replace("{", "{{").replace("}", "}}")


def _filled(match: re.Match[str], arguments: Mapping[str, Json]) -> str:
    if match.group() in ("{{", "}}"):
        return match.group()[0]
    name = match.group(1)
    if name is None or not _NAME.match(name):
        raise BadBrief(
            f"`{match.group():.60}` is not a placeholder; write `{{name}}` for an argument, and "
            "double a brace that means itself"
        )
    value = _lookup(name, arguments)
    return value if isinstance(value, str) else sorted_text(value)


def _lookup(name: str, arguments: Mapping[str, Json]) -> Json:
    first, *fields = name.split(".")
    if first not in arguments:
        given = ", ".join(f"`{each}`" for each in arguments) or "none"
        raise BadBrief(f"nothing is given for the placeholder `{{{name}}}`; arguments: {given}")
    value = arguments[first]
    for field in fields:
        if value is None:  # an optional that is not there has no fields either
            return None
        if not isinstance(value, dict) or field not in value:
            raise BadBrief(f"the placeholder `{{{name}}}` finds no `{field}` in `{first}`")
        value = value[field]
    return value
