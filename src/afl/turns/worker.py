"""The turn worker: claims turns, and whatever else is done by waiting, and works on many at once.

Its threads: one runs an event loop, in which every claim is a coroutine; a few do the store's work
for it; one renews the lease, however busy the loop is; one sweeps; one asks which names are served;
one listens for the doorbell.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Protocol

from afl.base.ids import IdSource
from afl.base.system import SystemIds
from afl.kernel.doorbell import Doorbell, LocalDoorbell
from afl.kernel.errors import KernelError, NotFound, StoreUnavailable
from afl.kernel.model import Claim, ClaimRequest, Fence, WorkerId, WorkerSpec, WorkerState
from afl.kernel.waiting import PollPolicy
from afl.kernel.working.hands import Hands, give_back
from afl.kernel.working.health import LoopHealth
from afl.kernel.working.lease import Lease
from afl.kernel.working.loops import BackgroundLoop
from afl.turns.grip import Grip
from afl.turns.joining import JoinAttendant
from afl.turns.model import AGENT_NAME
from afl.turns.ports import Server, TurnStore
from afl.turns.serving import Attendant, Served, ServerAttendant, work_on
from afl.turns.sweeping import SWEPT_AT_ONCE, TurnSweeper

_log = logging.getLogger("afl.turns")
_LISTEN_SECONDS = 0.25
#: How often the worker that sweeps does so, and how often the others look whether it still does.
_SWEEP_SECONDS, _LOOK_SECONDS = 1.0, 2.5
_NAMES_SECONDS = 3.0
_HAND_BACK_SECONDS = 5.0
_AFTER_ERROR_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class TurnWorkerConfig:
    """How a turn worker works, and under which names it is known."""

    #: how many turns at once: most of the time each waits for a model
    slots: int = 50
    lists: tuple[str, ...] = ("default",)
    #: whose turns it takes: agents say which workers serve them
    targets: tuple[str, ...] = ("default",)
    #: how many threads ask the store; no more than it has connections
    store_threads: int = 8
    lease_seconds: float = 30.0
    renew_seconds: float = 10.0
    poll: PollPolicy = field(default_factory=PollPolicy)
    name: str = field(default_factory=socket.gethostname)
    group: str = "default"
    service: str = "afl-turns"

    def __post_init__(self) -> None:
        if self.slots < 1 or self.store_threads < 1:
            raise ValueError("a worker needs at least one slot and one thread for the store")
        if not 0 < self.renew_seconds < self.lease_seconds:
            raise ValueError("a lease must be renewed before it ends")


class Main(Attendant, Protocol):
    """What a worker is there for: a `TurnLoop`, or another attendant with a store."""

    @property
    def store(self) -> TurnStore: ...


async def _nothing() -> None:
    """There is nothing to close."""


class TurnWorker:
    """Serves from `start` to `drain`. Made anew for each life."""

    def __init__(
        self,
        loop: Main,
        config: TurnWorkerConfig | None = None,
        doorbell: Doorbell | None = None,
        *,
        servers: Sequence[Server] = (),
        attendants: Sequence[Attendant] = (),
        at_end: Callable[[], Awaitable[None]] = _nothing,
        ids: IdSource | None = None,
        id: WorkerId | None = None,
    ) -> None:
        """Connects to nothing yet. The doorbell stays the caller's; without one it polls.

        Args:
            loop: what works on turns.
            servers: what does other tasks, such as calls of MCP tools.
            attendants: what does others still, and may wait for what they call.
            at_end: called on the event loop when everything is done, to close connections.
        """
        self.config = config or TurnWorkerConfig()
        self._ids = ids or SystemIds()
        self.id = id or WorkerId(f"{self.config.service}-{self._ids.new_id()}")
        self._kernel = loop.store.kernel
        self._doorbell = doorbell or LocalDoorbell()
        ring = self._doorbell.ring
        self._turns = loop
        self._at_end = at_end
        self._others: tuple[Attendant, ...] = (
            JoinAttendant(self._kernel, ring),
            *(ServerAttendant(self._kernel, server, ring) for server in servers),
            *attendants,
        )
        self._served = Served(())
        self._hands = Hands()
        self._lease = Lease(self.config.lease_seconds)
        #: only the event loop's thread touches these
        self._grips: dict[Fence, Grip] = {}
        self._working: set[asyncio.Task[None]] = set()
        self._is_draining = False
        self._sweeper = TurnSweeper(loop.store, self.id)
        self._claiming = LoopHealth("claims")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="afl-turns", daemon=True)
        quickly = min(1.0, self.config.renew_seconds / 4)
        self._renewal = BackgroundLoop("renewal", self._renew, after_error_seconds=quickly)
        self._loops = (
            BackgroundLoop("sweep", self._sweep_once),
            BackgroundLoop("names", self._refresh_names),
            BackgroundLoop("doorbell", self._listen),
        )

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_draining(self) -> bool:
        return self._is_draining

    @property
    def in_hand(self) -> int:
        """How many tasks it works on."""
        return len(self._hands.all())

    def health(self) -> list[LoopHealth]:
        """How its loops fare."""
        return [self._claiming, *(loop.health for loop in (self._renewal, *self._loops))]

    # Its life

    def start(self) -> None:
        """Makes the worker known and starts its threads."""
        self._served = self._ask()
        self._register()
        self._loop = asyncio.new_event_loop()
        for loop in (self._renewal, *self._loops):
            loop.start()
        self._thread.start()

    def drain(self, timeout_seconds: float) -> bool:
        """Claims nothing more, begins no request, and hands back what is left after the time.

        Tells whether no request had to be cut short.
        """
        if not self._thread.is_alive():
            return True
        self._is_draining = True
        with suppress(KernelError):
            self._kernel.set_worker_state(self.id, WorkerState.SHUTDOWN)
        self._call(self._begin_draining)
        self._thread.join(timeout_seconds)
        finished = not self._thread.is_alive()
        if not finished:
            self._call(self._leave_all)
            self._thread.join(_HAND_BACK_SECONDS)
        if self._thread.is_alive():
            _log.warning("not everything could be handed back: it is left to the lease")
        for loop in (*self._loops, self._renewal):
            loop.stop()
        self._sweeper.release()
        return finished

    def _register(self) -> None:
        config = self.config
        self._kernel.register(
            WorkerSpec(
                self.id,
                config.name,
                group=config.group,
                service=config.service,
                lists=config.lists,
                handlers=self._served.names,
                slots=config.slots,
                lease=timedelta(seconds=config.lease_seconds),
            )
        )
        self._kernel.set_worker_state(self.id, WorkerState.RUNNING)

    def _ask(self) -> Served:
        """What is served now. The turns of agents are, whether or not there are agents yet."""
        agents = tuple(AGENT_NAME.format(target=target) for target in self.config.targets)
        others = ((attendant, attendant.names()) for attendant in self._others)
        return Served(((self._turns, (*self._turns.names(), *agents)), *others))

    # In the thread of the event loop

    def _run(self) -> None:
        loop = self._loop
        assert loop is not None
        threads = ThreadPoolExecutor(self.config.store_threads, "afl-turns-store")
        loop.set_default_executor(threads)
        try:
            loop.run_until_complete(self._serve())
            # connections belong to the event loop that made them
            loop.run_until_complete(self._at_end())
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    def _call(self, what: Callable[[], None]) -> None:
        """Has the event loop do something; for other threads."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(what)

    def _begin_draining(self) -> None:
        for grip in self._grips.values():
            grip.drain()
        self._news.set()

    def _leave_all(self) -> None:
        for grip in self._grips.values():
            grip.leave()

    async def _serve(self) -> None:
        empty_looks = 0
        while not self._is_draining:
            self._news.clear()
            try:
                empty_looks = 0 if await self._look() else empty_looks + 1
            except Exception as error:  # noqa: BLE001 - whatever it is, the worker outlives it
                self._claiming.failed(error)
                _log.warning("claiming failed, and goes on", exc_info=True)
                await asyncio.sleep(_AFTER_ERROR_SECONDS)
            await self._wait(max(1, empty_looks))
        while self._working:
            await asyncio.wait(self._working)

    async def _look(self) -> bool:
        """Claims as much as there is room for; tells whether there was anything."""
        free = self.config.slots - len(self._grips)
        if free <= 0 or not self._served.names:
            return False
        claims = await self._claim(free)
        for claim in claims:
            self._begin(claim)
        if len(claims) == free:
            # there may be more than fits here: somebody else may have room
            self._doorbell.ring(self.config.lists)
        return bool(claims)

    async def _claim(self, free: int) -> list[Claim]:
        request = ClaimRequest(
            self.id, self._served.names, self.config.lists, free, self._ids.new_id()
        )
        self._hands.begin_claim()
        try:
            while True:
                try:
                    claims = await asyncio.to_thread(self._kernel.claim, request)
                except StoreUnavailable as error:
                    self._claiming.failed(error)
                    if self._is_draining:
                        return []
                    # under the same token: what the lost answer held is answered again
                    await asyncio.sleep(_AFTER_ERROR_SECONDS)
                    continue
                for claim in claims:
                    self._hands.put(claim)
                self._claiming.succeeded()
                return claims
        except KernelError as error:  # not registered any more: the renewal sees to that
            if not self._is_draining:
                self._claiming.failed(error)
                _log.warning("nothing can be claimed: %s", error)
            return []
        finally:
            self._hands.end_claim()

    async def _wait(self, empty_looks: int) -> None:
        seconds = self.config.poll.wait_seconds(empty_looks, random.random())
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), seconds)

    def _begin(self, claim: Claim) -> None:
        grip = self._grips[claim.fence] = Grip(claim)
        if self._is_draining:
            grip.drain()
        working = asyncio.create_task(self._work(grip), name=f"turn {claim.task.id}")
        self._working.add(working)
        working.add_done_callback(self._working.discard)

    async def _work(self, grip: Grip) -> None:
        fence = grip.claim.fence
        try:
            await work_on(self._kernel, self._served, grip)
        finally:
            self._grips.pop(fence, None)
            self._hands.drop(fence)
            self._news.set()

    def _tell_grips(self) -> None:
        """What the renewal has heard."""
        for held in self._hands.all():
            grip = self._grips.get(held.fence)
            if grip is not None and held.lost:
                grip.lose()
            elif grip is not None and held.stop and not grip.is_stopping:
                grip.stop()

    # In threads of their own

    def _renew(self) -> float:
        named = [held.fence for held in self._hands.all()]
        asked = self._lease.ask()
        try:
            renewal = self._kernel.renew(self.id, named)
        except NotFound:
            self._register()
            return 0.0
        self._lease.renewed(asked)
        for stray in self._hands.take_in(named, renewal):
            give_back(self._kernel, stray)
        if renewal.lost or renewal.stop:
            self._call(self._tell_grips)
        return self.config.renew_seconds

    def _sweep_once(self) -> float:
        if not self._lease.may_judge:
            return _LOOK_SECONDS
        swept = self._sweeper.sweep()
        if swept:
            self._call(self._news.set)
            self._doorbell.ring(self.config.lists)
        if swept is not None and swept >= SWEPT_AT_ONCE:
            return 0.0
        wait_seconds = _LOOK_SECONDS if swept is None else _SWEEP_SECONDS
        return wait_seconds * random.uniform(0.75, 1.25)

    def _refresh_names(self) -> float:
        served = self._ask()
        if served.names != self._served.names and not self._is_draining:
            self._served = served
            self._register()
            self._call(self._news.set)
        return _NAMES_SECONDS

    def _listen(self) -> float:
        end = monotonic() + _LISTEN_SECONDS
        if self._doorbell.wait(self.config.lists, _LISTEN_SECONDS):
            self._call(self._news.set)
            return 0.0
        # a doorbell that is closed does not wait
        return max(0.0, end - monotonic())
