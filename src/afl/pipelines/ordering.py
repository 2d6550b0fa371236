"""Who waits for whom: every dependency is another task, and nobody waits for himself."""

from __future__ import annotations

from collections.abc import Sequence

from afl.pipelines.model import Link
from afl.pipelines.problems import Fix, Mark, Problems

#: So many are enough to begin with, and each costs time to explain.
_MOST_CIRCLES = 20


def check_order(links: Sequence[Link], problems: Problems) -> None:
    """Reports dependencies that are no tasks or come twice, and tasks that can never start."""
    known = {task.id.value: task for task in links}
    for task in links:
        _check_names(task, known, problems)
    for circle in _circles(known):
        _report_circle([known[id] for id in circle], problems)


def _check_names(task: Link, known: dict[str, Link], problems: Problems) -> None:
    seen = set()
    for name in task.depends:
        if name.value not in known:
            problems.add(
                "AFL5007",
                name.range,
                f"the task `{task.id.value}` depends on `{name.value[:40]}`, which is no task",
                "unknown task",
                notes=("a dependency is the id of a task, which is its key under `tasks`",),
                candidates=tuple(known),
            )
        elif name.value in seen:
            problems.add(
                "AFL5009",
                name.range,
                f"the task `{task.id.value}` depends on `{name.value}` twice",
                "once is enough",
                is_warning=True,
            )
        seen.add(name.value)


def _report_circle(circle: Sequence[Link], problems: Problems) -> None:
    first = circle[0]
    following = [*circle[1:], first]
    places = {
        task.id.value: next(name.range for name in task.depends if name.value == other.id.value)
        for task, other in zip(circle, following, strict=True)
    }
    if len(circle) == 1:
        message = f"the task `{first.id.value}` waits for itself"
        advice = "take it out of its `depends`"
    else:
        way = " -> ".join(f"`{task.id.value}`" for task in following)
        advice = "take one of them out of `depends`"
        message = f"these tasks wait for each other: `{first.id.value}` -> {way}"
    problems.add(
        "AFL5008",
        places[first.id.value],
        message,
        "waits for this",
        related=tuple(Mark(places[task.id.value], "and this") for task in circle[1:]),
        fixes=(Fix(advice),),
    )


def _circles(known: dict[str, Link]) -> list[list[str]]:
    """One circle of each knot, as ids of which each depends on the next. Without recursion."""
    found: list[list[str]] = []
    done: set[str] = set()
    for root in known:
        way: list[str] = []
        at: dict[str, int] = {}
        stack = [iter([root])]
        while stack:
            id = next(stack[-1], None)
            if id is None:
                stack.pop()
                if way:
                    done.add(left := way.pop())
                    del at[left]
            elif id in at:
                if len(found) < _MOST_CIRCLES and not any(id in circle for circle in found):
                    found.append(way[at[id] :])
            elif id in known and id not in done:
                at[id] = len(way)
                way.append(id)
                stack.append(iter([name.value for name in known[id].depends]))
    return found
