"""Those around the workers: a client that starts runs, sweepers, and people who answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random

from afl.kernel.model import CallStatus, ClaimRequest, Json, TaskId, WorkerId, WorkerSpec
from afl.runtime.calls import EXECUTE
from afl.runtime.evaluator import Evaluator
from afl.runtime.step import WorkflowId, step_id
from afl.testing.flow_simulation.answers import answer
from afl.testing.flow_simulation.cases import Case
from afl.testing.flow_simulation.programs import WORKFLOW
from afl.testing.flow_simulation.store import FlowStore
from afl.testing.simulation.faults import Fault
from afl.testing.simulation.steps import Steps, ask

#: Asks the scheduler whether this may happen now; what may is on the tape.
Permit = Callable[[Fault, str], bool]

#: What people do in this simulation.
DEEDS = (Fault.OUTSIDE_REPLY, Fault.SECOND_REPLY, Fault.FALSE_REPLY)
_TRIES = 6


def client(evaluator: Evaluator, case: Case, count: int, started: list[WorkflowId]) -> Steps[None]:
    """Starts runs. Without an answer it asks again, under the same key."""
    for number in range(count):
        start = partial(evaluator.start, case.hash, WORKFLOW, key=f"run-{number}")
        started.append((yield from ask("start", start, number, echoes=True)))
        yield 1.0


def sweeper(store: FlowStore, rng: Random) -> Steps[None]:
    while True:
        yield 4 + rng.random() * 6
        limit = (1, 3, 100)[int(rng.random() * 3)]
        yield from ask("sweep", partial(store.sweep, limit), limit)


def overtake(store: FlowStore, evaluator: Evaluator, name: str) -> None:
    """Somebody else advances what is ready, all at once."""
    rival = WorkerId(name)
    store.kernel.register(WorkerSpec(rival, name))
    for claim in store.kernel.claim(ClaimRequest(rival, (EXECUTE,), n=3)):
        turn = evaluator.evaluate(claim)
        evaluator.commit(turn)
        while turn.goes_on:
            turn = evaluator.go_on(turn)
            evaluator.commit(turn)


def person(
    store: FlowStore, evaluator: Evaluator, rng: Random, deeds: tuple[Fault, ...], permit: Permit
) -> Steps[None]:
    """Answers steps that others work on, and steps that have been answered."""
    for _ in range(_TRIES if deeds else 0):
        yield 1 + rng.random() * 8
        deed, chance = rng.choice(deeds), rng.random()
        if store.calls:
            run, spec = store.calls[int(chance * len(store.calls))]
            if spec.task.kind == "event":
                given = spec.task.input
                assert isinstance(given, dict)
                facet, params = str(given["facet"]), given["params"]
                assert isinstance(params, dict)
                yield from _answer(store, evaluator, run, spec.key, (facet, params), deed, permit)


def _answer(
    store: FlowStore,
    evaluator: Evaluator,
    run: WorkflowId,
    path: str,
    work: tuple[str, Mapping[str, Json]],
    deed: Fault,
    permit: Permit,
) -> Steps[None]:
    """The answer is what the work comes to anyhow; a false one goes to answered calls alone."""
    call = store.kernel.find_call(TaskId(run), path)
    answered = call is not None and call.status is not CallStatus.OPEN
    if call is None or answered is (deed is Fault.OUTSIDE_REPLY) or not permit(deed, path):
        return
    store.counts.outside_answers += 1
    if deed is Fault.FALSE_REPLY:
        false = partial(store.kernel.reply, call.id, CallStatus.OK, {"v": 99, "vs": [99]})
        yield from ask("false reply", false, path, echoes=True)
        return
    found = answer(*work)
    if deed is Fault.OUTSIDE_REPLY:
        store.effect(run, path)
    step = step_id(run, path)
    if found.result is not None:
        yield from ask(
            "continue", partial(evaluator.continue_step, step, found.result), path, echoes=True
        )
    else:
        assert found.error is not None
        message, kind = str(found.error["message"]), str(found.error["type"])
        yield from ask("fail", partial(evaluator.fail_step, step, message, kind), path, echoes=True)
