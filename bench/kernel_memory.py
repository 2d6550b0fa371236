"""How many steps a second the memory store takes: `python -m bench.kernel_memory`.

A cycle is one enqueue, one claim and one commit that closes the task. A step is what a warm worker
does for each step of a flow: one commit that opens a call, whose callee is born running.
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
    eager = ClaimRequest(WORKER, ("Pay",))
    store.enqueue([FLOW])
    for number in range(count):
        (flow,) = store.claim(ClaimRequest(WORKER, ("Flow",)))
        (committed,) = store.commit(
            [
                Commit(
                    flow.fence,
                    Suspend(),
                    calls=(CallSpec(f"s{number}", STEP, timedelta(hours=1)),),
                    applied=tuple(call.id for call in flow.replies),
                )
            ],
            eager=eager,
        )
        store.commit([Commit(committed.eager[0].fence, DONE)])
    (flow,) = store.claim(ClaimRequest(WORKER, ("Flow",)))
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
