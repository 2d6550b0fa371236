"""The levels of tasks: a list, a short name and a priority, registered before a task has them.

A claim goes through the registered levels only, so a level has to be there when its first task is.
Each process registers a level once, in a transaction of its own, and remembers that; the sweep
registers what was forgotten, as after a change by hand.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from afl.kernel.model import TaskSpec
from afl.kernel.postgres.database import Database
from afl.kernel.postgres.packing import Parameters, array
from afl.kernel.postgres.statements import SQL

#: A list, a name and a priority.
Level = tuple[str, str, int]

_MANY = 10_000
#: Mending goes through the index of all that is ready, where an open snapshot can keep much of the
#: past: it rests for so long, and for so many times what it took.
_REST_SECONDS = 60.0
_REST_TIMES = 100


class Levels:
    """What this process knows to be registered in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: set[Level] = set()
        self._mend_at = 0.0

    def register(self, specs: Iterable[TaskSpec]) -> None:
        """Makes sure that tasks can be claimed which are about to be made of these specs."""
        known = self._known
        new = {
            level for spec in specs if (level := (spec.list, spec.name, spec.priority)) not in known
        }
        if not new:
            return
        parameters = pack_levels(new)
        self._database.run(lambda cursor: cursor.execute(SQL["register_levels"], parameters))
        if len(known) > _MANY:
            known.clear()
        known |= new

    def mend(self) -> None:
        """Registers what is missing, unless that was done lately."""
        began = time.monotonic()
        if began < self._mend_at:
            return
        self._database.row(SQL["mend_levels"], {})
        ended = time.monotonic()
        self._mend_at = ended + max(_REST_SECONDS, _REST_TIMES * (ended - began))


def pack_levels(levels: Iterable[Level]) -> Parameters:
    """The parameters of the statement `register_levels`."""
    lists, names, priorities = zip(*levels, strict=True)
    return {"lists": array(lists), "names": array(names), "priorities": array(priorities)}
