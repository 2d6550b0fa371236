"""Values to parameters. Specs travel as one JSON text, what users store as an array beside it, so
that it is kept letter by letter. Arrays are written here, in a fifth of the time that the driver
takes for them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any

from afl.base.ids import IdSource
from afl.kernel.model import CallId, ClaimRequest, Close, Commit, Json, Suspend, TaskId, TaskSpec
from afl.kernel.requests import json_copy
from afl.kernel.rules import card_hash

_MICROSECOND = timedelta(microseconds=1)
#: One encoder for all: `json.dumps` would make one for each value.
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_PLAIN = frozenset((str, int, bool, type(None)))
#: How deep a value is looked through for being plain.
_FLAT = 8

Parameters = dict[str, str | int | None]


def json_text(value: Json, where: str = "the value") -> str | None:
    """JSON text of what a user wants stored; null is stored as nothing."""
    if value is None:
        return None
    if _is_plain(value, _FLAT):
        text = _dumps(value)
        if text.isascii() and "\\u0000" not in text:
            return text
    return _dumps(json_copy(value, where))


def _is_plain(value: Json, depth: int) -> bool:
    """Whether it is of types that `json_copy` takes, and not deep: most values are, and to see that
    takes a fraction of the time of a copy."""
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind is dict and depth > 0:
        assert isinstance(value, dict)
        for key, item in value.items():
            if type(key) is not str:
                return False
            if type(item) not in _PLAIN and not _is_plain(item, depth - 1):
                return False
        return True
    if kind is list and depth > 0:
        assert isinstance(value, list)
        return all(type(item) in _PLAIN or _is_plain(item, depth - 1) for item in value)
    return False


def array(values: Iterable[str | int | None]) -> str:
    """An array in the text form of PostgreSQL."""
    return "{" + ",".join([element(value) for value in values]) + "}"


def word_array(values: Iterable[str | int | None]) -> str:
    """The same of values that need no quotes: ids, numbers, words of ours."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def element(value: str | int | None) -> str:
    """One element of such an array."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        if "\\" in value:
            value = value.replace("\\", "\\\\")
        if '"' in value:
            value = value.replace('"', '\\"')
        return f'"{value}"'
    return str(value)


def interval(span: timedelta) -> str:
    """A span of time in the text form of PostgreSQL, without days: not all are equally long."""
    seconds, rest = divmod(microseconds(span), 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}.{rest:06}"


def microseconds(span: timedelta) -> int:
    return span // _MICROSECOND


def pack_spec(spec: TaskSpec, number: int, task: str) -> dict[str, Any]:
    """A spec as `afl.insert_tasks_v1` reads it."""
    retry = spec.retry
    return {
        "n": number,
        "id": task,
        "tenant": spec.tenant,
        "run": spec.run,
        "kind": spec.kind,
        "name": spec.name,
        "list": spec.list,
        "lane": spec.lane,
        "hold": spec.hold,
        "priority": spec.priority,
        "delay_us": microseconds(spec.delay),
        "timeout_us": None if spec.timeout is None else microseconds(spec.timeout),
        "wake": spec.wake.value,
        "max_failures": retry.max_failures,
        "retry_delay_us": microseconds(retry.delay),
        "retry_backoff": retry.backoff,
        "retry_max_delay_us": microseconds(retry.max_delay),
        "retry_jitter": retry.jitter,
        "max_crashes": spec.max_crashes,
        "idem": spec.idem,
        "trace": spec.trace,
    }


def pack_specs(
    specs: Sequence[TaskSpec], ids: IdSource, redrives: TaskId | None = None
) -> Parameters:
    """The parameters of `enqueue`."""
    tasks = [spec.id or ids.new_id() for spec in specs]
    packed = [
        {**pack_spec(spec, n, task), "redrives": redrives}
        for n, (spec, task) in enumerate(zip(specs, tasks, strict=True), 1)
    ]
    return {
        "specs": _dumps(packed),
        "inputs": array(json_text(spec.input, "the input") for spec in specs),
        "ids": array(tasks),
        "tenants": array(spec.tenant for spec in specs),
        "lanes": _unless_empty([spec.lane for spec in specs]),
        "idems": _unless_empty([spec.idem for spec in specs]),
    }


@lru_cache(maxsize=1024)
def pack_request(request: ClaimRequest | None) -> Mapping[str, str | int | None]:
    """What a claim, or a commit with one, asks for; a worker asks for the same again and again."""
    if request is None:
        return {"worker": None, "names": None, "lists": None, "n": 0, "token": None}
    return {
        "worker": request.worker,
        "names": array(request.names),
        "lists": array(request.lists),
        "n": max(request.n, 0),
        "token": request.token,
    }


def pack_commits(
    commits: Sequence[Commit],
    call_ids: Sequence[CallId],
    ids: IdSource,
    request: ClaimRequest | None,
    *,
    claim: bool,
) -> Parameters:
    """The parameters of `commit`; the ids are for its calls, should they be new."""
    closes = [each.then if isinstance(each.then, Close) else None for each in commits]
    return {
        "fences": array(each.fence for each in commits),
        "numbers": array(each.number for each in commits),
        "thens": array(_then(each) for each in commits),
        "outcomes": array(None if each is None else each.outcome.value for each in closes),
        "results": array(None if each is None else json_text(each.result) for each in closes),
        "errors": array(None if each is None else json_text(each.error) for each in closes),
        "permanents": array(each is not None and each.permanent for each in closes),
        "cards": array(len(each.cards) for each in commits),
        **_pack_cards(commits),
        **_pack_applied(commits),
        **_pack_calls(commits, call_ids, ids),
        **pack_request(request),
        "claim": claim,
    }


def _then(commit: Commit) -> str:
    if isinstance(commit.then, Close):
        return "close"
    return "suspend" if isinstance(commit.then, Suspend) else "continue"


_NO_CARDS: Mapping[str, str | int | None] = dict.fromkeys(
    ("card_at", "card_hashes", "card_kinds", "card_contents")
)
_NO_APPLIED: Mapping[str, str | int | None] = dict.fromkeys(("applied_at", "applied"))
_NO_CALLS: Mapping[str, str | int | None] = dict.fromkeys(
    ("calls", "inputs", "call_at", "call_ids", "call_keys", "call_lanes", "call_tenants")
)


def _pack_cards(commits: Sequence[Commit]) -> Mapping[str, str | int | None]:
    cards = [(at, card) for at, each in enumerate(commits, 1) for card in each.cards]
    if not cards:
        return _NO_CARDS
    contents = [json_copy(card.content, "a card") for _, card in cards]
    return {
        "card_at": array(at for at, _ in cards),
        "card_hashes": array(
            card_hash(card.kind, content)
            for (_, card), content in zip(cards, contents, strict=True)
        ),
        "card_kinds": array(card.kind for _, card in cards),
        "card_contents": array(None if each is None else _dumps(each) for each in contents),
    }


def _pack_applied(commits: Sequence[Commit]) -> Mapping[str, str | int | None]:
    applied = [(at, call) for at, each in enumerate(commits, 1) for call in each.applied]
    if not applied:
        return _NO_APPLIED
    return {
        "applied_at": array(at for at, _ in applied),
        "applied": array(call for _, call in applied),
    }


def _pack_calls(
    commits: Sequence[Commit], call_ids: Sequence[CallId], ids: IdSource
) -> Mapping[str, str | int | None]:
    calls = [(at, call) for at, each in enumerate(commits, 1) for call in each.calls]
    if not calls:
        return _NO_CALLS
    packed = [
        {
            **pack_spec(call.task, n, call.task.id or ids.new_id()),
            "at": at,
            "call": call_id,
            "key": call.key,
            "call_timeout_us": microseconds(call.timeout),
        }
        for n, ((at, call), call_id) in enumerate(zip(calls, call_ids, strict=True), 1)
    ]
    lanes = _unless_empty([call.task.lane for _, call in calls])
    return {
        "calls": _dumps(packed),
        "inputs": array(json_text(call.task.input, "the input") for _, call in calls),
        "call_at": array(at for at, _ in calls),
        "call_ids": array(call_ids),
        "call_keys": array(call.key for _, call in calls),
        "call_lanes": lanes,
        "call_tenants": None if lanes is None else array(call.task.tenant for _, call in calls),
    }


def _unless_empty(values: list[str | None]) -> str | None:
    """None if there is no value among them: what is not there need not be looked at."""
    return array(values) if any(value is not None for value in values) else None
