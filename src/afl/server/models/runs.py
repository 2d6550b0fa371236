"""Runs, and what the page of a run shows."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field, JsonValue

from afl.server.models.base import Form, JsonMap, View

RunWord = Literal["created", "running", "paused", "completed", "failed", "canceled"]

#: The one vocabulary for where a step is, on every page.
StepWord = Literal[
    "queued",
    "waiting",
    "needs_you",
    "running",
    "done",
    "failed",
    "skipped",
    "canceled",
    "lost",
    "dead_letter",
]


class Progress(View):
    """How far a run is: steps that do work, not blocks and statements around them."""

    total: int
    done: int
    failed: int
    skipped: int
    #: everything else: queued, running or waiting
    open: int


class RunLine(View):
    """A run in a list."""

    id: str
    workflow: str
    program: str
    state: RunWord
    labels: dict[str, str]
    key: str | None
    priority: int
    tenant: str
    parent: str | None
    parent_path: str | None
    #: the run that this one was forked or retried from
    forked_from: str | None
    #: what started it: submit, schedule:NAME, run:ID or hook:NAME
    trigger: str
    created_at: datetime
    finished_at: datetime | None
    progress: Progress
    #: in US dollars; null when no model was asked
    cost_usd: float | None
    #: the message of the error, in one line
    error: str | None


class Answer(View):
    """One reason why something is where it is, and the command that helps."""

    code: str
    sentence: str
    step: str | None
    command: str | None
    since: datetime | None
    until: datetime | None
    detail: JsonMap


class WhyView(View):
    """Why a run or a step is where it is; the first answer is the one to read."""

    run: str
    step: str | None
    state: str
    sentence: str
    answers: list[Answer]
    more: bool


class RunView(RunLine):
    """A run on its own page."""

    inputs: JsonMap
    outputs: JsonMap | None
    failure: JsonMap | None
    deadline: datetime | None
    why: WhyView
    #: what a caller may do with it now, by its role and the run's state
    actions: list[str]
    #: names a state of the run: it changes when anything on the run's page has changed
    mark: str


class Superseded(View):
    """A result that came when somebody else had been given the work."""

    step: str
    worker: str
    outcome: str
    at: datetime
    result: JsonValue = None


class StateCount(View):
    """How many runs are in a state."""

    state: RunWord
    count: int


class RunCounts(View):
    """Runs by state under a filter."""

    states: list[StateCount]
    total: int
    #: false when there are more than were counted
    exact: bool


class StatementTally(View):
    """The steps of one statement of the program, counted by state."""

    statement: str
    name: str
    facet: str
    states: dict[str, int]


class RunSummary(View):
    """The steps of a run, counted by statement and state; kept by the commits."""

    run: str
    mark: str
    progress: Progress
    states: dict[str, int]
    statements: list[StatementTally]


#: What a step was doing for a while: nobody could take it or had it yet, a worker had it or it was
#: in the queue for one, it waited for a time, an event or a person, its worker was lost, it was
#: tried without success and waited between tries, it waits to be tried again, its last try failed.
PartWord = Literal["queued", "running", "waiting", "lost", "earlier", "retry", "failed"]


class TimePart(View):
    """A part of the time of a step."""

    part: PartWord
    start: datetime
    #: null while it goes on
    end: datetime | None


class StepRow(View):
    """A row of the tree and of the timeline."""

    path: str
    name: str
    #: the number of slashes in the path
    depth: int
    kind: str
    facet: str
    statement: str
    state: StepWord
    #: for rows that have rows below them
    has_children: bool
    #: how many rows below, by state; for rows with children
    tally: dict[str, int]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    #: what it was doing when, as far as that is known
    parts: list[TimePart]
    attempts: int
    error: str | None
    skipped_because: str | None
    reused: str | None
    #: one sentence, for rows that are not done
    why: str | None
    why_code: str | None


class RowPage(View):
    """A window of the rows of a run."""

    items: list[StepRow]
    next: str | None
    #: how many there are under the parent, where that is known
    total: int | None
    mark: str


class GraphNode(View):
    """A statement of the program, with the states of its steps."""

    id: str
    name: str
    facet: str
    #: step, block, foreach, when, catch, yield, workflow
    kind: str
    #: the node that it stands in
    parent: str | None
    states: dict[str, int]
    line: int | None


class GraphEdge(View):
    """`target` needs `source`."""

    source: str
    target: str


class GraphView(View):
    """The definition graph of a workflow: tens of nodes, never one for each step."""

    #: names the shape alone: a layout that was made for it is good for ever
    hash: str
    workflow: str
    nodes: list[GraphNode]
    edges: list[GraphEdge]


class EventLine(View):
    """Something that happened in a run."""

    at: datetime
    #: created, started, finished, failed, skipped, lost, superseded, completed or canceled
    kind: str
    step: str | None
    task: str | None
    worker: str | None
    text: str
    detail: JsonMap


class Attempt(View):
    """One try at the outside work of a step."""

    number: int
    task: str
    worker: str | None
    #: running, done, failed, lost, canceled or waiting
    state: str
    started_at: datetime | None
    ended_at: datetime | None
    error: JsonMap | None


class Payload(View):
    """A value, cut when it is large."""

    value: JsonValue
    #: of the whole value, as JSON
    bytes: int
    #: whether `value` is the beginning of its text instead
    truncated: bool


class StepView(View):
    """A step with everything about it."""

    run: str
    row: StepRow
    input: Payload
    output: Payload | None
    error: JsonMap | None
    #: where the statement stands in the source, and its line
    source_line: int | None
    source_file: str | None
    attempts: list[Attempt]
    worker: str | None
    lease_until: datetime | None
    idempotency_key: str | None
    deadline: datetime | None
    #: the run that the step has called
    child_run: str | None
    #: the turn of an agent, if it is one
    turn: str | None
    why: WhyView
    actions: list[str]
    raw: JsonMap


class Lineage(View):
    """What a run came from, and what came from it."""

    parent: RunLine | None
    origin: RunLine | None
    forks: list[RunLine]
    children: list[RunLine]


class SubmitForm(Form):
    """A run to start."""

    workflow: str
    inputs: JsonMap = Field(default_factory=dict)
    program: str = "default"
    key: str | None = None
    conflict: Literal["attach", "reject", "replace"] = "attach"
    labels: dict[str, str] = Field(default_factory=dict)
    priority: int | None = None
    #: how long it may take, such as `2h`
    deadline: str | None = None


class Submitted(View):
    """A run that was started, and what may keep it from going on."""

    run: RunLine
    #: such as facets that no live worker serves
    warnings: list[str]


class ActionForm(Form):
    """What an action needs; the verb says which fields."""

    #: retry, fork, skip, continue, fail: the path of the step
    step: str | None = None
    #: fork: arguments to use instead; continue: the result
    values: JsonMap | None = None
    reason: str = ""
    force: bool = False
    #: rerun: the deployment, or the hash, of the program to run instead
    program: str | None = None
    #: fail: the type of the error, which a `catch` sees
    error_type: str = "Error"


class ActionResult(View):
    """What an action did, or, as a dry run, what it would do."""

    done: bool
    dry_run: bool
    #: what happens, and what does not, in a sentence or two
    sentence: str
    #: the run to look at now: a new one after retry, rerun and fork
    run: RunLine | None
    #: steps whose results are taken over, for retry and fork
    reused: int | None = None
    #: the command that does the same
    command: str
