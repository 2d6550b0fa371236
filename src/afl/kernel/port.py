"""What a store promises, by role. Each method is one transaction and has one time; the store's
clock is the only clock.

Every operation may be repeated when its answer was lost: `enqueue` with an `idem`, `commit` and
`reply` by what they present, the rest because doing it twice is the same. A request is either done
whole or leaves no trace. Naming a task, call, worker or card that is not there raises `NotFound`,
except where the answer can be None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from afl.kernel.model import (
    Announcement,
    Call,
    CallId,
    CallStatus,
    Card,
    CardHash,
    Claim,
    ClaimRequest,
    Commit,
    Committed,
    Fence,
    Json,
    Lock,
    Loss,
    OutboxEntry,
    Outcome,
    Reason,
    Renewal,
    RunId,
    Standing,
    State,
    Stopped,
    Swept,
    Task,
    TaskId,
    TaskSpec,
    Worker,
    WorkerId,
    WorkerSpec,
    WorkerState,
)


class Transaction(Protocol):
    """The open transaction of a store, handed to a caller's own writes.

    What it offers depends on the store: the PostgreSQL one has a cursor, the memory one has tables.
    What is written through it is committed or rolled back with the rest.
    """


#: A caller's own writes in the same transaction. It must not keep the transaction.
Writes = Callable[[Transaction], None]


class TaskQueue(Protocol):
    """The seven transactions, and three that are made of their parts."""

    def enqueue(self, specs: Sequence[TaskSpec], writes: Writes | None = None) -> list[Task]:
        """Makes tasks: ready, or queued behind the task that holds the lane.

        A known `idem` answers with the task that has it; if every task was known, `writes` is not
        run. A task without a run starts one, named by its own id. A delayed task holds its lane.
        Raises `BadRequest`.
        """
        ...

    def claim(self, request: ClaimRequest) -> list[Claim]:
        """Takes ready tasks by priority (the highest first), then `run_at`, then id. Each gets a
        fence of its own, greater than all before.

        Only a registered, live worker can claim (`rules.is_live`); for others it is `NotFound`. No
        task is taken twice: what the token took and the worker still holds is the whole answer.
        """
        ...

    def take(self, worker: WorkerId, task: TaskId) -> Claim | None:
        """Takes this one task if it is ready, whatever its name and list. Only a registered, live
        worker can; for others it is `NotFound`.
        """
        ...

    def renew(self, worker: WorkerId, held: Sequence[int] = ()) -> Renewal:
        """Moves the worker's expiry; tells which of the `held` fences are lost or asked to stop,
        and which fences the worker has without naming them.

        A worker that the sweep gave up is running again; what it held stays lost.
        """
        ...

    def commit(
        self,
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        """One step of work each: cards, applied replies, new calls, and suspend, continue or close.

        All of them or nothing: one lost fence raises `Fenced`. With `eager`, up to `n` callees
        whose names and lists fit are born running in that worker's hands, if it is live. Closing
        writes the closed event, answers the parent call, and promotes the next task of the lane. A
        call key that exists already is the same call. Raises `LaneCycle`, `TooDeep`, `BadRequest`.

        A number that was committed already answers with the present state and changes nothing (with
        the eager callees that its token still holds); if all were, `writes` is not run. A commit
        that is taken clears the count of crashes. A task that was asked to stop is closed as
        canceled when it suspends, and is not tried again when it fails.
        """
        ...

    def commit_and_claim(
        self,
        commits: Sequence[Commit],
        request: ClaimRequest,
        *,
        writes: Writes | None = None,
    ) -> tuple[list[Committed], list[Claim]]:
        """`commit` with the request as `eager`, then `claim` with what is left of its `n`, in one
        transaction: a worker that has finished something goes home with the next.

        The claims are all that the request brought, callees first. With a token that still holds
        something, that is the whole answer, and no more is taken. A worker that is not live commits
        all the same, and takes nothing.
        """
        ...

    def extend(self, fence: Fence, by: timedelta) -> datetime | None:
        """A sign of life of a handler: what deadlines the task and the call it answers have are
        moved to `by` from now if that is later, but never past the deadline of its caller.

        Answers the first of the two, None if there is none. Raises `Fenced`, and `BadRequest` if
        `by` is not positive.
        """
        ...

    def reply(self, call: CallId, status: CallStatus, body: Json = None) -> bool:
        """Answers a call. The first answer wins and may wake the caller.

        Another answer is kept in the outbox as late and changes nothing. Tells whether the call now
        has this answer, so repeating one whose own answer was lost is true again.
        """
        ...

    def stop(self, task: TaskId, *, force: bool = False, error: Json = None) -> Stopped:
        """Closes as canceled what does not run; asks what does. `force` takes the fence away.

        A task that was asked and loses its worker is closed as canceled. What it had called is
        stopped by the sweep.
        """
        ...

    def sweep(self, limit: int = 100) -> Swept:
        """Puts right what time has made wrong; any number of processes may sweep.

        Each item is a transaction of its own, up to `limit` of each kind, in this order:
        - expired workers become `ERROR` (unless they had shut down); their tasks, by expiry and id,
          are ready again at once, canceled if they were asked to stop, or given up as `FAILED` and
          dead after more than `max_crashes` crashes;
        - open calls past their deadline, by deadline and id: answered as timeout, callee stopped;
        - tasks past their deadline, by deadline and id: closed as timeout, fence or not;
        - tasks whose caller is closed, by id: stopped. Those that this leaves behind are for the
          next sweep;
        - lanes that nobody holds and somebody queues for: promoted.
        """
        ...


class Queries(Protocol):
    """Reading. Answers are copies."""

    def get_task(self, task: TaskId) -> Task | None: ...
    def get_call(self, call: CallId) -> Call | None: ...
    def calls_of(self, caller: TaskId) -> list[Call]: ...
    def find_call(self, caller: TaskId, key: str) -> Call | None: ...
    def find_calls(self, caller: TaskId, keys: Sequence[str]) -> list[Call]:
        """Those of the keys that the task has called under, in any order."""
        ...

    def find_tasks(
        self,
        *,
        run: RunId | None = None,
        state: State | None = None,
        outcome: Outcome | None = None,
        dead: bool | None = None,
        after: TaskId | None = None,
        limit: int = 100,
    ) -> list[Task]:
        """In order of id, from after the given one."""
        ...

    def why(self, task: TaskId) -> Reason | None:
        """Why a task is not running, with what only the present tells: whether anybody serves it,
        who holds its lane, which call it waits for. The `reason` in the row is as old as its state.
        """
        ...

    def standing(self, tasks: Sequence[TaskId]) -> list[Standing]:
        """`get_task` and `why` of many tasks at once: those that there are, in any order."""
        ...

    def losses_of(self, tasks: Sequence[TaskId]) -> list[Loss]:
        """Which workers these tasks have lost, in the order of fences. They are kept as long as
        the tasks are, unlike the count of crashes, which a commit clears."""
        ...


class Cards(Protocol):
    """Content by hash, and boxes: ordered lists of cards that only grow."""

    def put_cards(self, cards: Sequence[Card]) -> None:
        """Keeps cards; known ones change nothing. The hash must be `rules.card_hash`'s."""
        ...

    def get_cards(self, hashes: Sequence[CardHash]) -> list[Card]:
        """In the order of the hashes."""
        ...

    def append_box(self, box: str, hashes: Sequence[CardHash], at: int) -> int:
        """Appends known cards at the given length and answers where they end.

        If the very same cards stand there already, nothing is done; other cards there are refused,
        and so is a task's own box, which is named by its id and grows by commits alone.
        """
        ...

    def read_box(self, box: str, start: int = 0) -> list[Card]:
        """The cards from `start` on. A box that nobody has written to is empty."""
        ...

    def keep_answer(self, transaction: Transaction, call: CallId, card: CardHash) -> None:
        """Tells the store that a card says what was answered to a call, so that it need not be
        kept twice. Nothing that can be read changes.

        The card says it with the text under `content`: that is what was answered, or the JSON of
        it. Does nothing if the answer was not taken in, or if the card says something else.
        """
        ...


class Workers(Protocol):
    def register(self, spec: WorkerSpec) -> Worker:
        """Makes a worker known, in state `STARTUP`, or describes it anew; it keeps its tasks."""
        ...

    def set_worker_state(self, worker: WorkerId, state: WorkerState) -> None: ...
    def get_worker(self, worker: WorkerId) -> Worker | None: ...
    def live_workers(self) -> list[Worker]:
        """Those that may claim (`rules.is_live`), by id."""
        ...

    def workers_seen(self, within: timedelta, limit: int = 1000) -> list[Worker]:
        """Those that were heard of so lately, whatever became of them, the last first."""
        ...


class DeadLetters(Protocol):
    def dead_letters(self, limit: int = 100, after: TaskId | None = None) -> list[Task]:
        """Tasks that were given up and not driven again."""
        ...

    def redrive(self, task: TaskId) -> Task:
        """A fresh task with the same work, in the same run, without a caller, its whole time
        before it. Doing it twice answers with the same one. Raises `BadRequest` for a task that was
        not given up.
        """
        ...


class Outbox(Protocol):
    def announce(self, transaction: Transaction, entry: Announcement) -> None:
        """Adds an entry of a caller's own, which is there if the transaction is committed. The
        topics `closed` and `late` are the kernel's. Raises `BadRequest`.
        """
        ...

    def read_outbox(self, after: int = 0, limit: int = 100) -> list[OutboxEntry]: ...
    def trim_outbox(self, up_to: int) -> int: ...


class Locks(Protocol):
    """Locks for users, with an owner token. The kernel itself needs none."""

    def acquire_lock(
        self, key: str, token: str, duration: timedelta, meta: Json = None
    ) -> Lock | None:
        """None when somebody else holds it. The same token may acquire again, which extends it."""
        ...

    def extend_lock(self, key: str, token: str, duration: timedelta) -> bool: ...
    def release_lock(self, key: str, token: str) -> bool: ...
    def get_lock(self, key: str) -> Lock | None: ...


class Retention(Protocol):
    def rotate(self, older_than: timedelta, limit: int = 1000) -> int:
        """Removes finished runs whose every task closed that long ago. Answers how many tasks went.

        Runs go whole, until `limit` tasks have gone. Their calls, boxes and idems go with them;
        cards and the outbox stay.
        """
        ...


class Store(TaskQueue, Queries, Cards, Workers, DeadLetters, Outbox, Locks, Retention, Protocol):
    """Everything a store offers. Consumers should ask for the role they need."""
