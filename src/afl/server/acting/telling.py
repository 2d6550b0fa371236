"""What an action would come to: the same checks that it makes, and a sentence for people."""

from __future__ import annotations

from dataclasses import dataclass

from afl.kernel.model import CallStatus, TaskId
from afl.runtime.conversions import WrongValue
from afl.runtime.entities import Run
from afl.runtime.errors import BadInputs, NotSkippable, RunEnded, UnknownStep
from afl.runtime.forking import Forks
from afl.runtime.operations import empty_result
from afl.runtime.plan import FacetPlan
from afl.runtime.states import RunState
from afl.runtime.step import ROOT, step_id
from afl.server.backend import Backend
from afl.server.errors import BadForm
from afl.server.models.runs import ActionForm, Progress
from afl.server.run_views.lines import run_line


@dataclass(frozen=True, slots=True)
class Wish:
    """An action that somebody asks for."""

    backend: Backend
    run: Run
    verb: str
    form: ActionForm

    @property
    def step(self) -> str:
        """The step that it is about.

        Raises:
            BadForm: none was named.
        """
        if self.form.step is None:
            raise BadForm(f"To {self.verb} needs the path of a step: give `step`.")
        return self.form.step

    @property
    def has_ended(self) -> bool:
        return RunState.is_terminal(self.run.state)

    def progress(self) -> Progress:
        return run_line(self.backend, self.run).progress


@dataclass(frozen=True, slots=True)
class Told:
    """What an action would do."""

    sentence: str
    reused: int | None = None


def told(wish: Wish) -> Told:
    """What an action would do, and what not.

    Raises:
        AflError: it would be refused; as the action itself says it.
    """
    match wish.verb:
        case "cancel":
            return Told(_cancel(wish))
        case "pause" | "resume":
            return Told(_pause(wish))
        case "retry":
            return _retry(wish)
        case "rerun":
            return Told(
                f"Starts a new run of {wish.run.workflow} with the same inputs and the same "
                "program. Nothing is taken over, and the old run stays as it is."
            )
        case "fork":
            return Told(_fork(wish))
        case _:
            return Told(_answer(wish))


def _cancel(wish: Wish) -> str:
    if wish.run.state == RunState.CANCELED:
        return "The run is canceled already, so nothing changes."
    if wish.has_ended:
        raise RunEnded(f"Run {wish.run.id} has {wish.run.state} already, so it cannot be canceled.")
    progress = wish.progress()
    first = (
        "The worker that advances it loses it at once."
        if wish.form.force
        else "A worker that is advancing it right now finishes that first."
    )
    return (
        f"Stops the run and the runs that it has called: {_steps(progress.open, 'open')} "
        f"{_be(progress.open)} given up, and {_steps(progress.done, 'finished')} "
        f"{_keep(progress.done)}. {first}"
    )


def _pause(wish: Wish) -> str:
    pause = wish.verb == "pause"
    if wish.has_ended:
        raise RunEnded(
            f"Run {wish.run.id} has {wish.run.state} already, so it cannot be {wish.verb}d."
        )
    if wish.run.pause_requested is pause:
        return f"The run is {'paused already' if pause else 'not paused'}, so nothing changes."
    progress = wish.progress()
    if not pause:
        return (
            f"Lets the run, and the runs that it has called, go on with "
            f"{_steps(progress.open, 'open')}. Nothing that is done is done again."
        )
    return (
        "Lets nothing more start in the run, nor in the runs that it has called. What workers "
        f"have begun of the {_steps(progress.open, 'open')} goes on to its end."
    )


def _retry(wish: Wish) -> Told:
    redo = _forks(wish).check_retry(wish.run, wish.form.step, force=wish.form.force)
    progress = wish.progress()
    again = _steps(len(redo), "failed") if redo else "what had not finished"
    return Told(
        f"Starts a new run that takes over {_steps(progress.done, 'finished')} and does {again} "
        "again. The old run stays as it is.",
        progress.done,
    )


def _fork(wish: Wish) -> str:
    step = wish.form.step or ROOT
    edited = _forks(wish).check_fork(wish.run, step, wish.form.values or {}, force=wish.form.force)
    names = ", ".join(f"`{name}`" for name in edited)
    given = f" with other values for {names}" if names else ""
    done = _steps(wish.progress().done, "finished")
    if step == ROOT:
        return (
            f"Starts a new run{given}. Of {done}, those whose arguments stay the same are taken "
            "over, and the rest is done again. The old run stays as it is."
        )
    return (
        f"Starts a new run from `{step}` on{given}. Of {done}, those that do not depend on it are "
        "taken over, and the rest is done again. The old run stays as it is."
    )


def _answer(wish: Wish) -> str:
    """Of `skip`, `continue` and `fail`: they answer the outside work of a step."""
    step, facet = wish.step, waiting_facet(wish)
    if not is_open(wish):
        return f"`{step}` has its answer already, so nothing changes."
    stops = "A worker that is at it is told to stop, and what it answers does not count."
    match wish.verb:
        case "skip":
            result = empty_result(facet)
            if isinstance(result, str):
                raise NotSkippable(
                    f"Step `{step}` cannot be skipped: `{facet.facet.name}` returns `{result}`, "
                    "which has no default and cannot be null. Give the step its result instead."
                )
            names = ", ".join(f"`{name}`" for name in result) or "none"
            return (
                f"Takes `{step}` as done without its work; its results ({names}) are their "
                f"defaults or null. {stops}"
            )
        case "continue":
            _check_result(wish, facet)
            return f"Takes `{step}` as done with the result that is given. {stops}"
        case _:
            return (
                f"Fails `{step}`, without another attempt; what catches its failure goes on, else "
                f"the run fails. {stops}"
            )


def waiting_facet(wish: Wish) -> FacetPlan:
    """What the step of an action calls.

    Raises:
        UnknownStep: it is not there, or calls nothing.
    """
    row = wish.backend.services.persistence.get_step(step_id(wish.run.id, wish.step))
    if row is None or not row.facet_name:
        raise UnknownStep(
            f"Run {wish.run.id} has no step `{wish.step}` that outside work is done for. "
            f"`afl runs tree {wish.run.id}` shows its steps."
        )
    return wish.backend.services.evaluator.plans.get(wish.run.program).facet(row.facet_name)


def is_open(wish: Wish) -> bool:
    """Whether the outside work of a step waits for its answer."""
    kernel = wish.backend.services.persistence.kernel
    call = kernel.find_call(TaskId(wish.run.id), wish.step)
    return call is not None and call.status is CallStatus.OPEN and not wish.has_ended


def _check_result(wish: Wish, facet: FacetPlan) -> None:
    plan = wish.backend.services.evaluator.plans.get(wish.run.program)
    try:
        plan.conversions.record(wish.form.values or {}, facet.facet.returns, facet.facet.name)
    except WrongValue as error:
        raise BadInputs(f"Step `{wish.step}` cannot have this result: {error}") from error


def _forks(wish: Wish) -> Forks:
    services = wish.backend.services
    return Forks(services.persistence, services.evaluator.plans)


def _steps(count: int, kind: str) -> str:
    return f"{count:,} {kind} step{'' if count == 1 else 's'}"


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _keep(count: int) -> str:
    return "keeps its result" if count == 1 else "keep their results"
