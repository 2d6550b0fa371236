"""The work: roots that call two middles, which call two leaves each. Only leaves have effects.

    root 7 -> 7/m0 -> 7/m0/l0, 7/m0/l1
           -> 7/m1 -> 7/m1/l0, 7/m1/l1

A leaf's result is the value that the sink has for its effect; everybody above adds up. So a root's
result can be told from the sink's file alone.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from afl.kernel.model import CallSpec, TaskSpec, Wake

ROOT, MIDDLE, LEAF = "chaos.Root", "chaos.Middle", "chaos.Leaf"
NAMES = (ROOT, MIDDLE, LEAF)
#: a root, two middles, four leaves
TASKS_PER_ROOT = 7
#: how many roots share their lanes; no lane is shared between groups
GROUP_SIZE = 50
_LANES = 4
_TIMEOUT = timedelta(minutes=10)
#: tasks lose their workers all the time here; none is to be given up for that
_MAX_CRASHES = 60


def root_spec(number: int) -> TaskSpec:
    return _spec(ROOT, f"{number}", priority=0, idem=f"root-{number}")


def call_specs(name: str, key: str) -> tuple[CallSpec, ...]:
    """What a root or a middle calls."""
    if name == ROOT:
        # every other middle is woken by each answer and keeps what it has taken in its journal
        callees = {f"m{n}": _middle(f"{key}/m{n}", Wake.ANY if n else Wake.ALL) for n in range(2)}
    else:
        callees = {f"l{n}": _leaf(f"{key}/l{n}") for n in range(2)}
    return tuple(CallSpec(key=key, task=spec, timeout=_TIMEOUT) for key, spec in callees.items())


def root_of(key: str) -> int:
    return int(key.partition("/")[0])


def leaf_keys(root: int) -> list[str]:
    return [f"{root}/m{m}/l{leaf}" for m in range(2) for leaf in range(2)]


def _middle(key: str, wake: Wake) -> TaskSpec:
    # these let go of their lane while they wait and queue for it again when they are answered
    return _spec(MIDDLE, key, priority=1, wake=wake, lane=_lane(key, 1), hold=False)


def _leaf(key: str) -> TaskSpec:
    return _spec(LEAF, key, priority=2, lane=_lane(key, 2) if key.endswith("/l0") else None)


def _lane(key: str, which: int) -> str | None:
    """A lane that the group shares, for some of the roots."""
    root = root_of(key)
    if root % 4 != which:
        return None
    return f"lane-{root // GROUP_SIZE}-{which}-{root // 4 % _LANES}"


def _spec(name: str, key: str, **more: Any) -> TaskSpec:  # noqa: ANN401 - fields of the spec
    return TaskSpec(
        kind="step",
        name=name,
        input=key,
        timeout=_TIMEOUT,
        max_crashes=_MAX_CRASHES,
        **more,
    )
