"""Scripts of models in files: JSON for fixed replies, Python where a reply depends on the request.

    {"replies": [{"text": "Let me see.", "calls": [{"name": "search", "arguments": {"q": "x"}}]},
                 {"text": "Found it.", "usage": {"input": 900, "output": 40}},
                 {"busy": "overloaded", "after_seconds": 2},
                 {"refused": "no such model"}],
     "rate": {"request": "0.01"}}

A reply may also have `thinking`, `finish`, `delay_seconds`, `piece`, and `failures`: a list of busy
and refused ones that come before it. A Python file sets `replies` to a list or a function, as
`ScriptedModel` takes them, and `rate` if it costs something.
"""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import cast

from afl.turns.errors import ModelBusy, ModelFailure, ModelRefused
from afl.turns.model import Usage
from afl.turns.models.scripted import Answer, Call, Script, ScriptedModel, Step
from afl.turns.prices import Rate

_ANSWER = {"text", "calls", "thinking", "usage", "finish", "delay_seconds", "failures", "piece"}


def load_script(path: Path, name: str) -> ScriptedModel:
    """The model that the file scripts.

    Raises:
        ModelRefused: the file cannot be read, or is no script; the message says what is wrong.
    """
    try:
        if path.suffix == ".py":
            return _from_python(path, name)
        return _from_json(json.loads(path.read_text(encoding="utf-8")), name)
    except OSError as error:
        raise ModelRefused(f"{name}: {path} cannot be read: {error.strerror}.") from error
    except (ValueError, TypeError, KeyError, InvalidOperation, AttributeError) as error:
        raise ModelRefused(f"{name}: {path} is not a script: {error!r}.") from error


def _from_python(path: Path, name: str) -> ScriptedModel:
    found = runpy.run_path(str(path))
    if "replies" not in found:
        raise ValueError("it does not set `replies`")
    return ScriptedModel(
        cast("Script", found["replies"]), name, cast("Rate | None", found.get("rate"))
    )


def _from_json(found: Mapping[str, object], name: str) -> ScriptedModel:
    replies = [_step(reply) for reply in _list(found["replies"])]
    rate = found.get("rate")
    return ScriptedModel(replies, name, None if rate is None else _rate(_mapping(rate)))


def _step(found: object) -> Step:
    reply = _mapping(found)
    if "busy" in reply or "refused" in reply:
        return _failure(reply)
    _only(reply, _ANSWER)
    usage = reply.get("usage")
    finish = reply.get("finish")
    return Answer(
        text=str(reply.get("text", "")),
        calls=tuple(_call(call) for call in _list(reply.get("calls", []))),
        thinking=str(reply.get("thinking", "")),
        usage=None if usage is None else Usage(**cast("dict[str, int]", _mapping(usage))),
        finish=None if finish is None else str(finish),
        delay_seconds=float(str(reply.get("delay_seconds", 0))),
        failures=tuple(_failure(_mapping(each)) for each in _list(reply.get("failures", []))),
        piece=int(str(reply.get("piece", 8))),
    )


def _failure(found: Mapping[str, object]) -> ModelFailure:
    _only(found, {"busy", "refused", "after_seconds"})
    if "refused" in found:
        return ModelRefused(str(found["refused"]))
    after = found.get("after_seconds")
    return ModelBusy(
        str(found["busy"]), after=None if after is None else timedelta(seconds=float(str(after)))
    )


def _call(found: object) -> Call:
    call = _mapping(found)
    _only(call, {"name", "arguments", "id"})
    arguments = call.get("arguments", {})
    id = call.get("id")
    return Call(
        name=str(call["name"]),
        arguments=arguments if isinstance(arguments, str) else dict(_mapping(arguments)),
        id=None if id is None else str(id),
    )


def _rate(found: Mapping[str, object]) -> Rate:
    return Rate(**{key: Decimal(str(value)) for key, value in found.items()})


def _mapping(found: object) -> Mapping[str, object]:
    if not isinstance(found, dict):
        raise TypeError(f"{found!r} should be an object")
    return found


def _list(found: object) -> list[object]:
    if not isinstance(found, list):
        raise TypeError(f"{found!r} should be a list")
    return found


def _only(found: Mapping[str, object], known: set[str]) -> None:
    unknown = sorted(found.keys() - known)
    if unknown:
        raise ValueError(f"{unknown[0]!r} is unknown; there are {', '.join(sorted(known))}")
