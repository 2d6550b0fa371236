"""Steps as rows of the tree and of the timeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from afl.runtime.at_hand import is_at_hand
from afl.runtime.entities import Run
from afl.runtime.explaining import Explainer
from afl.runtime.reasons import Answer, WhyCode
from afl.runtime.states import ObjectType, RunState, StepState
from afl.runtime.step import ROOT, StepDefinition, WorkflowId
from afl.runtime.step_windows import StepTimes
from afl.runtime.tallies import Tally
from afl.server.backend import Backend
from afl.server.models.runs import StepRow, StepWord, TimePart
from afl.server.run_views.attempts import count_attempts
from afl.server.run_views.parts import parts_of
from afl.server.run_views.words import ENDED, one_line, word_of_task
from afl.server.run_views.work import StepWork, Works, read_works

#: States in which a step has work outside.
_AT_WORK = (StepState.EVENT_TRANSMIT, StepState.FACET_SCRIPTS_CONTINUE)


@dataclass(frozen=True, slots=True)
class Beheld:
    """A step with all that its row tells."""

    step: StepDefinition
    row: StepRow
    work: StepWork | None
    #: why it has not ended
    answer: Answer | None


class RowMaker:
    """Makes rows of the steps of one run."""

    def __init__(self, backend: Backend, run: Run) -> None:
        self._persistence = backend.services.persistence
        self.run = run
        self.explainer = Explainer(self._persistence, backend.services.evaluator.plans)

    def rows(self, steps: Sequence[StepDefinition]) -> list[StepRow]:
        """The rows of steps, in their order."""
        return [each.row for each in self.behold(steps)]

    def behold(self, steps: Sequence[StepDefinition]) -> list[Beheld]:
        """Steps with all that their rows tell, in their order."""
        return list(self._behold(steps)) if steps else []

    def works(self, step: StepDefinition) -> Works:
        """What is known of the outside work of a step."""
        return read_works(self._persistence, self.run, [step])

    def _behold(self, steps: Sequence[StepDefinition]) -> Iterator[Beheld]:
        paths = [step.path for step in steps]
        id_ = WorkflowId(self.run.id)
        times = self._persistence.step_times(id_, paths)
        with_children = self._persistence.have_children(id_, paths)
        works = read_works(self._persistence, self.run, steps)
        loops = any(step.object_type == ObjectType.AND_MAP for step in steps)
        tallies = self._persistence.tally(id_) if loops else []
        for step in steps:
            work = works.of(step)
            word = self.word(step, works)
            answer = None if word in _OVER else self.answer(step, works)
            yield Beheld(
                step,
                _row(
                    step,
                    word,
                    times[step.path],
                    parts=parts_of(word, times[step.path], work, works.now),
                    attempts=count_attempts(step, work),
                    has_children=step.path in with_children,
                    tally=tally_below(step, tallies),
                    answer=answer,
                ),
                work,
                answer,
            )

    def word(self, step: StepDefinition, works: Works) -> StepWord:
        """Where a step is."""
        work = works.of(step)
        ended = ENDED.get(step.state)
        if ended is not None:
            is_dead = work is not None and work.task is not None and work.task.dead
            return "dead_letter" if ended == "failed" and is_dead else ended
        if RunState.is_terminal(self.run.state):
            return "canceled"
        if _is_at_work(step) and work is not None and work.task is not None and work.is_open:
            task = work.task
            due, lost = task.run_at <= works.now, works.is_lost(work)
            return word_of_task(task.kind, task.state, is_due=due, is_lost=lost)
        return "waiting" if step.state == StepState.BLOCK_EXECUTION_BEGIN else "running"

    def answer(self, step: StepDefinition, works: Works) -> Answer:
        """Why a step that has begun has not ended."""
        if not _is_at_work(step):
            return self.explainer.begun(self.run, step)
        work = works.of(step)
        if work is not None and work.is_open:
            return works.why(work)
        if is_at_hand(step):
            sentence = f"`{step.path}` is being done by the worker that advances the run."
            return Answer(WhyCode.RUNNING, sentence, step.path)
        sentence = f"The answer to `{step.path}` has come, and the run has yet to take it in."
        return Answer(WhyCode.ANSWERED, sentence, step.path)


_OVER = ("done", "failed", "skipped", "canceled", "dead_letter")


def _is_at_work(step: StepDefinition) -> bool:
    return step.state in _AT_WORK or (
        step.object_type == ObjectType.AND_SCRIPT
        and step.state == StepState.BLOCK_EXECUTION_CONTINUE
    )


def _row(
    step: StepDefinition,
    word: StepWord,
    times: StepTimes,
    *,
    parts: list[TimePart],
    attempts: int,
    has_children: bool,
    tally: Mapping[str, int],
    answer: Answer | None,
) -> StepRow:
    reused = step.frame.get("reused")
    has_begun = attempts > 0 or has_children
    return StepRow(
        path=step.path,
        name=step.name if step.path != ROOT else step.facet_name,
        depth=step.path.count("/"),
        kind=step.object_type,
        facet=step.facet_name,
        statement=step.statement_id,
        state=word,
        has_children=has_children,
        tally=dict(tally),
        created_at=times.created_at,
        # when a worker took it is not kept: the time in the queue is a part of it
        started_at=times.created_at if has_begun else None,
        ended_at=times.ended_at,
        parts=parts,
        attempts=attempts,
        error=one_line(step.error),
        skipped_because=step.skipped_because,
        reused=reused if isinstance(reused, str) else None,
        why=None if answer is None else answer.sentence,
        why_code=None if answer is None else answer.code.value,
    )


def tally_below(step: StepDefinition, tallies: Sequence[Tally]) -> dict[str, int]:
    """The iterations of a foreach by state. Those of one that is there several times, inside
    another, are told apart only by how many are left."""
    total, left, started = (step.frame.get(name) for name in ("total", "left", "started"))
    if step.object_type != ObjectType.AND_MAP or not isinstance(total, int):
        return {}
    own = [each for each in tallies if each.statement_id == step.statement_id]
    loops = sum(each.steps for each in own if each.object_type == ObjectType.AND_MAP)
    counts: dict[str, int] = {}
    if loops == 1:
        for each in own:
            if each.object_type != ObjectType.AND_MAP:
                word = ENDED.get(each.state, "running")
                counts[word] = counts.get(word, 0) + each.steps
    elif isinstance(left, int) and isinstance(started, int):
        counts = {"done": total - left, "running": left - (total - started)}
    begun = sum(counts.values())
    return {word: n for word, n in {**counts, "queued": total - begun}.items() if n > 0}
