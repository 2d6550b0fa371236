"""The named statements of `sql/*.sql`, read once.

`{agent}`, `{budget}` and `{wait}` stand for the columns of an agent aliased `a`, of a budget `b`
and of a wait `w`, in the order in which `rows` reads them; `{task}` for those of a task `t`, which
the kernel reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from afl.kernel.postgres.rows import TASK_COLUMNS
from afl.kernel.postgres.statements import Hot, numbered, parse
from afl.turns.postgres.rows import AGENT_COLUMNS, BUDGET_COLUMNS, WAIT_COLUMNS

_COLUMNS = {
    "{agent}": AGENT_COLUMNS,
    "{budget}": BUDGET_COLUMNS,
    "{wait}": WAIT_COLUMNS,
    "{task}": TASK_COLUMNS,
}


def _load() -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    folder = files("afl.turns.postgres").joinpath("sql")
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        for name, text in parse(file.read_text(encoding="utf-8")):
            if name in found:
                raise ValueError(f"two statements are named {name}")
            for mark, columns in _COLUMNS.items():
                text = text.replace(mark, columns)
            found[name] = text.encode()
    return found


SQL: Mapping[str, bytes] = _load()
"""Every statement by its name."""


def hot(name: str) -> Hot:
    """The named statement as it is sent without waiting for it."""
    return numbered(f"turns_{name}", SQL[name].decode())
