"""Programs, tasks, workers, queues, schedules, breakers, and what the server says of itself."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field, JsonValue

from afl.server.models.base import Form, JsonMap, View
from afl.server.models.runs import RunLine


class Parameter(View):
    """A parameter or a result, with what a form needs to ask for it."""

    name: str
    type: str
    #: JSON Schema of the value
    form: JsonMap
    required: bool
    default: JsonValue = None
    doc: str | None


class WorkflowView(View):
    """A workflow that can be started."""

    name: str
    doc: str | None
    parameters: list[Parameter]
    returns: list[Parameter]
    #: where it stands in the source
    file: str | None
    line: int | None


class FacetView(View):
    """A facet, and who serves it."""

    name: str
    #: event, prompt, script, human, exec or plain
    kind: str
    doc: str | None
    parameters: list[Parameter]
    returns: list[Parameter]
    #: live workers that serve it; null where no worker is needed
    workers: int | None


class DeploymentLine(View):
    """A program that new runs use, by its name."""

    name: str
    program: str
    workflows: list[WorkflowView]
    #: facets that no live worker serves
    unserved: list[str]


class SourceFile(View):
    """A file that a program was made of."""

    name: str
    text: str


class ProgramView(View):
    """A program in full."""

    program: str
    deployed_as: list[str]
    workflows: list[WorkflowView]
    facets: list[FacetView]
    #: empty for programs that were deployed without their sources
    sources: list[SourceFile]
    #: earlier programs under the same names, the newest first
    versions: list[ProgramVersion]


class ProgramVersion(View):
    """A program that was deployed under a name."""

    program: str
    name: str
    deployed_at: datetime


class Diagnostic(View):
    """A mistake in a source."""

    code: str
    severity: Literal["error", "warning", "hint"]
    message: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    help: str | None


class SourcesForm(Form):
    """Sources to check or to deploy."""

    files: list[SourceFile]
    name: str = "default"


class DeployForm(SourcesForm):
    """Sources to deploy."""

    #: the program that was made of them, as `afl compile` writes it; else they are compiled
    compiled: str | None = None


class CheckResult(View):
    """What the compiler says, and of a deployment what became of it."""

    ok: bool
    diagnostics: list[Diagnostic]
    program: str | None
    workflows: list[WorkflowView]
    #: of a deployment: the program that had the name before
    before: str | None = None
    #: of a deployment: the schedules that were created, updated and removed
    schedules: dict[str, list[str]] = Field(default_factory=dict)


class TryForm(Form):
    """A workflow to run here and now with stubs for what is outside."""

    files: list[SourceFile]
    workflow: str
    inputs: JsonMap = Field(default_factory=dict)
    #: the returns of facets, by name; others answer with made-up values of their types
    stubs: dict[str, JsonMap] = Field(default_factory=dict)


class TryResult(View):
    """How a tried run went."""

    #: completed, failed or canceled; stopped if it took too long, or waits for what nobody brings
    state: str
    outputs: JsonMap | None
    error: JsonMap | None
    #: path, facet and state of each step
    steps: list[JsonMap]


class TaskView(View):
    """A task of the kernel."""

    id: str
    run: str
    step: str | None
    kind: str
    name: str
    list: str
    lane: str | None
    state: str
    outcome: str | None
    worker: str | None
    priority: int
    failures: int
    crashes: int
    reason: str | None
    run_at: datetime
    deadline: datetime | None
    created_at: datetime
    closed_at: datetime | None
    error: JsonMap | None


class WorkerView(View):
    """A worker: busy, idle, draining, stale or lost are different things."""

    id: str
    name: str
    host: str
    group: str
    service: str
    lists: list[str]
    handlers: list[str]
    #: starting, idle, busy, draining, stale or failed
    state: str
    started_at: datetime
    seen_at: datetime
    expires_at: datetime
    tasks: list[TaskView]


class QueueView(View):
    """A task list: what waits in it, and for how long."""

    name: str
    ready: int
    running: int
    #: their time has not come, such as that of a retry, or another task holds their lane
    waiting: int
    dead: int
    #: of the ready task that has waited longest
    oldest_ready_at: datetime | None
    workers: int
    #: facets with ready tasks that no live worker serves
    unserved: list[str]


class FiringView(View):
    """What became of a fire time."""

    at: datetime
    outcome: str
    run: str | None


class ScheduleView(View):
    """A schedule, when it fires next, and what became of the last times."""

    name: str
    workflow: str
    program: str
    inputs: JsonMap
    #: cron, interval or once, and its text
    kind: str
    spec: str
    zone: str
    overlap: str
    catch_up: str
    jitter: str | None
    paused: bool
    owner: str | None
    #: of the runs that it starts
    labels: dict[str, str]
    next: list[datetime]
    history: list[FiringView]


class ScheduleForm(Form):
    """A schedule to create; one of cron, every and at."""

    name: str
    workflow: str
    inputs: JsonMap = Field(default_factory=dict)
    program: str = "default"
    cron: str | None = None
    every: str | None = None
    at: str | None = None
    zone: str = "UTC"
    jitter: str | None = None
    overlap: str | None = None
    catch_up: str | None = None
    #: how far back missed fire times are caught up, such as `1d`
    catch_up_within: str | None = None
    #: nothing before and nothing after these times
    start: str | None = None
    end: str | None = None
    #: takes the place of the schedule with this name
    replace: bool = False
    #: of the runs that it starts
    labels: dict[str, str] = Field(default_factory=dict)


class BackfillForm(Form):
    """A stretch of time whose fire times are run after all."""

    since: datetime
    until: datetime


class BreakerView(View):
    """A circuit breaker."""

    name: str
    #: closed, open or half_open
    state: str
    failures: int
    retry_at: datetime | None


class Check(View):
    """One thing that the installation needs."""

    name: str
    ok: bool
    sentence: str
    hint: str | None


class Health(View):
    """What `afl doctor` says, and which server this is."""

    version: str
    database: str
    mode: Literal["dev", "serve"]
    auth: bool
    checks: list[Check]


class Spend(View):
    """What models have cost."""

    today_usd: float
    week_usd: float
    unpriced: int


class Home(View):
    """What somebody who opens the dashboard has to know first."""

    counts: dict[str, int]
    failing: list[RunLine]
    stuck: list[RunLine]
    #: what waits for people
    needs_you: int
    oldest_ready_at: datetime | None
    queue_depth: int
    dead_letters: int
    workers_live: int
    workers_stale: int
    #: facets that work waits for and no live worker serves
    unserved: list[str]
    spend: Spend
    recent: list[RunLine]
    #: true when nothing was ever deployed or run here
    is_new: bool
    mark: str


class SavedView(View):
    """A filter with a name."""

    id: str
    name: str
    page: str
    query: str
    shared: bool
    owner: str


class SavedViewForm(Form):
    """A filter to keep."""

    name: str
    page: str = "runs"
    query: str
    shared: bool = False


class TokenView(View):
    """An API token, without its secret."""

    id: str
    name: str
    role: str
    tenant: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class TokenForm(Form):
    """A token to make."""

    name: str
    role: Literal["viewer", "operator", "developer", "admin"]
    tenant: str = "default"
    #: how long it is good, such as `90d`; else for ever
    expires_in: str | None = None


class NewToken(TokenView):
    """A token that was just made. The secret is told once."""

    secret: str


class AuditLine(View):
    """Something that somebody did, or was refused."""

    id: int
    at: datetime
    subject: str
    role: str
    tenant: str
    #: the method and the route
    action: str
    target: str
    #: the status that was answered
    status: int
    detail: JsonMap


class Me(View):
    """Who is asking."""

    subject: str
    role: str
    tenant: str
    can: list[str]


class Emission(Form):
    """An event from outside."""

    name: str
    key: str = ""
    payload: JsonValue = None
    id: str | None = None


class Emitted(View):
    """Whether the event was new."""

    new: bool
