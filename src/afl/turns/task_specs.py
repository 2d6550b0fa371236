"""Tasks to be made, as JSON: for a task that makes others, such as a join, in its input. Pure."""

from __future__ import annotations

from datetime import timedelta

from afl.kernel.model import MAX_CRASHES, Json, TaskSpec, Wake
from afl.turns.errors import BadBrief

_TEXTS = ("kind", "name", "tenant", "list", "lane", "trace")
_COUNTS = ("priority", "max_crashes")
_KEYS = frozenset((*_TEXTS, *_COUNTS, "hold", "wake", "timeout_seconds", "input"))


def spec_to_json(spec: TaskSpec) -> dict[str, Json]:
    """What a callee needs to be made again; what is as usual is left out."""
    plain = TaskSpec("", "")
    told: dict[str, Json] = {
        name: value
        for name in (*_TEXTS, *_COUNTS, "hold", "input")
        if (value := getattr(spec, name)) != getattr(plain, name)
    }
    if spec.wake is not plain.wake:
        told["wake"] = spec.wake.value
    if spec.timeout is not None:
        told["timeout_seconds"] = spec.timeout.total_seconds()
    return told


def spec_from_json(given: Json) -> TaskSpec:
    """Raises `BadBrief`, which says what is wrong."""
    if not isinstance(given, dict) or not {"kind", "name"} <= given.keys() <= _KEYS:
        more = ", ".join(f"`{key}`" for key in sorted(_KEYS - {"kind", "name"}))
        raise BadBrief(
            f"a task is described by `kind`, `name` and, where needed, {more}; "
            f"this is {given!r:.200}"
        )
    lane, trace, timeout = given.get("lane"), given.get("trace"), given.get("timeout_seconds")
    return TaskSpec(
        kind=_text(given, "kind"),
        name=_text(given, "name"),
        tenant=_text(given, "tenant", "default"),
        list=_text(given, "list", "default"),
        lane=None if lane is None else _text(given, "lane"),
        hold=given.get("hold", True) is not False,
        priority=_count(given, "priority", 0),
        timeout=None if timeout is None else timedelta(seconds=_seconds(timeout)),
        wake=_wake(given.get("wake", Wake.ALL.value)),
        max_crashes=_count(given, "max_crashes", MAX_CRASHES),
        input=given.get("input"),
        trace=None if trace is None else _text(given, "trace"),
    )


def _text(given: dict[str, Json], key: str, default: str = "") -> str:
    value = given.get(key, default)
    if not isinstance(value, str):
        raise BadBrief(f"the `{key}` of a task is text; this is {value!r:.200}")
    return value


def _count(given: dict[str, Json], key: str, default: int) -> int:
    value = given.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadBrief(f"the `{key}` of a task is a whole number; this is {value!r:.200}")
    return value


def _seconds(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise BadBrief(f"the `timeout_seconds` of a task are above zero; this is {value!r:.200}")
    return float(value)


def _wake(value: Json) -> Wake:
    if value not in [wake.value for wake in Wake]:
        raise BadBrief(f"the `wake` of a task is `all` or `any`; this is {value!r:.200}")
    return Wake(value)
