"""The rows of the kernel: task, call, lane, worker, card, outbox. Values only; the rules are in
`rules`.

A task is the one thing that is claimed and done: a flow to advance, a facet to serve, a turn, a
tool call, a process. A call is the slot in which a task waits for another task's answer. A lane is
a name under which at most one task is active. A fence is a number, given by each claim and never
given again; every later write presents it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import NewType

TaskId = NewType("TaskId", str)
CallId = NewType("CallId", str)
RunId = NewType("RunId", str)
WorkerId = NewType("WorkerId", str)
Fence = NewType("Fence", int)
CardHash = NewType("CardHash", str)

#: What can be stored: null, booleans, numbers, text, lists and maps of these.
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

#: How deep calls may nest. A chain that long is a mistake, not a design.
MAX_DEPTH = 20
#: How often a task may lose its worker before it is given up, unless its spec says otherwise.
MAX_CRASHES = 5


class State(Enum):
    """Where a task is. Only `CLOSED` is final."""

    QUEUED = "queued"  # another task holds its lane
    READY = "ready"  # may be claimed when `run_at` has come
    RUNNING = "running"  # a worker holds it, with a fence
    WAITING = "waiting"  # for answers to its open calls
    CLOSED = "closed"


class Outcome(Enum):
    """How a task ended; set exactly when it is closed."""

    SUCCESS = "success"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELED = "canceled"
    PARTIAL = "partial"


class CallStatus(Enum):
    OPEN = "open"
    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELED = "canceled"


class Wake(Enum):
    """When a waiting task becomes ready: when nothing is open, or at every answer."""

    ALL = "all"
    ANY = "any"


class WorkerState(Enum):
    STARTUP = "startup"
    RUNNING = "running"
    SHUTDOWN = "shutdown"
    ERROR = "error"


class ReasonCode(Enum):
    """Why a task is not running. What people read first when something seems stuck."""

    CLAIMABLE = "claimable"  # any worker that serves its name may take it
    DELAYED = "delayed"  # `until` has not come
    RETRY = "retry"  # a failure; tried again at `until`
    CRASHED = "crashed"  # its worker was lost; tried again at `until`
    LANE_HELD = "lane_held"  # by the task in `by`
    CALLS_OPEN = "calls_open"  # waits for answers; `until` is the first deadline
    ANSWERED = "answered"  # answers have come; waits for a worker to go on
    NO_WORKER = "no_worker"  # claimable, and no live worker serves its name
    STOPPING = "stopping"  # its worker was asked to stop


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a task is where it is, since when, and, where time will move it, until when."""

    code: ReasonCode
    since: datetime
    until: datetime | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """What happens after a failure. The default is nothing: a failure is final.

    The wait before attempt n + 1 is `delay * backoff ** (n - 1)`, at most `max_delay`; with jitter
    it is cut by up to half, by a share that the task's id and the attempt decide.
    """

    max_failures: int = 0
    delay: timedelta = timedelta(seconds=1)
    backoff: float = 2.0
    max_delay: timedelta = timedelta(minutes=5)
    jitter: bool = True


NO_RETRY = Retry()


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task to be made. Times are given as distances: the store's clock is the only clock."""

    kind: str
    name: str
    run: RunId | None = None
    tenant: str = "default"
    list: str = "default"
    lane: str | None = None
    #: whether the task keeps its lane while it waits (an agent does: one turn at a time)
    hold: bool = True
    priority: int = 0
    delay: timedelta = timedelta(0)
    #: how long it may take in all, from now; never longer than its caller has
    timeout: timedelta | None = None
    wake: Wake = Wake.ALL
    retry: Retry = NO_RETRY
    max_crashes: int = MAX_CRASHES
    input: Json = None
    idem: str | None = None
    trace: str | None = None
    #: the id of the task, where whoever makes it wants to know it beforehand: a fresh UUID
    id: TaskId | None = None


@dataclass(frozen=True)  # without slots, like Call: the memory store copies rows, whole and often
class Task:
    id: TaskId
    tenant: str
    run: RunId
    kind: str
    name: str
    list: str
    lane: str | None
    hold: bool
    parent_call: CallId | None
    depth: int
    state: State
    outcome: Outcome | None
    priority: int
    run_at: datetime
    wake: Wake
    fence: Fence | None
    worker: WorkerId | None
    #: the request that took it; repeating the request answers with it again
    claim_token: str | None
    #: the fence of the last commit, and how many commits were made under it
    committed_fence: Fence | None
    commits: int
    retry: Retry
    crashes: int
    max_crashes: int
    failures: int
    deadline: datetime | None
    stop_requested: bool
    input: Json
    result: Json
    error: Json
    reason: Reason | None
    idem: str | None
    trace: str | None
    #: number of cards in the task's own box
    seq: int
    #: closed because it was given up: it is in the dead-letter list until it is driven again
    dead: bool
    #: the dead letter that this task repeats
    redrives: TaskId | None
    created_at: datetime
    closed_at: datetime | None

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def is_active(self) -> bool:
        """Whether it holds its lane, if it has one."""
        if self.state is State.WAITING:
            return self.hold
        return self.state in (State.READY, State.RUNNING)


@dataclass(frozen=True)
class Call:
    id: CallId
    run: RunId
    caller: TaskId
    key: str
    callee: TaskId | None
    status: CallStatus
    deadline: datetime
    reply: Json
    replied_at: datetime | None
    #: the caller has taken the reply into its own state
    applied: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """A task as it stands: with why it is not running, brought up to date with what has happened
    around it, and the open call that it waits for first."""

    task: Task
    reason: Reason | None
    first_open: Call | None


@dataclass(frozen=True, slots=True)
class Loss:
    """A worker was lost that had a task, under this fence."""

    task: TaskId
    worker: WorkerId
    fence: Fence
    at: datetime


@dataclass(frozen=True, slots=True)
class CallSpec:
    """A call to be opened, with the task that answers it. `key` names it within the caller."""

    key: str
    task: TaskSpec
    timeout: timedelta


@dataclass(frozen=True, slots=True)
class CardSpec:
    """A card to be appended to the task's own box."""

    kind: str
    content: Json


@dataclass(frozen=True, slots=True)
class Card:
    hash: CardHash
    kind: str
    content: Json


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    id: int
    topic: str
    task: TaskId
    run: RunId
    body: Json
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Announcement:
    """An outbox entry to be made."""

    topic: str
    task: TaskId
    run: RunId
    body: Json = None


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    id: WorkerId
    name: str
    group: str = "default"
    service: str = "afl"
    lists: tuple[str, ...] = ("default",)
    handlers: tuple[str, ...] = ()
    slots: int = 1
    lease: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Worker:
    id: WorkerId
    name: str
    group: str
    service: str
    lists: tuple[str, ...]
    handlers: tuple[str, ...]
    slots: int
    lease: timedelta
    state: WorkerState
    started_at: datetime
    seen_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """A task in a worker's hands: with the answers that it has not taken yet, oldest first."""

    task: Task
    fence: Fence
    replies: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Which tasks a worker takes, and how many. A name serves `Pay` and `billing.Pay` alike."""

    worker: WorkerId
    names: tuple[str, ...]
    lists: tuple[str, ...] = ("default",)
    n: int = 1
    #: repeat a request whose answer was lost under the same token, and nothing is taken twice
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Suspend:
    """Wait for the open calls; ready at once if there is nothing left to wait for."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on with the same fence."""


@dataclass(frozen=True, slots=True)
class Close:
    """Done. `FAILED` is tried again as long as the retry allows, unless it is `permanent`."""

    outcome: Outcome
    result: Json = None
    error: Json = None
    permanent: bool = False


Then = Suspend | Continue | Close


@dataclass(frozen=True, slots=True)
class Commit:
    """All that one step of work changes, in one transaction, or nothing."""

    fence: Fence
    then: Then
    #: counts the commits under one fence from 0; one that was committed already changes nothing
    number: int = 0
    cards: tuple[CardSpec, ...] = ()
    calls: tuple[CallSpec, ...] = ()
    applied: tuple[CallId, ...] = ()


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit came to. `calls` maps the keys of the commit's calls to their ids."""

    task: Task
    calls: Mapping[str, CallId] = field(default_factory=dict)
    #: callees that were born running in the committing worker's hands
    eager: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a worker learns when it renews: fences it no longer holds, and those asked to stop.

    `stray` are fences that the store thinks it holds and it did not name: the answer to their claim
    was lost, or a late copy of a claim took them. A worker that has no claim under way gives them
    back with `Suspend`.
    """

    expires_at: datetime
    lost: tuple[Fence, ...]
    stop: tuple[Fence, ...]
    stray: tuple[Fence, ...] = ()


class Stopped(Enum):
    """What `stop` did."""

    CLOSED = "closed"
    REQUESTED = "requested"
    ALREADY_CLOSED = "already_closed"


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep put right."""

    workers_expired: int = 0
    tasks_recovered: int = 0
    tasks_given_up: int = 0
    calls_timed_out: int = 0
    tasks_timed_out: int = 0
    orphans_stopped: int = 0
    lanes_promoted: int = 0

    @property
    def total(self) -> int:
        return (
            self.workers_expired
            + self.tasks_recovered
            + self.tasks_given_up
            + self.calls_timed_out
            + self.tasks_timed_out
            + self.orphans_stopped
            + self.lanes_promoted
        )


@dataclass(frozen=True, slots=True)
class Lock:
    """A user's lock. Only the holder of the token can extend or release it."""

    key: str
    token: str
    expires_at: datetime
    meta: Json = None
