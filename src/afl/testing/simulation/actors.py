"""Those around the workers: clients that submit, sweepers, people who meddle, users of locks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from random import Random

from afl.kernel.model import CallStatus, Json, Task, TaskId, TaskSpec
from afl.testing.simulation.faults import Fault
from afl.testing.simulation.ledger import CallEntry
from afl.testing.simulation.locks import WatchedLocks
from afl.testing.simulation.scenario import Piece, Scenario, expected_answer
from afl.testing.simulation.steps import Steps, ask
from afl.testing.simulation.watch import WatchedStore

#: Asks the scheduler whether this may happen now; what may is on the tape.
Permit = Callable[[Fault, str], bool]

_DEEDS = 2
_ROUNDS = 2
_LOCK = "door"
_LOCK_TIME = timedelta(seconds=10)


def client(store: WatchedStore, scenario: Scenario) -> Steps[None]:
    """Submits every root. Without an answer it asks again; some it submits twice anyhow."""
    again: list[TaskSpec] = []
    waited = 0.0
    for root in sorted(scenario.roots, key=lambda root: root.after):
        yield root.after - waited
        waited = root.after
        specs = [root.piece.spec(f"submit-{root.piece.path}")]
        yield from ask("enqueue", partial(store.enqueue, specs), specs, echoes=True)
        if root.twice:
            again += specs
    yield 3.0
    if again:
        yield from ask("enqueue", lambda: store.enqueue(again), again)


def sweeper(store: WatchedStore, rng: Random) -> Steps[None]:
    while True:
        yield 8 + rng.random() * 10
        limit = (1, 3, 100)[int(rng.random() * 3)]
        yield from ask("sweep", partial(store.sweep, limit), limit)


def operator(store: WatchedStore, scenario: Scenario, rng: Random, permit: Permit) -> Steps[None]:
    """Drives dead letters again, as long as it may. Only work that calls nothing: what is called
    again is another task, whose effects would be others."""
    while True:
        yield 2 + rng.random() * 6
        letters = [
            letter for letter in store.dead_letters() if not _piece_of(scenario, letter).stages
        ]
        if letters and permit(Fault.REDRIVE, str(letters[0].input)):
            dead = letters[0].id
            for _ in range(2):  # as people do who see nothing happen
                yield from ask("redrive", partial(store.redrive, dead), dead, echoes=True)


def locker(locks: WatchedLocks, rng: Random, name: str) -> Steps[None]:
    """Takes one lock that others want too, extends it, and lets it go, if it still has it."""
    for number in range(_ROUNDS):
        token = f"{name}-{number}"
        yield 4 + rng.random() * 12
        acquire = partial(locks.acquire, _LOCK, token, _LOCK_TIME)
        if not (yield from ask("lock", acquire, token)):
            continue
        yield rng.random() * 9
        extend = partial(locks.extend, _LOCK, token, _LOCK_TIME)
        yield from ask("extend", extend, token)
        yield rng.random() * 9
        yield from ask("release", partial(locks.release, _LOCK, token), token)


def person(
    store: WatchedStore,
    scenario: Scenario,
    rng: Random,
    deeds: tuple[Fault, ...],
    permit: Permit,
) -> Steps[None]:
    """Stops tasks and answers calls, now and then."""
    for _ in range(_DEEDS if deeds else 0):
        yield 3 + rng.random() * 30
        deed = deeds[int(rng.random() * len(deeds))]
        chance = rng.random()
        if deed in (Fault.STOP, Fault.FORCED_STOP):
            yield from _stop(store, deed, chance, permit)
        else:
            yield from _reply(store, scenario, deed, chance, permit)


def _piece_of(scenario: Scenario, task: Task) -> Piece:
    return scenario.pieces[str(task.input)]


def _stop(store: WatchedStore, deed: Fault, chance: float, permit: Permit) -> Steps[None]:
    targets = sorted(store.ledger.open)
    if not targets:
        return
    task: TaskId = targets[int(chance * len(targets))]
    if permit(deed, store.ledger.tasks[task].path):
        force = deed is Fault.FORCED_STOP
        yield from ask("stop", lambda: store.stop(task, force=force), task, echoes=True)


def _reply(
    store: WatchedStore, scenario: Scenario, deed: Fault, chance: float, permit: Permit
) -> Steps[None]:
    """Outside answers are what the callee would say too, so that results stay determined. A false
    one goes only to a call that has its answer."""
    answered = [call for call in store.ledger.calls.values() if store.is_answered(call.id)]
    targets = list(store.ledger.calls.values()) if deed is Fault.OUTSIDE_REPLY else answered
    if not targets:
        return
    call: CallEntry = targets[int(chance * len(targets))]
    status, body = _answer(scenario, call, deed)
    if permit(deed, call.key):
        yield from ask(
            "reply", lambda: store.reply(call.id, status, body), (call.key, status), echoes=True
        )


def _answer(scenario: Scenario, call: CallEntry, deed: Fault) -> tuple[CallStatus, Json]:
    if deed is Fault.FALSE_REPLY:
        return CallStatus.OK, {"false": True}
    return expected_answer(scenario.pieces[call.key])
