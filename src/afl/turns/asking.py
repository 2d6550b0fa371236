"""What a turn was asked, as its task says. Pure.

Who it is and what it was given never change, so they are read from the task whenever it is claimed;
only the brief is made once, and kept as the first card.
"""

from __future__ import annotations

from afl.kernel.model import Json, Task
from afl.turns.model import AgentId, Brief
from afl.turns.ports import Briefing


def briefing(task: Task, brief: Brief) -> Briefing:
    """A brief, with what the task gives to go with it."""
    given = task.input if isinstance(task.input, dict) else {}
    if "agent" in given:
        context = given.get("context")
        boxes: list[Json] = context if isinstance(context, list) else []
        return Briefing(
            brief,
            _map(given.get("arguments")),
            context=tuple(str(box) for box in boxes),
            agent=AgentId(str(given["agent"])),
        )
    facet, step = given.get("facet"), given.get("step")
    return Briefing(
        brief,
        _map(given.get("params")),
        facet=facet if isinstance(facet, str) else None,
        step=step if isinstance(step, str) else None,
    )


def _map(value: Json) -> dict[str, Json]:
    return dict(value) if isinstance(value, dict) else {}
