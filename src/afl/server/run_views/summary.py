"""The steps of a run counted by statement and state, and the graph with these counts. The counts
are kept by the commits: nothing is counted here but what is under way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from afl.runtime.definition_graph import definition_graph
from afl.runtime.entities import Run
from afl.runtime.history import WORK, OpenWork
from afl.runtime.states import ObjectType, RunState, StepState
from afl.runtime.step import WorkflowId
from afl.runtime.tallies import Tally
from afl.server.backend import Backend
from afl.server.models.runs import (
    GraphView,
    RunSummary,
    StatementTally,
    StepWord,
)
from afl.server.program_views.declarations import graph_view
from afl.server.run_views.words import ENDED, progress_of, word_of_task

#: How many open tasks are looked at. Where there are more, those that were not seen count as
#: running: a summary has to come at once however large a run is.
_LOOKED_AT = 10_000
#: Where steps are that have not ended, and that nothing more is known of.
_UNKNOWN: StepWord = "running"

#: Words and how many steps they are true of.
Counts = Counter[str]


def summary_of(backend: Backend, run: Run) -> RunSummary:
    """The steps that do work, counted."""
    persistence = backend.services.persistence
    mark = persistence.change_mark(WorkflowId(run.id))
    tallies = persistence.tally(WorkflowId(run.id))
    working = [each for each in tallies if each.object_type in WORK]
    counts = _counted(backend, run, working)
    facets = {each.statement_id: each.facet_name for each in working}
    total: Counts = Counter()
    for each in counts.values():
        total.update(each)
    return RunSummary(
        run=run.id,
        mark=mark,
        progress=progress_of(tallies),
        states=_shown(total),
        statements=[
            StatementTally(
                statement=statement,
                name=statement.rpartition("/")[2],
                facet=facets[statement],
                states=_shown(words),
            )
            for statement, words in counts.items()
        ],
    )


def graph_of(backend: Backend, run: Run) -> GraphView:
    """The definition graph of the workflow, with the states of the steps of each statement."""
    plan = backend.services.evaluator.plans.get(run.program)
    graph = definition_graph(plan, run.workflow)
    tallies = backend.services.persistence.tally(WorkflowId(run.id))
    counts = _counted(backend, run, _instances(tallies))
    return graph_view(graph, {id_: _shown(count) for id_, count in counts.items()})


def _instances(tallies: Sequence[Tally]) -> list[Tally]:
    """What stands for a node: of a foreach its iterations, which have its statement too."""
    loops = {each.statement_id for each in tallies if each.object_type == ObjectType.AND_MAP}
    iterated = {
        each.statement_id
        for each in tallies
        if each.statement_id in loops and each.object_type != ObjectType.AND_MAP
    }
    return [
        each
        for each in tallies
        if each.object_type != ObjectType.AND_MAP or each.statement_id not in iterated
    ]


def _open_work(backend: Backend, run: Run) -> list[OpenWork]:
    if RunState.is_terminal(run.state):
        return []
    return backend.services.persistence.open_work(WorkflowId(run.id), _LOOKED_AT)


def _counted(backend: Backend, run: Run, tallies: Sequence[Tally]) -> Mapping[str, Counts]:
    """Words by statement. The rows say whether a step has ended, its task where it is if not."""
    counts: dict[str, Counts] = {}
    for tally in tallies:
        words = counts.setdefault(tally.statement_id, Counter())
        words[_word(run, tally.state)] += tally.steps
    for work in _open_work(backend, run):
        word = word_of_task(work.kind, work.task_state, is_due=work.is_due, is_lost=work.is_lost)
        _move(counts, work.statement_id, _UNKNOWN, word, work.steps)
    if any(words["failed"] for words in counts.values()):
        dead = backend.services.persistence.dead_work(WorkflowId(run.id), _LOOKED_AT)
        for statement, steps in dead.items():
            _move(counts, statement, "failed", "dead_letter", steps)
    return counts


def _move(
    counts: Mapping[str, Counts], statement: str, before: StepWord, after: StepWord, steps: int
) -> None:
    """Counts steps as something else; a commit may have come between the two reads."""
    words = counts.get(statement)
    if words is not None:
        moved = min(steps, words[before])
        words[before] -= moved
        words[after] += moved


def _word(run: Run, state: str) -> StepWord:
    ended = ENDED.get(state)
    if ended is not None:
        return ended
    if RunState.is_terminal(run.state):
        return "canceled"
    return "waiting" if state == StepState.BLOCK_EXECUTION_BEGIN else _UNKNOWN


def _shown(counts: Counts) -> dict[str, int]:
    return {word: count for word, count in counts.items() if count > 0}
