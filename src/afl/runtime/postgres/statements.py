"""The named statements of `sql/*.sql`, read once.

`{run}`, `{step}` and `{no_step}` stand for the columns of a run aliased `r` and of a step aliased
`s`, in the order in which `rows` reads them, and for as many nulls as the latter. `{task}` stands
for those of a task of the kernel aliased `t`, `{schedule}` for those of a schedule aliased `c`, and
`{due}` for those of one that was taken. `{wanted}`, `{named}`, `{named_counts}` and `{looked_for}`
stand for parts of a search for runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from afl.kernel.postgres.rows import TASK_COLUMNS
from afl.kernel.postgres.statements import Hot, numbered, parse
from afl.runtime.postgres.rows import NO_STEP, RUN_COLUMNS, STEP_COLUMNS
from afl.runtime.postgres.run_conditions import LOOKED_FOR, NAMED, NAMED_COUNTS, WANTED
from afl.runtime.postgres.schedule_rows import DUE_COLUMNS, SCHEDULE_COLUMNS

_COLUMNS = {
    "{run}": RUN_COLUMNS,
    "{step}": STEP_COLUMNS,
    "{no_step}": NO_STEP,
    "{task}": TASK_COLUMNS,
    "{schedule}": SCHEDULE_COLUMNS,
    "{due}": DUE_COLUMNS,
    "{wanted}": WANTED,
    "{named}": NAMED,
    "{named_counts}": NAMED_COUNTS,
    "{looked_for}": LOOKED_FOR,
}


def _load() -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    folder = files("afl.runtime.postgres").joinpath("sql")
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
    return numbered(name, SQL[name].decode())
