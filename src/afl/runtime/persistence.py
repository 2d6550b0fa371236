"""The port to what a run is made of, and `IterationChanges`, what one iteration changes of it.

Steps are written in the transaction that commits the flow task, under its fence; nothing else
writes them. So a worker that holds the task can trust what it has read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NewType, Protocol

from afl.kernel.model import CallSpec, Json, Task, TaskId
from afl.kernel.port import Store, Transaction
from afl.runtime.deployments import Sources
from afl.runtime.entities import (
    LockMetaData,
    Run,
    ServerDefinition,
    TaskDefinition,
)
from afl.runtime.history import History
from afl.runtime.run_search import RunFilter
from afl.runtime.schedule import Due, Firing, Schedule
from afl.runtime.states import EventState
from afl.runtime.step import StepDefinition, StepId, WorkflowId
from afl.runtime.step_windows import StepMatch, StepTimes
from afl.runtime.superseded import Superseded
from afl.runtime.tallies import Tally

EventId = NewType("EventId", str)


@dataclass
class EventDefinition:
    """The outside work of a step: what is to be done, for whom, and where it stands."""

    id: EventId
    step_id: StepId
    workflow_id: WorkflowId
    state: str
    event_type: str
    payload: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wait:
    """A block that waits for a step outside of it."""

    on: str
    block: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that `sys.log` wrote."""

    path: str
    values: Mapping[str, Json]
    #: when it was kept; told by reads
    at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Await:
    """The call with this key waits for an event from outside."""

    call_key: str
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Memo:
    """A result of a pure facet, for `Cache`."""

    facet: str
    key: str
    returns: Mapping[str, Json]
    ttl: timedelta | None


@dataclass(frozen=True, slots=True)
class RateWish:
    """A call is to start when its `RateLimit` has a slot for it."""

    facet: str
    key: str
    max: int
    per: timedelta


@dataclass
class IterationChanges:
    """Accumulated changes from a single iteration, committed at once or not at all.

    A call is the event and the task of a step, made by one statement: they cannot disagree.
    """

    created_steps: list[StepDefinition] = field(default_factory=list)
    updated_steps: list[StepDefinition] = field(default_factory=list)
    calls: list[CallSpec] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    logs: list[LogLine] = field(default_factory=list)
    #: events that calls wait for
    awaits: list[Await] = field(default_factory=list)
    #: results of pure facets to be kept
    memos: list[Memo] = field(default_factory=list)
    #: calls that are not to start before their rate allows it, by key
    rates: dict[str, RateWish] = field(default_factory=dict)
    #: paths of updated steps whose parameters are what they were: a store need not write them,
    #: and those of a run may be large
    same_params: set[str] = field(default_factory=set)
    #: keys of calls whose answers nobody waits for any more: their work is stopped afterwards
    cancels: list[str] = field(default_factory=list)

    _created: dict[str, int] = field(default_factory=dict)
    _updated: dict[str, int] = field(default_factory=dict)

    def copy(self) -> IterationChanges:
        """The same changes, to which more may be added. What was asked for once, slots of rates, is
        not asked for again."""
        copied = IterationChanges(*(each.copy() for each in vars(self).values()))
        copied.rates.clear()
        copied.same_params.clear()
        return copied

    def add_created_step(self, step: StepDefinition) -> None:
        """Notes a new step; the same step is noted once."""
        if step.path not in self._created:
            self._created[step.path] = len(self.created_steps)
            self.created_steps.append(step)

    def add_updated_step(self, step: StepDefinition) -> None:
        """Notes a changed step; only its last form counts."""
        place = self._created.get(step.path)
        if place is not None:
            self.created_steps[place] = step
            return
        place = self._updated.get(step.path)
        if place is None:
            self._updated[step.path] = len(self.updated_steps)
            self.updated_steps.append(step)
        else:
            self.updated_steps[place] = step

    def leave_out(self, paths: Collection[str]) -> None:
        """Forgets that these steps were changed."""
        if paths:
            self.updated_steps = [step for step in self.updated_steps if step.path not in paths]
            self._updated = {step.path: at for at, step in enumerate(self.updated_steps)}

    @property
    def has_changes(self) -> bool:
        return bool(
            self.created_steps
            or self.updated_steps
            or self.calls
            or self.waits
            or self.logs
            or self.awaits
        )

    def created_events(self, run: WorkflowId) -> list[EventDefinition]:
        """The calls as events, in the seeds' words."""
        return [
            EventDefinition(
                id=EventId(f"{run}:{call.key}"),
                step_id=StepId(f"{run}:{call.key}"),
                workflow_id=run,
                state=EventState.CREATED,
                event_type=call.task.name,
                payload=_params_of(call),
            )
            for call in self.calls
        ]


def _params_of(call: CallSpec) -> dict[str, Json]:
    given = call.task.input
    params = given.get("params") if isinstance(given, dict) else None
    return dict(params) if isinstance(params, dict) else {}


@dataclass(frozen=True, slots=True)
class Needed:
    """What an iteration asked for and did not find loaded."""

    steps: frozenset[str] = frozenset()
    #: paths of steps whose yields are wanted
    yields: frozenset[str] = frozenset()
    #: paths of steps for which blocks outside of theirs may wait
    waits: frozenset[str] = frozenset()
    #: paths of steps in the run that this one was forked from
    origin: frozenset[str] = frozenset()
    #: earlier results of pure facets, by facet and key
    memos: frozenset[tuple[str, str]] = frozenset()
    #: paths below which every step that has not ended is wanted
    unended: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Loaded:
    """Rows of one run. A path that was asked for and is not here does not exist."""

    steps: Mapping[str, StepDefinition] = field(default_factory=dict)
    yields: Mapping[str, Sequence[StepDefinition]] = field(default_factory=dict)
    waits: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StaleRuns:
    """Runs that go on by their rows, while their tasks are closed."""

    runs: Sequence[WorkflowId]
    #: where the next look begins; None if the last run was seen
    next: WorkflowId | None


class Programs(Protocol):
    """Compiled programs by their hash. A program that a run is pinned to is never changed."""

    def save_program(self, text: str) -> str:
        """Keeps a program, as `afl.ir.codec.dumps` writes it, and answers its hash."""
        ...

    def get_program(self, program: str) -> str | None: ...

    def deploy(self, name: str, program: str) -> None:
        """Makes a program the current one under a name. Runs that have begun keep theirs."""
        ...

    def deployed(self, name: str = "default") -> str | None:
        """The hash of the current program under a name."""
        ...

    def deployments(self) -> Mapping[str, str]:
        """Name to hash."""
        ...

    def newest_programs(self, limit: int) -> Sequence[str]:
        """The hashes of the programs that were saved last, deployed or not."""
        ...


class Runs(Protocol):
    """The runs and their steps. Reads answer copies."""

    def write_run(self, transaction: Transaction, run: Run) -> None:
        """Puts a new run in place; one that is there already stays as it is."""
        ...

    def write_changes(
        self, transaction: Transaction, run: WorkflowId, changes: IterationChanges
    ) -> None:
        """Writes steps, waits, log lines and awaited events. Calls are the kernel's to write, and
        memos are put when the commit is through."""
        ...

    def write_many(
        self,
        transaction: Transaction,
        changes: Iterable[tuple[WorkflowId, IterationChanges]],
    ) -> None:
        """The changes of several runs at once."""
        ...

    def finish_run(
        self,
        transaction: Transaction,
        run: WorkflowId,
        state: str,
        outputs: Mapping[str, Json] | None,
        error: Mapping[str, Json] | None,
    ) -> None:
        """Ends a run that has not ended."""
        ...

    def start_run(self, transaction: Transaction, run: WorkflowId) -> None:
        """Notes that a created run is being worked on."""
        ...

    def set_pause(self, run: WorkflowId, pause: bool) -> bool:
        """Asks a run to pause, or takes that back. False if it has ended."""
        ...

    def get_run(self, run: WorkflowId) -> Run | None: ...

    def get_runs(self, runs: Sequence[WorkflowId]) -> Mapping[WorkflowId, Run]:
        """Those of the runs that there are, by id."""
        ...

    def find_runs(
        self,
        *,
        state: str | None = None,
        workflow: str | None = None,
        labels: Mapping[str, str] | None = None,
        parent: WorkflowId | None = None,
        before: WorkflowId | None = None,
        limit: int = 100,
    ) -> list[Run]:
        """The newest first, from before the given one."""
        ...

    def ended_runs(self, since: datetime, limit: int = 100) -> list[Run]:
        """Runs that have ended since then, in the order in which they did."""
        ...

    def stale_runs(self, after: WorkflowId | None, limit: int) -> StaleRuns:
        """Looks at so many runs that have not ended, the oldest first, from after the given one:
        those whose task is closed."""
        ...

    def load(self, run: WorkflowId, needed: Needed) -> Loaded:
        """The rows that were asked for, by index; what one of them costs is the same in any run."""
        ...

    def get_step(self, step: StepId) -> StepDefinition | None: ...

    def get_steps_by_workflow(
        self, run: WorkflowId, *, after: str | None = None, limit: int | None = None
    ) -> list[StepDefinition]:
        """In order of paths, from after the given one."""
        ...

    def get_steps_by_state(
        self, run: WorkflowId, state: str, limit: int = 100
    ) -> list[StepDefinition]: ...

    def get_unended_steps(self, run: WorkflowId, below: str) -> list[StepDefinition]:
        """The steps below a path that have not ended, in order of paths."""
        ...

    def count_steps(self, run: WorkflowId) -> Mapping[str, int]:
        """How many steps are in which state."""
        ...

    def get_logs(self, run: WorkflowId, limit: int = 1000) -> list[LogLine]: ...

    def forget_runs(self, older_than: timedelta, limit: int = 1000) -> int:
        """Removes runs, with all that is theirs, that ended that long ago. Answers how many."""
        ...


class Queue(Protocol):
    """The task queue, the servers and the locks, in the seeds' words."""

    def claim_task(
        self, task_names: list[str], task_list: str = "default"
    ) -> TaskDefinition | None: ...

    def get_task(self, task: str) -> TaskDefinition | None: ...
    def get_tasks_by_workflow(self, run: WorkflowId) -> list[TaskDefinition]: ...
    def get_event(self, event: EventId) -> EventDefinition | None: ...
    def get_server(self, server: str) -> ServerDefinition | None: ...
    def get_servers(self) -> list[ServerDefinition]: ...

    def acquire_lock(
        self, key: str, duration_ms: int, meta: LockMetaData | None = None, owner: str | None = None
    ) -> bool: ...

    def extend_lock(self, key: str, duration_ms: int, owner: str | None = None) -> bool: ...
    def release_lock(self, key: str, owner: str | None = None) -> bool: ...


class Signals(Protocol):
    """Events from outside that flows wait for with `afl.event.Wait`. Each is taken once."""

    def emit(self, name: str, key: str, payload: Json, *, id: str | None = None) -> bool:
        """Keeps an event for whoever waits or will wait. False if this id is known already."""
        ...

    def match_events(self, limit: int = 100) -> list[tuple[WorkflowId, str, Json]]:
        """Pairs of waiting calls and events, the oldest with the oldest; the same again until
        `settle_event` says that the answer has been given."""
        ...

    def settle_event(self, run: WorkflowId, call_key: str) -> None:
        """The call was answered; the event is gone."""
        ...


class Memos(Protocol):
    """Results of pure facets, for `Cache`."""

    def get_memo(self, facet: str, key: str) -> Mapping[str, Json] | None: ...

    def put_memo(
        self, facet: str, key: str, returns: Mapping[str, Json], ttl: timedelta | None
    ) -> None: ...


class People(Protocol):
    """Work that people do."""

    def human_tasks(
        self, group: str | None = None, after: TaskId | None = None, limit: int = 100
    ) -> list[Task]:
        """Tasks for people whose answers are waited for, of one group or of all, in order of id
        from after the given one. What it costs does not depend on other tasks."""
        ...


class Rates(Protocol):
    """Slots in time, for `RateLimit`: shared by all runs and processes."""

    def reserve_slots(self, wish: RateWish, count: int = 1) -> list[timedelta]:
        """Takes the next slots of a facet and a key, and tells how far ahead each of them lies.

        Any stretch of `per` has at most `max` of them. A slot that is taken and not used is wasted.
        """
        ...


class Schedules(Protocol):
    """Schedules, and what became of their fire times."""

    def write_schedule(self, transaction: Transaction, schedule: Schedule) -> None:
        """Puts a schedule in the place of the one with its name and version, and counts that up;
        version 0 is for one that is not there yet. Raises `Fenced` if another has come before."""
        ...

    def write_firings(self, transaction: Transaction, firings: Sequence[Firing]) -> None:
        """Notes what became of fire times. That a run was started for one is noted once."""
        ...

    def get_schedule(self, name: str) -> Schedule | None: ...

    def find_schedules(
        self, *, owner: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[Schedule]:
        """In order of names, from after the given one; those of one deployment, or all."""
        ...

    def delete_schedule(self, name: str) -> bool:
        """Removes a schedule with what became of its fire times. False if there is none."""
        ...

    def take_due(self, hold: timedelta, limit: int) -> Due:
        """Takes schedules that have to be looked at, the most overdue first: others leave them
        alone for so long, unless they are changed. What it costs does not depend on the rest."""
        ...

    def get_firings(
        self, schedule: str, *, started: bool = False, limit: int = 100
    ) -> list[Firing]:
        """The last first; all of them, or those that a run was started for."""
        ...

    def started_between(self, schedule: str, start: datetime, end: datetime) -> set[datetime]:
        """The fire times in this stretch that a run was started for."""
        ...

    def open_runs(self, schedule: str) -> list[str]:
        """The runs of a schedule that have not ended, of the hundred that it has started last."""
        ...


class LateResults(Protocol):
    """Results that came when somebody else had been given the work."""

    def note_superseded(self, results: Sequence[Superseded]) -> None:
        """Keeps them, those of runs that are still known."""
        ...

    def get_superseded(self, run: WorkflowId, limit: int = 100) -> list[Superseded]:
        """Those of a run, in the order in which they came."""
        ...


class RunSearch(Protocol):
    """Lists of runs, however many there are."""

    def search_runs(
        self, filter: RunFilter, *, before: WorkflowId | None = None, limit: int = 100
    ) -> list[Run]:
        """The newest first, from before the given one. What it costs does not depend on how many
        runs there are; so a part of a key, or of an error, is looked for in the newest ones that
        fit otherwise, five thousand at least. Ids, workflows and whole keys are found anywhere."""
        ...

    def count_runs(self, filter: RunFilter, cap: int = 10_000) -> Mapping[str, int]:
        """How many runs there are by state word, without the states that have none. Stops counting
        a state at the cap."""
        ...


class StepWindows(Protocol):
    """Parts of a run's steps that a page shows; none of them costs what the whole run has."""

    def tally(self, run: WorkflowId) -> list[Tally]:
        """How many steps there are by statement and state, in that order: kept by the commits, in
        their transaction."""
        ...

    def tallies(self, runs: Sequence[WorkflowId]) -> Mapping[WorkflowId, list[Tally]]:
        """Those of several runs, without the runs that have no steps."""
        ...

    def child_steps(
        self, run: WorkflowId, parent: str, *, after: str | None = None, limit: int = 200
    ) -> list[StepDefinition]:
        """The steps that stand right in a step, mixins among them, in order of paths from after
        the given one. What it costs does not depend on what is below them."""
        ...

    def have_children(self, run: WorkflowId, paths: Sequence[str]) -> set[str]:
        """Those of the paths that anything is below of."""
        ...

    def problem_steps(
        self, run: WorkflowId, *, after: str | None = None, limit: int = 200
    ) -> list[StepDefinition]:
        """The steps with an error, in order of paths from after the given one."""
        ...

    def scan_steps(
        self,
        run: WorkflowId,
        match: StepMatch,
        *,
        after: str | None = None,
        limit: int = 200,
        most: int = 20_000,
    ) -> tuple[list[StepDefinition], str | None]:
        """The steps that match, in order of paths, and where to go on; None at the end. Looks at
        so many steps at most, so fewer than `limit` may be found before the end."""
        ...

    def step_times(self, run: WorkflowId, paths: Sequence[str]) -> Mapping[str, StepTimes]:
        """When steps were made, changed and ended."""
        ...

    def change_mark(self, run: WorkflowId) -> str:
        """A text that differs whenever anything that the run's page shows may have changed: the
        run, its steps, or the tasks that it waits for, of which it looks at the first thousand."""
        ...


class PersistenceAPI(
    Programs,
    Sources,
    Runs,
    Queue,
    Signals,
    Memos,
    Rates,
    People,
    Schedules,
    LateResults,
    RunSearch,
    StepWindows,
    History,
    Protocol,
):
    """Everything that a run needs to be kept, on one kernel store and in its transactions."""

    @property
    def kernel(self) -> Store: ...

    def now(self) -> datetime:
        """The time by the store's clock, or close to it: good for display and for `Until`."""
        ...

    def close(self) -> None: ...
