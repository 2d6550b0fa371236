"""New callees on the short way. What many have in common travels once, as a shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any

from afl.kernel.model import CallId, CallSpec, ClaimRequest, State, TaskSpec
from afl.kernel.postgres.packing import array, interval, json_text, word_array
from afl.kernel.postgres.rows import COLUMN, TASK_WIDTH

#: What makes two callees alike: all but the input and the id.
_SHAPE = tuple(each.name for each in fields(TaskSpec) if each.name not in ("input", "id"))
_shape: Callable[[TaskSpec], tuple[Any, ...]] = attrgetter(*_SHAPE)

Shape = tuple[tuple[Any, ...], timedelta]


class Birth:
    """A call to be opened, and its callee."""

    __slots__ = (
        "call_id",
        "caller",
        "depth",
        "id",
        "input",
        "is_eager",
        "key",
        "run",
        "shape",
        "spec",
    )

    def __init__(
        self,
        call: CallSpec,
        caller: str,
        run: str,
        depth: int,
        call_id: CallId,
        new_id: Callable[[], str],
    ) -> None:
        self.spec = call.task
        self.key = call.key
        self.caller = caller
        self.run = run
        self.depth = depth
        self.call_id = call_id
        self.id = call.task.id or new_id()
        self.input = json_text(call.task.input, "the input")
        self.shape: Shape = (_shape(call.task), call.timeout)
        self.is_eager = False

    def row(
        self, now: datetime, fence: int, deadline: datetime | None, request: ClaimRequest | None
    ) -> list[Any]:
        """The row of the callee, which was born running."""
        assert request is not None
        row = list(_common(self.shape[0]))
        row[_ID] = self.id
        row[_RUN] = self.run
        row[_PARENT_CALL] = self.call_id
        row[_CALLER] = self.caller
        row[_DEPTH] = self.depth
        row[_RUN_AT] = row[_CREATED_AT] = now
        row[_FENCE] = fence
        row[_WORKER] = request.worker
        row[_TOKEN] = request.token
        row[_DEADLINE] = deadline
        row[_INPUT] = self.input
        return row


_ID, _RUN, _DEPTH = COLUMN["id"], COLUMN["run"], COLUMN["depth"]
_PARENT_CALL, _CALLER = COLUMN["parent_call"], COLUMN["caller"]
_RUN_AT, _CREATED_AT, _DEADLINE = COLUMN["run_at"], COLUMN["created_at"], COLUMN["deadline"]
_FENCE, _WORKER, _TOKEN = COLUMN["fence"], COLUMN["worker"], COLUMN["claim_token"]
_INPUT = COLUMN["input"]


@lru_cache(maxsize=1024)
def _common(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row of a task of a shape, as far as all of them have the same."""
    spec = _spec(shape)
    retry = spec.retry
    row: list[Any] = [None] * TASK_WIDTH
    for name in ("tenant", "kind", "name", "list", "hold", "priority", "max_crashes", "trace"):
        row[COLUMN[name]] = getattr(spec, name)
    for name, value in {
        "state": State.RUNNING.value,
        "wake": spec.wake.value,
        "commits": 0,
        "max_failures": retry.max_failures,
        "retry_delay": retry.delay,
        "retry_backoff": retry.backoff,
        "retry_max_delay": retry.max_delay,
        "retry_jitter": retry.jitter,
        "crashes": 0,
        "failures": 0,
        "stop_requested": False,
        "seq": 0,
        "dead": False,
    }.items():
        row[COLUMN[name]] = value
    return tuple(row)


def pack_births(births: Sequence[Birth]) -> Mapping[str, str | int | None]:
    """The parameters of the statement `step` that are about calls."""
    if not births:
        return _NO_BIRTHS
    shapes: dict[Shape, int] = {}
    numbers = [shapes.setdefault(birth.shape, len(shapes) + 1) for birth in births]
    return {
        "callers": word_array(birth.caller for birth in births),
        "calls": word_array(birth.call_id for birth in births),
        "callees": word_array(birth.id for birth in births),
        "keys": array(birth.key for birth in births),
        "inputs": array(birth.input for birth in births),
        "shapes": word_array(numbers),
        **_pack_shapes(tuple(shapes)),
    }


@lru_cache(maxsize=1024)
def _pack_shapes(shapes: tuple[Shape, ...]) -> Mapping[str, str | int | None]:
    specs = [_spec(shape) for shape, _ in shapes]
    retries = [spec.retry for spec in specs]
    columns: dict[str, list[str | int | None]] = {
        "tenants": [spec.tenant for spec in specs],
        "kinds": [spec.kind for spec in specs],
        "call_names": [spec.name for spec in specs],
        "call_lists": [spec.list for spec in specs],
        "holds": [spec.hold for spec in specs],
        "priorities": [spec.priority for spec in specs],
        "delays": [interval(spec.delay) for spec in specs],
        "timeouts": [None if spec.timeout is None else interval(spec.timeout) for spec in specs],
        "call_timeouts": [interval(timeout) for _, timeout in shapes],
        "wakes": [spec.wake.value for spec in specs],
        "max_failures": [retry.max_failures for retry in retries],
        "retry_delays": [interval(retry.delay) for retry in retries],
        "retry_backoffs": [repr(retry.backoff) for retry in retries],
        "retry_max_delays": [interval(retry.max_delay) for retry in retries],
        "retry_jitters": [retry.jitter for retry in retries],
        "max_crashes": [spec.max_crashes for spec in specs],
        "traces": [spec.trace for spec in specs],
    }
    return {name: array(values) for name, values in columns.items()}


_NO_BIRTHS: Mapping[str, str | int | None] = dict.fromkeys(
    (
        "callers",
        "calls",
        "callees",
        "keys",
        "inputs",
        "shapes",
        "tenants",
        "kinds",
        "call_names",
        "call_lists",
        "holds",
        "priorities",
        "delays",
        "timeouts",
        "call_timeouts",
        "wakes",
        "max_failures",
        "retry_delays",
        "retry_backoffs",
        "retry_max_delays",
        "retry_jitters",
        "max_crashes",
        "traces",
    )
)


def _spec(shape: tuple[Any, ...]) -> TaskSpec:
    return TaskSpec(**dict(zip(_SHAPE, shape, strict=True)))
