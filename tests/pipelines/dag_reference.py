"""What the tasks of a pipeline come to, in the fewest words: the rules that a run is held against.

A task runs when all that it depends on have completed. If one of them failed or was skipped, it is
skipped. Nothing else stops a task.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence

#: Each task by its id, with those that it depends on.
Dag = Mapping[str, Sequence[str]]


def outcome(dag: Dag, failing: Collection[str]) -> dict[str, str]:
    """Whether each task is done, failed or skipped."""
    found: dict[str, str] = {}
    while len(found) < len(dag):
        for id, parents in dag.items():
            if id in found or any(parent not in found for parent in parents):
                continue
            if any(found[parent] != "done" for parent in parents):
                found[id] = "skipped"
            else:
                found[id] = "failed" if id in failing else "done"
    return found


def random_dag(chance: random.Random) -> tuple[Dag, set[str]]:
    """A graph of up to 12 tasks in any order of writing, and the tasks that are to fail."""
    size = chance.randint(1, 12)
    ids = [f"t{number}" for number in range(size)]
    density = chance.choice([0.1, 0.3, 0.6])
    edges = {
        id: [other for other in ids[:position] if chance.random() < density]
        for position, id in enumerate(ids)
    }
    written = chance.sample(ids, size)
    dag = {id: chance.sample(edges[id], len(edges[id])) for id in written}
    badness = chance.choice([0.0, 0.1, 0.3])
    return dag, {id for id in ids if chance.random() < badness}
