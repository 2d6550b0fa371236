"""The arguments of tool uses, which models write as they please. Pure."""

from __future__ import annotations

import json
from typing import NoReturn

from afl.kernel.errors import BadRequest
from afl.kernel.model import Json
from afl.kernel.requests import json_copy
from afl.turns.contents import json_text

#: A task's input may nest only so deep; some levels are for what the arguments are put into.
_LEVELS_ABOVE = 20
#: How much the model sees again of arguments that nobody could read.
_SHOWN = 1000


def parse(text: str, most_bytes: int) -> dict[str, Json] | str:
    """The arguments, or what is wrong with them."""
    size = len(text.encode(errors="replace"))
    if size > most_bytes:
        return f"the arguments have {size} bytes, and {most_bytes} are allowed; send less"
    try:
        value = json.loads(text or "{}", parse_constant=_no_number)
    except RecursionError:
        return "the arguments nest too deep"
    except ValueError as error:
        return f"the arguments are not JSON: {error}"
    if not isinstance(value, dict):
        return "the arguments are not a JSON object"
    try:
        json_copy(value, "the object", _LEVELS_ABOVE)
    except BadRequest as error:
        return f"the arguments cannot be used: {error.message}"
    return value


def as_shown(text: str, most_bytes: int) -> str:
    """The arguments as the model sees them again: what is no object would be refused by providers,
    and what is too large would be paid for with every request."""
    if isinstance(parse(text, most_bytes), dict):
        return text or "{}"
    return json_text({"unreadable": text[:_SHOWN]})


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")
