"""Kills workers while they run flows, and judges the outcome.

python -m tests.chaos.flow --flows 1000 --seconds 90 --workers 6 --seed 1 --store postgres

With `--store mongo` the flows run on a replica set of three, which loses its primary now and then:
killed and started again, or asked to step down.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from afl.kernel.errors import StoreUnavailable
from afl.lang.api import compile_sources
from afl.runtime.operations import Operations
from tests.chaos.command import carry_out
from tests.chaos.flow_fleet import LAST_WORD_SECONDS, FlowFleet, FlowInjector
from tests.chaos.flow_judge import FULL_FLOWS, FlowCase, FlowVerdict, judge_flows
from tests.chaos.flow_stores import FlowStore, OnMongo, OnPostgres
from tests.chaos.flow_workload import PROGRAM, Flow
from tests.chaos.mongo_server import find_mongod
from tests.chaos.server import find_binaries
from tests.chaos.sink import Sink

_TICK_SECONDS = 0.05
#: shares of the time: work arrives, faults happen; what is left is for the work to end
_SUBMIT_SHARE = 0.6
_FAULT_SHARE = 0.8
#: a slow machine may take longer, but when nothing more ends for so long, it is lost: more than the
#: minute for which a store may wait for its server's answer
_STUCK_SECONDS = 75.0
_NAME = "chaos"
#: how often a database loses its server, if it can
_FAILOVER_SECONDS = 8.0
_AGAIN_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Options:
    flows: int = FULL_FLOWS
    seconds: float = 90.0
    workers: int = 6
    seed: int = 1
    store: str = "postgres"


class Submitter:
    """Submits flows at an even pace, in a thread; every third one twice, as by somebody who lost
    the answer."""

    def __init__(self, operations: Operations, flows: Sequence[Flow], seconds: float) -> None:
        self._operations = operations
        self._flows = flows
        self._pace = seconds / len(flows)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.errors: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        begun = time.monotonic()
        try:
            for flow in self._flows:
                ids = {self._submit(flow) for _ in range(1 + (flow.number % 3 == 0))}
                if len(ids) > 1:
                    self.errors.append(f"{flow.key} has become {ids}")
                due = begun + flow.number * self._pace
                if self._stop.wait(max(0.0, due - time.monotonic())):
                    return
        except Exception as error:  # noqa: BLE001 - a thread that ends unseen would look like success
            self.errors.append(f"submitting ended: {error!r}")

    def _submit(self, flow: Flow) -> str:
        while True:
            try:
                run = self._operations.submit(
                    flow.workflow, flow.inputs, program=_NAME, key=flow.key
                )
            except StoreUnavailable:
                # the key makes it one run, however often it is asked for
                if self._stop.wait(_AGAIN_SECONDS):
                    raise
            else:
                return run.id


def run(options: Options, binaries: Path) -> FlowVerdict:
    """One run, from an empty folder to the verdict. Leaves nothing behind."""
    started = time.monotonic()
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="afl-chaos-"))
        stack.callback(shutil.rmtree, folder)
        # the account of the server has to get through
        folder.chmod(0o755)
        logs = folder / "logs"
        logs.mkdir()
        store: FlowStore = (OnMongo if options.store == "mongo" else OnPostgres)(
            binaries, folder / "database"
        )
        stack.callback(store.close)
        sink = stack.enter_context(closing(Sink(folder / "sink.jsonl")))
        persistence = store.connect()
        stack.callback(persistence.close)
        operations = Operations(persistence)
        _deploy(operations)
        flows = [Flow(number) for number in range(options.flows)]
        fleet = FlowFleet(options.workers, store.url, sink.port, logs)
        injector = FlowInjector(fleet, sink, options.seed)
        with (
            closing(fleet),
            Submitter(operations, flows, options.seconds * _SUBMIT_SHARE) as submitter,
        ):
            failovers = _storm(options, store, fleet, injector, submitter)
        case = FlowCase(
            evidence=store.evidence(),
            flows=flows,
            logs=logs,
            sink_file=folder / "sink.jsonl",
            kills=injector.kills,
            stops=injector.stops,
            failovers=failovers,
            seen=(*submitter.errors, *fleet.surprises),
            seconds=time.monotonic() - started,
        )
        return judge_flows(case)


def _deploy(operations: Operations) -> None:
    program = compile_sources([("chaos.afl", PROGRAM)]).program
    assert program is not None
    operations.persistence.deploy(_NAME, operations.evaluator.plans.add(program))


def _storm(
    options: Options,
    store: FlowStore,
    fleet: FlowFleet,
    injector: FlowInjector,
    submitter: Submitter,
) -> int:
    """Faults, then calm until all is done or nothing moves; answers how often the server was
    lost."""
    _await_first(fleet)
    start = time.monotonic()
    calm, end = start + options.seconds * _FAULT_SHARE, start + options.seconds
    ended = failovers = 0
    next_failover = start + _FAILOVER_SECONDS
    heard = calm
    while time.monotonic() < end and not submitter.errors:
        fleet.tend()
        if time.monotonic() < calm:
            injector.tick()
            if time.monotonic() >= next_failover:
                failovers += store.lose_server(failovers)
                next_failover = time.monotonic() + _FAILOVER_SECONDS
        else:
            injector.rest()
        if fleet.somebody_is_stopped:
            heard = max(heard, time.monotonic() + LAST_WORD_SECONDS)
        if (now_ended := store.count_ended()) > ended:
            ended, end = now_ended, max(end, time.monotonic() + _STUCK_SECONDS)
        if ended >= options.flows and time.monotonic() >= heard:
            break
        time.sleep(_TICK_SECONDS)
    return failovers


def _await_first(fleet: FlowFleet) -> None:
    """On a busy machine it takes a while before there is anybody whom a fault could meet."""
    given_up_at = time.monotonic() + _STUCK_SECONDS
    while not fleet.at_work and time.monotonic() < given_up_at:
        time.sleep(_TICK_SECONDS)


def _find(options: Options) -> Path | None:
    return find_mongod() if options.store == "mongo" else find_binaries()


if __name__ == "__main__":
    sys.exit(carry_out("flow", __doc__, Options(), run, sys.argv[1:], _find))
