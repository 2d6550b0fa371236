"""How many steps a second the memory store takes: `python -m bench.kernel_memory`.

A cycle is one enqueue, one claim and one commit that closes the task. A step is what a warm worker
does for each step of a flow: it commits the flow with a call and gets the callee to do, then it
commits the callee's answer and gets the flow to go on.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from datetime import timedelta

from afl.base.system import SystemClock, SystemIds
from afl.kernel.memory import MemoryStore
from afl.kernel.model import (
    CallSpec,
    ClaimRequest,
    Close,
    Commit,
    Outcome,
    Suspend,
    TaskSpec,
    Wake,
    WorkerId,
    WorkerSpec,
)

WORKER = WorkerId("bench")
ROUNDS = 10
CYCLES = 2_000
BACKLOG = 100_000
DONE = Close(Outcome.SUCCESS, {"total": 3})
STEP = TaskSpec("event", "billing.Pay", input={"amount": 12, "to": ["a", "b"]})
FLOW = TaskSpec("flow", "Flow", wake=Wake.ANY)


def fresh_store() -> MemoryStore:
    store = MemoryStore(SystemClock(), SystemIds())
    store.register(WorkerSpec(WORKER, "bench", handlers=("Pay", "Flow"), lease=timedelta(hours=1)))
    return store


def cycles(store: MemoryStore, count: int) -> None:
    request = ClaimRequest(WORKER, ("Pay",))
    for _ in range(count):
        store.enqueue([STEP])
        (claim,) = store.claim(request)
        store.commit([Commit(claim.fence, DONE)])


def steps(store: MemoryStore, count: int) -> None:
    """A flow of `count` steps, each one call that its own worker answers."""
    request = ClaimRequest(WORKER, ("Pay", "Flow"))
    store.enqueue([FLOW])
    (flow,) = store.claim(request)
    for number in range(count):
        call = CallSpec(f"s{number}", STEP, timedelta(hours=1))
        applied = tuple(call.id for call in flow.replies)
        commit = Commit(flow.fence, Suspend(), calls=(call,), applied=applied)
        _, (callee,) = store.commit_and_claim([commit], request)
        _, (flow,) = store.commit_and_claim([Commit(callee.fence, DONE)], request)
    store.commit([Commit(flow.fence, DONE)])


def per_second(work: Callable[[MemoryStore, int], None], store: MemoryStore) -> dict[str, int]:
    """By processor time, since that is what the store uses; other processes spoil the median."""
    rates = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work(store, CYCLES)
        rates.append(round(CYCLES / (time.process_time() - start)))
    return {"best": max(rates), "median": round(statistics.median(rates))}


def main() -> None:
    full = fresh_store()
    full.enqueue([STEP] * BACKLOG)
    figures = {
        "cycles_per_s": per_second(cycles, fresh_store()),
        f"cycles_per_s_behind_{BACKLOG}": per_second(cycles, full),
        "steps_per_s": per_second(steps, fresh_store()),
    }
    print(f"{'':<28}{'best':>10}{'median':>10}")
    for name, rates in figures.items():
        print(f"{name:<28}{rates['best']:>10}{rates['median']:>10}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
