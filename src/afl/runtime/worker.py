"""The worker: the one claim loop under everything that serves tasks.

It claims what its handlers serve, runs them, advances flows, and commits what came of it. Its
threads: a dispatcher, which alone commits and claims; threads for handlers and an event loop; one
that renews the lease, whatever the others do; one that sweeps; one that listens for the doorbell.
"""

from __future__ import annotations

import logging
import random
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from time import monotonic

from afl.base.ids import IdSource
from afl.base.system import SystemIds
from afl.kernel.doorbell import Doorbell, LocalDoorbell
from afl.kernel.errors import KernelError, NotFound
from afl.kernel.model import WorkerId, WorkerSpec, WorkerState
from afl.kernel.waiting import PollPolicy
from afl.kernel.working.hands import Hands
from afl.kernel.working.health import LoopHealth
from afl.kernel.working.lease import Lease
from afl.kernel.working.loops import AFTER_ERROR_SECONDS, BackgroundLoop
from afl.runtime.calls import EXECUTE, SCRIPT
from afl.runtime.evaluator import Evaluator
from afl.runtime.guarding import Guard
from afl.runtime.handler_table import HandlerTable
from afl.runtime.working.counters import Counters
from afl.runtime.working.dispatcher import Dispatcher
from afl.runtime.working.messages import Look, Served, Strays
from afl.runtime.working.scripts import run_script
from afl.runtime.working.spooling import ResultSpool, tell_leftovers
from afl.runtime.working.sweeping import Sweeper

_log = logging.getLogger("afl.worker")
_LISTEN_SECONDS = 0.25
#: How often the worker that sweeps does so, and how often the others look whether it still does.
_SWEEP_SECONDS, _LOOK_SECONDS = 1.0, 2.5
_HAND_BACK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """How a worker works, and under which names it is known."""

    slots: int = 8
    lists: tuple[str, ...] = ("default",)
    #: what is claimed; None for all that the handlers serve
    names: tuple[str, ...] | None = None
    #: serve every run and every script; else only advance the runs whose tasks were done here
    all_flows: bool = True
    #: facets of which no more than `bound` are served at once, within the slots
    bounded: tuple[str, ...] = ()
    bound: int = 0
    #: where results are written down while the database is away; None for nowhere
    spool: Path | None = None
    lease_seconds: float = 30.0
    renew_seconds: float = 10.0
    poll: PollPolicy = field(default_factory=PollPolicy)
    name: str = field(default_factory=socket.gethostname)
    group: str = "default"
    service: str = "afl-worker"

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise ValueError("a worker needs at least one slot")
        if not 0 < self.renew_seconds < self.lease_seconds:
            raise ValueError("a lease must be renewed before it ends")


class Worker:
    """Serves tasks from `start` to `drain`. Made anew for each life."""

    def __init__(
        self,
        evaluator: Evaluator,
        table: HandlerTable,
        config: WorkerConfig | None = None,
        *,
        doorbell: Doorbell | None = None,
        ids: IdSource | None = None,
        id: WorkerId | None = None,
        guard: Guard | None = None,
        asked: Callable[[], None] = lambda: None,
    ) -> None:
        """Connects to nothing yet. The doorbell and the guard stay the caller's; without a doorbell
        it polls, without a guard no breaker stands before a facet. `asked` is called when somebody
        has asked for the worker to be drained."""
        ids = ids or SystemIds()
        self.config = config or WorkerConfig()
        self.id = id or WorkerId(f"{self.config.service}-{ids.new_id()}")
        self.counters = Counters()
        self._kernel = evaluator.persistence.kernel
        self._doorbell = doorbell or LocalDoorbell()
        self._hands = Hands()
        self._lease = Lease(self.config.lease_seconds)
        self._asked = asked
        self._was_asked = False
        names = table.names() if self.config.names is None else list(self.config.names)
        if self.config.all_flows:
            table = table.extended(SCRIPT, run_script)
            names = [*names, *({SCRIPT} - set(names))]
        self._served = Served(
            self.id,
            tuple(names),
            self.config.lists,
            self.config.slots,
            self.config.all_flows,
            frozenset(self.config.bounded),
            self.config.bound,
        )
        self._dispatcher = Dispatcher(
            self._served,
            table,
            evaluator,
            ids,
            self._hands,
            self._lease,
            self.counters,
            self._doorbell.ring,
            guard,
            None if self.config.spool is None else ResultSpool(self.config.spool, self.id),
        )
        self._persistence = evaluator.persistence
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._dispatch, name="afl-dispatcher", daemon=True)
        self._renewal = BackgroundLoop(
            "renewal", self._renew, after_error_seconds=min(1.0, self.config.renew_seconds / 4)
        )
        self._sweep = BackgroundLoop("sweep", self._sweep_once)
        self._listener = BackgroundLoop("doorbell", self._listen)
        self._sweeper = Sweeper(evaluator.persistence, self.id, self._doorbell.ring)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_draining(self) -> bool:
        return self._dispatcher.draining

    def health(self) -> list[LoopHealth]:
        """How its loops fare."""
        loops = (self._renewal, self._sweep, self._listener)
        return [self._dispatcher.health, *(loop.health for loop in loops)]

    # Its life

    def start(self) -> None:
        """Makes the worker known and starts its threads. What workers before it could not tell is
        told first."""
        self._register()
        if self.config.spool is not None:
            adopted = tell_leftovers(self.config.spool, self._persistence)
            if adopted:
                _log.warning("%d results of workers that are gone were adopted", adopted)
        self._kernel.set_worker_state(self.id, WorkerState.RUNNING)
        for loop in (self._renewal, self._sweep, self._listener):
            loop.start()
        self._thread.start()

    def drain(self, timeout_seconds: float) -> bool:
        """Claims nothing more, lets handlers finish, and hands back what is left after the time.

        Tells whether everything was finished.
        """
        if not self._thread.is_alive():
            return True
        with suppress(KernelError):
            self._kernel.set_worker_state(self.id, WorkerState.SHUTDOWN)
        self._dispatcher.draining = True
        self._dispatcher.inbox.put(Look())
        self._thread.join(timeout_seconds)
        finished = not self._thread.is_alive()
        if not finished:
            self._ended.set()
            self._dispatcher.inbox.put(Look())
            self._thread.join(_HAND_BACK_SECONDS)
            self._hand_back()
        for loop in (self._sweep, self._listener, self._renewal):
            loop.stop()
        self._sweeper.release()
        self._dispatcher.close()
        return finished

    def _hand_back(self) -> None:
        """What cannot be handed back comes back when the lease ends."""
        if self._thread.is_alive():
            _log.warning("the store does not answer: what is in hand is left to the lease")
            return
        try:
            self._dispatcher.hand_back()
        except KernelError:
            _log.warning("not everything could be handed back", exc_info=True)

    def _register(self) -> None:
        config, served = self.config, self._served
        asked = self._lease.ask()
        flows = (EXECUTE,) if served.all_flows else ()
        self._kernel.register(
            WorkerSpec(
                self.id,
                config.name,
                group=config.group,
                service=config.service,
                lists=served.lists,
                handlers=(*served.names, *flows),
                slots=served.slots,
                lease=timedelta(seconds=config.lease_seconds),
            )
        )
        self._lease.renewed(asked)

    # Its threads

    def _dispatch(self) -> None:
        dispatcher, policy = self._dispatcher, self.config.poll
        empty_looks = 0
        while not self._ended.is_set():
            wait_seconds = policy.wait_seconds(empty_looks + 1, random.random())
            try:
                if not dispatcher.take_in(wait_seconds):
                    dispatcher.look()
                empty_looks = 0 if dispatcher.cycle() else empty_looks + 1
            except Exception as error:  # noqa: BLE001 - whatever it is, the worker outlives it
                dispatcher.health.failed(error)
                _log.warning("the dispatcher failed, and goes on", exc_info=True)
                self._ended.wait(min(AFTER_ERROR_SECONDS, wait_seconds))
            if dispatcher.draining and dispatcher.is_empty:
                return

    def _renew(self) -> float:
        self._dispatcher.check_loop()
        named = [held.fence for held in self._hands.all()]
        asked = self._lease.ask()
        try:
            renewal = self._kernel.renew(self.id, named)
        except NotFound:
            self._register()
            return 0.0
        self._lease.renewed(asked)
        self._hear()
        strays = self._hands.take_in(named, renewal)
        if strays:
            self._dispatcher.inbox.put(Strays(tuple(strays)))
        if renewal.lost or renewal.stop:
            self._dispatcher.inbox.put(Look())
        return self.config.renew_seconds

    def _hear(self) -> None:
        """Whether somebody else has set the worker to shut down."""
        if self.is_draining or self._was_asked:
            return
        found = self._kernel.get_worker(self.id)
        if found is not None and found.state is WorkerState.SHUTDOWN:
            self._was_asked = True
            self._asked()

    def _sweep_once(self) -> float:
        if not self._lease.may_judge:
            return _LOOK_SECONDS
        swept = self._sweeper.sweep()
        if swept:
            self._dispatcher.inbox.put(Look())
            self._doorbell.ring(self._served.lists)
        wait_seconds = _LOOK_SECONDS if swept is None else _SWEEP_SECONDS
        return wait_seconds * random.uniform(0.75, 1.25)

    def _listen(self) -> float:
        end = monotonic() + _LISTEN_SECONDS
        if self._doorbell.wait(self._served.lists, _LISTEN_SECONDS):
            self._dispatcher.inbox.put(Look())
            return 0.0
        # a doorbell that is closed does not wait
        return max(0.0, end - monotonic())
