"""What is put into a store comes back as it was."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

from afl.kernel.model import Retry, TaskId, TaskSpec, Wake
from afl.kernel.port import Store


def check_round_trip(store: Store) -> None:
    """Every field of a spec, with values that are hard to keep."""
    spec = TaskSpec(
        kind="kind",
        name="ns.Name",
        run=None,
        tenant="tenant",
        list="list",
        lane="lane",
        hold=False,
        priority=-7,
        delay=timedelta(days=3, microseconds=1),
        timeout=timedelta(days=400, seconds=1, microseconds=999_999),
        wake=Wake.ANY,
        retry=Retry(9, timedelta(microseconds=1), 1.5, timedelta(days=36_500), False),
        max_crashes=0,
        input={"b": [1, 1.0, 1e300, 2**80, -0.5, True, None, "é\n\"'\\ 𝄞"], "a": {"": []}},
        idem="idem",
        trace="trace",
        id=TaskId("01a1dde1-4710-733e-8468-becacadf3ec4"),
    )
    (task,) = store.enqueue([spec])
    assert task == store.get_task(task.id)
    for field in {each.name for each in fields(spec)} - {"run", "delay", "timeout"}:
        assert getattr(task, field) == getattr(spec, field), field
    assert str(task.run) == str(task.id)
    assert task.run_at - task.created_at == spec.delay
    assert task.deadline is not None
    assert task.deadline - task.created_at == spec.timeout
    assert isinstance(task.input, dict)
    assert list(task.input) == ["b", "a"], "maps keep their order"
