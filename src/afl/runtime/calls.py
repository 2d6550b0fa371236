"""What a step asks the kernel for: a call, and the task that answers it, as its policies say."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from afl.ir import model as ir
from afl.kernel.model import MAX_CRASHES, NO_RETRY, CallSpec, Json, Retry, TaskSpec, Wake
from afl.kernel.requests import MAX_DURATION
from afl.runtime.context import ExecutionContext, Memory
from afl.runtime.conversions import WrongValue
from afl.runtime.entities import Run
from afl.runtime.persistence import Await, RateWish
from afl.runtime.plan import FacetPlan, Plan, Policies
from afl.runtime.scope import Place
from afl.runtime.states import ObjectType
from afl.runtime.step import ROOT, StepDefinition

#: The name of the tasks that advance a run, and of those that run a script.
EXECUTE = "afl:execute"
SCRIPT = "afl:script"
#: The name of the timers by which work waits for a circuit breaker.
BREAKER = "afl:breaker"
#: Every call has a deadline. One that nobody has asked for lies beyond every run.
NO_TIMEOUT = timedelta(days=3650)
#: Lists that no worker serves unless it names them: what is on them is answered by time, from
#: outside, by people, or when a budget has room.
TIMERS, SIGNALS, PEOPLE, BUDGETS = "afl.timers", "afl.signals", "afl.people", "afl.budgets"
SLEEP, UNTIL, WAIT = "afl.time.Sleep", "afl.time.Until", "afl.event.Wait"
SEND, ASK = "afl.mail.Send", "afl.mail.Ask"
#: The names of their tasks: no handler of a facet with the same short name is to take them.
MAIL_TASKS = {SEND: "afl:send", ASK: "afl:ask"}
#: The name of the task that stands for the answer to a message.
ANSWER = "afl:answer"

_NEVER = datetime.min.replace(tzinfo=UTC)
#: How much longer a call lasts than its attempts can: some seconds, and one part in so many.
_SLACK, _SLACK_SHARE = timedelta(seconds=5), 10
_KINDS = {"prompt": "turn", "human": "human", "script": "script", "handler": "event"}


class Settings:
    """The policies of a step: those of the call, else those of the declaration, evaluated."""

    def __init__(self, context: ExecutionContext, step: StepDefinition, facet: FacetPlan) -> None:
        self._context = context
        self._step = step
        self._facet = facet.policies
        self._call: Policies = {}
        if step.object_type == ObjectType.VARIABLE_ASSIGNMENT:
            self._call = context.plan.statement(step.statement_id).policies

    def get(self, name: str) -> Mapping[str, Json] | None:
        """The arguments of a policy, None if there is none."""
        if name in self._call:
            place = Place.of(self._context, self._step)
            return {key: value(place) for key, value in self._call[name].items()}
        if name in self._facet:
            own = Place(self._context, self._step.path)
            return {key: value(own) for key, value in self._facet[name].items()}
        return None

    def timeout(self) -> timedelta | None:
        given = self.get("Timeout")
        if given is None:
            return None
        return timedelta(
            hours=_int(given, "hours"),
            minutes=_int(given, "minutes"),
            seconds=_int(given, "seconds"),
            milliseconds=_int(given, "ms"),
        )

    def retry(self) -> tuple[Retry, list[Json]]:
        """How often and when it is tried again, and after which errors (none named: after all)."""
        given = self.get("Retry")
        if given is None:
            return NO_RETRY, []
        on = given.get("on")
        return Retry(
            max_failures=_int(given, "max_attempts", 3) - 1,
            delay=timedelta(milliseconds=_int(given, "delay", 1000)),
            backoff=_number(given, "backoff", 2.0),
            max_delay=timedelta(milliseconds=_int(given, "max_delay", 300_000)),
            jitter=given.get("jitter", True) is not False,
        ), on if isinstance(on, list) else []

    def lane(self, name: str, seed: str) -> str | None:
        """The lane of a bounded facet: as many lanes as may run at once, shared out by chance."""
        given = self.get("Concurrency")
        if given is None:
            return None
        bound = _int(given, "max", 1)
        slot = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4]) % bound
        return f"{name}:{given.get('key') or ''}:{slot}"

    def rate(self, name: str) -> RateWish | None:
        """How often a facet may start, None if that does not matter."""
        given = self.get("RateLimit")
        if given is None:
            return None
        per = timedelta(milliseconds=_int(given, "per"))
        return RateWish(name, str(given.get("key") or ""), _int(given, "max"), per)

    def task_list(self) -> str:
        given = self.get("Queue")
        return "default" if given is None else str(given["name"])

    def run_list(self) -> str:
        """The list of a workflow: where it is placed says that too."""
        placement = self.get("Placement") or {}
        label = placement.get("label")
        return self.task_list() if label is None or self.get("Queue") else str(label)

    def placement(self) -> str:
        """Where work is done: `spread`, `sticky` or `pinned`."""
        given = self.get("Placement")
        return "spread" if given is None else str(given["kind"])

    def priority(self, default: int) -> int:
        given = self.get("Priority")
        return default if given is None else _int(given, "level")

    def breaker(self, name: str) -> dict[str, Json] | None:
        """Which circuit breaker stands before a facet, None if there is none."""
        given = self.get("Breaker")
        if given is None:
            return None
        service = str(given.get("service") or "")
        return {
            "name": f"service/{service}" if service else f"facet/{name}",
            "failures": _int(given, "failures", 5),
            "window_ms": _int(given, "window", 300_000),
            "cooldown_ms": _int(given, "cooldown", 60_000),
            "probes": _int(given, "probes", 3),
            "slow_ms": given.get("slow"),
        }

    def effect(self) -> str:
        given = self.get("Effect")
        return "keyed" if given is None else str(given["kind"])


def event_call(context: ExecutionContext, step: StepDefinition, facet: FacetPlan) -> CallSpec:
    """The call of an event facet."""
    name = facet.facet.name
    if name in (SLEEP, UNTIL, WAIT):
        return _timed_call(context, step, name)
    settings = Settings(context, step, facet)
    retry, retry_on = settings.retry()
    attempt = settings.timeout()
    total = _total(attempt, retry)
    effect = settings.effect()
    given = _input(context, step)
    if attempt is not None:
        given["attempt_timeout_ms"] = round(attempt.total_seconds() * 1000)
    if retry_on:
        given["retry_on"] = retry_on
    if effect != "keyed":
        given["effect"] = effect
    rate = settings.rate(name)
    if rate is not None:
        context.changes.rates[step.path] = rate
        given["rate"] = {"max": rate.max, "per_ms": rate.per // timedelta(milliseconds=1)}
    server, script = _server(facet)
    if script is not None:
        given["script"] = script.code
    human = settings.get("Human")
    if human is not None:
        given["group"] = human.get("group")
        deadline = human.get("deadline")
        if isinstance(deadline, int):
            total = timedelta(milliseconds=deadline)
    breaker = settings.breaker(name)
    if breaker is not None:
        given["breaker"] = breaker
        # the time that it waits for the breaker is nobody's fault: each attempt has its own limit
        total = None
    budget = settings.get("Budget")
    if budget is not None:
        given["budget"] = dict(budget)
    task = TaskSpec(
        kind=_KINDS[server],
        name=SCRIPT if server == "script" else MAIL_TASKS.get(name, name),
        list=settings.task_list() if human is None else PEOPLE,
        lane=settings.lane(name, step.id),
        priority=settings.priority(context.run.priority),
        timeout=total,
        # it waits for two things, and goes on when one of them has come
        wake=Wake.ANY if name == ASK else Wake.ALL,
        retry=retry,
        # an effect that cannot be taken back is never done again unseen
        max_crashes=0 if effect == "irreversible" else MAX_CRASHES,
        input=given,
        tenant=context.run.tenant,
    )
    return CallSpec(step.path, task, total or NO_TIMEOUT)


def placement_of(context: ExecutionContext) -> str:
    """Where the steps of a run are done, as its workflow says."""
    root = context.row(ROOT)
    return Settings(context, root, context.plan.facet(root.facet_name)).placement()


def runs_elsewhere(context: ExecutionContext, step: StepDefinition) -> bool:
    """Whether a step is a workflow with a run of its own. Not if the call gives its body."""
    return (
        step.object_type != ObjectType.WORKFLOW
        and context.plan.facet(step.facet_name).facet.kind == "workflow"
        and not context.plan.has_body(step.statement_id)
    )


def is_prepared(context: ExecutionContext, step: StepDefinition) -> bool:
    """Whether what comes before the body was done by the run that calls this one."""
    return step.object_type == ObjectType.WORKFLOW and context.run.parent is not None


def flow_call(context: ExecutionContext, step: StepDefinition, facet: FacetPlan) -> CallSpec:
    """The call of a workflow: a run of its own, whose outputs are the answer."""
    settings = Settings(context, step, facet)
    timeout = settings.timeout()
    given: dict[str, Json] = {
        "program": context.run.program,
        "workflow": facet.facet.name,
        "inputs": step.params,
        "run": context.run.id,
        "step": step.path,
    }
    task = flow_task(
        given,
        lane=settings.lane(facet.facet.name, step.id),
        task_list=settings.run_list(),
        priority=settings.priority(context.run.priority),
        timeout=timeout,
        tenant=context.run.tenant,
    )
    return CallSpec(step.path, task, timeout or NO_TIMEOUT)


def run_task(run: Run, plan: Plan, *, priority: int | None, timeout: timedelta | None) -> TaskSpec:
    """The task of a run that is started by itself, as the policies of its workflow say unless a
    priority or a timeout is given."""
    facet = plan.facet(run.workflow)
    root = StepDefinition(run.id, ROOT, ObjectType.WORKFLOW, run.workflow, run.workflow)
    root.params = dict(run.inputs)
    context = ExecutionContext(run, plan, Memory({ROOT: root}), _NEVER)
    settings = Settings(context, root, facet)
    return flow_task(
        {"program": run.program, "workflow": run.workflow},
        lane=settings.lane(run.workflow, root.id),
        task_list=settings.run_list(),
        priority=settings.priority(0) if priority is None else priority,
        timeout=settings.timeout() if timeout is None else timeout,
        tenant=run.tenant,
    )


def flow_task(
    given: dict[str, Json],
    *,
    lane: str | None = None,
    task_list: str = "default",
    priority: int = 0,
    timeout: timedelta | None = None,
    tenant: str = "default",
) -> TaskSpec:
    """The task that advances a run. It wakes at every answer, and keeps its lane while it waits."""
    return TaskSpec(
        kind="flow",
        name=EXECUTE,
        list=task_list,
        lane=lane,
        priority=priority,
        timeout=timeout,
        wake=Wake.ANY,
        input=given,
        tenant=tenant,
    )


def script_call(
    context: ExecutionContext,
    step: StepDefinition,
    script: ir.Script,
    params: Mapping[str, Json],
    *,
    tag: str = "",
) -> CallSpec:
    """The call of a script before a body or as a clause."""
    given = _input(context, step)
    given["params"] = dict(params)
    given["script"] = script.code
    task = TaskSpec("script", SCRIPT, input=given, tenant=context.run.tenant)
    return CallSpec(step.path + tag, task, NO_TIMEOUT)


def _timed_call(context: ExecutionContext, step: StepDefinition, name: str) -> CallSpec:
    """A call that no worker serves: it is answered by its deadline, or by an event."""
    given = _input(context, step)
    if name == WAIT:
        timeout = step.params.get("timeout")
        span = NO_TIMEOUT if timeout is None else _span(_int(step.params, "timeout"))
        task = TaskSpec("signal", name, list=SIGNALS, input=given, tenant=context.run.tenant)
        awaited = Await(step.path, str(step.params["name"]), str(step.params["key"]))
        context.changes.awaits.append(awaited)
        return CallSpec(step.path, task, span)
    if name == SLEEP:
        span = _span(_int(step.params, "duration"))
    else:
        span = _until(context, str(step.params["time"]))
    task = TaskSpec("timer", name, list=TIMERS, input=given, tenant=context.run.tenant)
    return CallSpec(step.path, task, span)


def _until(context: ExecutionContext, time: str) -> timedelta:
    try:
        span = context.until(time)
    except ValueError as error:
        raise WrongValue(
            f"`{time}` is not a time; write it as in 2027-01-31T09:00:00+01:00", path="time"
        ) from error
    return _span(-(-span // timedelta(milliseconds=1)))


def _span(ms: int) -> timedelta:
    """A wait that the kernel takes; what is over already is over at once."""
    return timedelta(milliseconds=min(max(ms, 1), MAX_DURATION // timedelta(milliseconds=1)))


def _server(facet: FacetPlan) -> tuple[str, ir.Script | None]:
    """Who serves an event facet."""
    if facet.facet.prompt is not None:
        return "prompt", None
    if facet.facet.script is not None:
        return "script", facet.facet.script
    return ("human" if "Human" in facet.policies else "handler"), None


def _input(context: ExecutionContext, step: StepDefinition) -> dict[str, Json]:
    return {
        "facet": step.facet_name,
        "params": step.params,
        "run": context.run.id,
        "step": step.path,
        "program": context.run.program,
    }


def _total(attempt: timedelta | None, retry: Retry) -> timedelta | None:
    """The longest that all attempts can take together, with the waits between them, and then some:
    the last attempt is to end by its own time, and to be told by its worker."""
    if attempt is None:
        return None
    waits = timedelta()
    for number in range(retry.max_failures):
        waits += min(retry.delay * retry.backoff ** min(number, 64), retry.max_delay)
    longest = attempt * (retry.max_failures + 1) + waits
    return longest + _SLACK + longest / _SLACK_SHARE


def _int(given: Mapping[str, Json], name: str, default: int = 0) -> int:
    value = given.get(name, default)
    assert isinstance(value, int)
    return value


def _number(given: Mapping[str, Json], name: str, default: float) -> float:
    value = given.get(name, default)
    assert isinstance(value, int | float)
    return float(value)
