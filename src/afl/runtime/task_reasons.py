"""Why the outside work of a step is not done yet: the kernel's reason in words, with a way out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Protocol

from afl.base.durations import format_duration
from afl.kernel.model import (
    Call,
    CallId,
    Json,
    Reason,
    ReasonCode,
    State,
    Task,
    TaskId,
    Worker,
    WorkerId,
)
from afl.kernel.rules import serves
from afl.runtime.calls import (
    ANSWER,
    BREAKER,
    BUDGETS,
    EXECUTE,
    NO_TIMEOUT,
    PEOPLE,
    SIGNALS,
    TIMERS,
)
from afl.runtime.reasons import Answer, WhyCode

#: How many running tasks are looked at to count taken slots.
_COUNTED = 1000


class KernelFacts(Protocol):
    """What the answers are read from: a store, or what somebody has read of one before."""

    def get_task(self, task: TaskId) -> Task | None: ...
    def get_call(self, call: CallId) -> Call | None: ...
    def find_tasks(self, *, state: State | None = None, limit: int = 100) -> list[Task]: ...
    def why(self, task: TaskId) -> Reason | None: ...
    def get_worker(self, worker: WorkerId) -> Worker | None: ...
    def live_workers(self) -> list[Worker]: ...


class Facts(Protocol):
    """The kernel's rows, and the time."""

    @property
    def kernel(self) -> KernelFacts: ...
    def now(self) -> datetime: ...


class TaskReasons:
    """Answers about tasks."""

    def __init__(self, facts: Facts) -> None:
        self._kernel = facts.kernel
        self._now = facts.now

    def of_call(self, run: str, call: Call) -> Answer:
        """Why an open call of a run has no answer."""
        task = None if call.callee is None else self._kernel.get_task(call.callee)
        path = call.key.partition("#")[0]
        if task is None:
            return Answer(WhyCode.CALL, f"Waits for the answer to the call `{call.key}`.", path)
        if task.kind == "pause":
            return paused(run)
        if task.kind == "flow":
            return _child(path, task)
        answer = _without_worker(f"`{path}`", call, task)
        return replace(answer or self.of_task(task), step=path)

    def of_task(self, task: Task) -> Answer:
        """Why a task is not done."""
        name = _facet(task)
        if task.state is State.RUNNING:
            return self._running(task, name)
        call = None if task.parent_call is None else self._kernel.get_call(task.parent_call)
        if call is not None and task.state is State.READY:
            answer = _without_worker(f"`{name}`", call, task)
            if answer is not None:
                return answer
        reason = self._kernel.why(task.id)
        if reason is None:
            return Answer(WhyCode.DONE, f"`{name}` has ended.", detail={"task": task.id})
        match reason.code:
            case ReasonCode.NO_WORKER:
                return self._no_worker(task, name, reason)
            case ReasonCode.LANE_HELD:
                return self._lane(task, name, reason)
            case ReasonCode.CALLS_OPEN:
                return self._calls_open(task, name, reason)
            case ReasonCode.RETRY if reason.until is not None and reason.until > self._now():
                return _retry(task, name, reason)
            case ReasonCode.DELAYED:
                return _delayed(task, name, reason)
            case ReasonCode.CRASHED:
                return Answer(
                    WhyCode.WORKER_LOST,
                    f"`{name}` lost its worker {_times(task.crashes)} and waits for another.",
                    command="afl workers list",
                    since=reason.since,
                    detail={"task": task.id, "crashes": task.crashes},
                )
            case _:
                return self._claimable(task, name, reason)

    def _calls_open(self, task: Task, name: str, reason: Reason) -> Answer:
        """Why the first call of a task that waits, such as a turn of an agent, has no answer."""
        call = None if reason.by is None else self._kernel.get_call(CallId(reason.by))
        callee = None if call is None or call.callee is None else self._kernel.get_task(call.callee)
        if call is None or callee is None:
            return Answer(
                WhyCode.CALL,
                f"`{name}` waits for an answer to a call of its own{_by(reason.until)}.",
                since=reason.since,
                until=reason.until,
                detail={"task": task.id, "call": reason.by},
            )
        if callee.name == BREAKER:
            return _breaker(task, name, call, callee)
        if callee.list == TIMERS:
            return _model_busy(task, name, call)
        answer = _without_worker(f"`{name}`", call, callee)
        if answer is not None:
            return answer
        inner = self.of_task(callee)
        return replace(inner, sentence=f"`{name}` waits for its tool. {inner.sentence}")

    def _running(self, task: Task, name: str) -> Answer:
        worker = None if task.worker is None else self._kernel.get_worker(task.worker)
        if task.stop_requested:
            return Answer(
                WhyCode.STOPPING,
                f"`{name}` was told to stop, and its worker has not let go of it yet.",
                command=f"afl runs cancel {task.run} --force",
                detail={"task": task.id, "worker": task.worker},
            )
        if worker is not None and worker.expires_at <= self._now():
            return Answer(
                WhyCode.WORKER_LOST,
                f"The worker `{worker.name}` has `{name}` and gave its last sign of life at "
                f"{_time(worker.seen_at)}. Another one gets it at the next sweep.",
                command="afl workers list",
                since=worker.seen_at,
                detail={"task": task.id, "worker": worker.id},
            )
        where = "a worker" if worker is None else f"the worker `{worker.name}`"
        return Answer(
            WhyCode.RUNNING,
            f"`{name}` is being done by {where}, attempt {task.failures + 1}.",
            detail={"task": task.id, "worker": task.worker, "attempt": task.failures + 1},
        )

    def _no_worker(self, task: Task, name: str, reason: Reason) -> Answer:
        workers = self._kernel.live_workers()
        names = {handler for worker in workers for handler in worker.handlers}
        detail: dict[str, Json] = {"task": task.id, "name": task.name, "list": task.list}
        command = "afl worker"
        elsewhere = sorted(
            {
                each
                for worker in workers
                if serves(worker.handlers, task.name)
                for each in worker.lists
            }
        )
        if task.name == EXECUTE:
            what = "No live worker advances runs"
        else:
            what = f"No live worker serves `{name}`"
        if elsewhere:
            what += f" on the queue `{task.list}`; there are some on {_listed(elsewhere)}"
            command = f"afl worker --list {task.list}"
            detail["lists"] = list(elsewhere)
        elif task.name != EXECUTE:
            near = list(_nearest(task.name, task.short_name, tuple(sorted(names))))
            detail["nearest"] = [*near]
            if near:
                what += f"; the nearest names served are {_listed(near)}"
        return Answer(
            WhyCode.NO_WORKER, f"{what}.", command=command, since=reason.since, detail=detail
        )

    def _lane(self, task: Task, name: str, reason: Reason) -> Answer:
        holder = None if reason.by is None else self._kernel.get_task(TaskId(reason.by))
        run = None if holder is None else str(_given(holder).get("run") or holder.run)
        by = "another task" if run is None else f"run {run}"
        lane = (task.lane or "").rpartition(":")[0] or task.lane
        return Answer(
            WhyCode.LANE_HELD,
            f"`{name}` may run only so often at once, and {by} holds its place (`{lane}`).",
            command=None if run is None else f"afl runs why {run}",
            since=reason.since,
            detail={"task": task.id, "lane": task.lane, "by": reason.by, "run": run},
        )

    def _claimable(self, task: Task, name: str, reason: Reason) -> Answer:
        serving = [each for each in self._kernel.live_workers() if _worker_serves(each, task)]
        slots = sum(worker.slots for worker in serving)
        ids = {worker.id for worker in serving}
        running = self._kernel.find_tasks(state=State.RUNNING, limit=_COUNTED)
        taken = sum(1 for each in running if each.worker in ids and each.kind != "flow")
        detail: dict[str, Json] = {"task": task.id, "slots": slots, "taken": taken}
        if task.name == EXECUTE and reason.code is ReasonCode.ANSWERED:
            sentence = "Answers have come; a worker is about to take them in."
            return Answer(WhyCode.ANSWERED, sentence, since=reason.since, detail=detail)
        if slots and taken >= slots and task.kind != "flow":
            return Answer(
                WhyCode.BUSY,
                f"All {slots} slots of the workers that serve `{name}` are taken.",
                command="afl workers list",
                since=reason.since,
                detail=detail,
            )
        what = "The run" if task.name == EXECUTE else f"`{name}`"
        sentence = f"{what} is ready, and a worker is about to take it."
        return Answer(WhyCode.QUEUED, sentence, since=reason.since, detail=detail)


def paused(run: str) -> Answer:
    return Answer(
        WhyCode.PAUSED,
        "The run is paused: what has begun goes on, and nothing else starts.",
        command=f"afl runs resume {run}",
    )


def _without_worker(who: str, call: Call, task: Task) -> Answer | None:
    """Why somebody waits for a task that no worker does; None if workers do it."""
    if task.list == TIMERS:
        return Answer(
            WhyCode.TIMER, f"{who} sleeps until {_time(call.deadline)}.", until=call.deadline
        )
    if task.name == ANSWER:
        return _mail(who, call, task)
    if task.list == SIGNALS:
        return _event(who, call, task)
    if task.list == BUDGETS:
        return _no_room(who, task)
    if task.list == PEOPLE and task.state is not State.RUNNING:
        return _person(who, call, task)
    return None


def _event(who: str, call: Call, task: Task) -> Answer:
    given = _given(task).get("params")
    params = given if isinstance(given, dict) else {}
    name, key = str(params.get("name", "")), str(params.get("key", ""))
    until = call.deadline if params.get("timeout") is not None else None
    with_key = f" with the key `{key}`" if key else ""
    return Answer(
        WhyCode.EVENT,
        f"{who} waits for the event `{name}`{with_key}{_by(until)}.",
        command=f"afl emit {name}{f' --key {key}' if key else ''}",
        until=until,
        detail={"name": name, "key": key},
    )


def _mail(who: str, call: Call, task: Task) -> Answer:
    given = _given(task)
    to, message = str(given.get("to", "")), str(given.get("message", ""))
    until = None if call.deadline - task.created_at >= NO_TIMEOUT else call.deadline
    return Answer(
        WhyCode.EVENT,
        f"{who} waits for the answer of `{to}` to the message {message}{_by(until)}.",
        command=f"afl mail peek {to}",
        since=task.created_at,
        until=until,
        detail={"to": to, "message": message},
    )


def _person(who: str, call: Call, task: Task) -> Answer:
    group = _given(task).get("group")
    of = f" of the group `{group}`" if group else ""
    until = None if call.deadline - task.created_at >= NO_TIMEOUT else call.deadline
    return Answer(
        WhyCode.PERSON,
        f"{who} waits for a person{of}{_by(until)}.",
        command=f"afl inbox answer {task.id}",
        since=task.created_at,
        until=until,
        detail={"group": group, "task": task.id},
    )


def _no_room(who: str, task: Task) -> Answer:
    budgets = _given(task).get("budgets")
    keys = [
        (str(each.get("scope")), str(each.get("key")))
        for each in (budgets if isinstance(budgets, list) else [])
        if isinstance(each, dict)
    ]
    named = " or ".join(f"{scope} {key}" for scope, key in keys)
    return Answer(
        WhyCode.BUDGET,
        f"{who} waits for room in the budget of {named or 'its turn'}: what may be spent is spent "
        "or reserved.",
        command=f"afl cost budget set {keys[0][0]} {keys[0][1]}" if keys else None,
        since=task.created_at,
        detail={"budgets": [{"scope": scope, "key": key} for scope, key in keys]},
    )


def _model_busy(task: Task, name: str, call: Call) -> Answer:
    return Answer(
        WhyCode.TIMER,
        f"The model of `{name}` was busy; it is asked again at {_time(call.deadline)}.",
        until=call.deadline,
        detail={"task": task.id, "call": call.key},
    )


def _breaker(task: Task, name: str, call: Call, timer: Task) -> Answer:
    breaker = str(_given(timer).get("breaker") or "")
    return Answer(
        WhyCode.BREAKER,
        f"`{name}` waits for the breaker `{breaker}`, which is open: what it protects failed too "
        f"often. It is tried again at {_time(call.deadline)}.",
        command="afl breakers list",
        since=timer.created_at,
        until=call.deadline,
        detail={"task": task.id, "breaker": breaker},
    )


def _child(path: str, task: Task) -> Answer:
    return Answer(
        WhyCode.CHILD_RUN,
        f"`{path}` waits for run {task.id} of `{_given(task).get('workflow')}`.",
        path,
        command=f"afl runs why {task.id}",
        since=task.created_at,
        detail={"run": task.id},
    )


def _delayed(task: Task, name: str, reason: Reason) -> Answer:
    rate = _given(task).get("rate")
    sentence = f"`{name}` is to start at {_time(reason.until)}."
    if isinstance(rate, dict) and isinstance(per := rate.get("per_ms"), int):
        sentence = (
            f"`{name}` is rate limited until {_time(reason.until)}: it may start {rate.get('max')} "
            f"times in {format_duration(per)}."
        )
    detail: dict[str, Json] = {"task": task.id, "rate": rate}
    return Answer(
        WhyCode.SCHEDULED, sentence, since=reason.since, until=reason.until, detail=detail
    )


def _retry(task: Task, name: str, reason: Reason) -> Answer:
    error = task.error if isinstance(task.error, dict) else {}
    attempt, most = task.failures + 1, task.retry.max_failures + 1
    told = f"{error.get('type')}: {error.get('message')}" if error else "an error"
    return Answer(
        WhyCode.RETRY,
        f"`{name}` failed with {told}; attempt {attempt} of {most} is at {_time(reason.until)}.",
        since=reason.since,
        until=reason.until,
        detail={"task": task.id, "attempt": attempt, "attempts": most, "error": dict(error)},
    )


@lru_cache(maxsize=256)  # many tasks wait for the same
def _nearest(name: str, short_name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names that come close to one that nobody serves."""
    close = (each for wanted in (name, short_name) for each in get_close_matches(wanted, names, 3))
    return tuple(dict.fromkeys(close))


def _worker_serves(worker: Worker, task: Task) -> bool:
    return task.list in worker.lists and serves(worker.handlers, task.name)


def _given(task: Task) -> Mapping[str, Json]:
    return task.input if isinstance(task.input, dict) else {}


def _facet(task: Task) -> str:
    return str(_given(task).get("facet") or _given(task).get("workflow") or task.name)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _by(until: datetime | None) -> str:
    return "" if until is None else f", until {_time(until)}"


def _time(moment: datetime | None) -> str:
    return "an unknown time" if moment is None else moment.isoformat(" ", "seconds")
