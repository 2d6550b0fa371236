"""The tasks in a worker's hands, by fence. Threads share it: the dispatcher puts tasks in and takes
them out, and the renewal tells which are lost or asked to stop."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from time import monotonic

from afl.kernel.errors import Fenced
from afl.kernel.model import Claim, Commit, Fence, Renewal, Suspend
from afl.kernel.port import TaskQueue


@dataclass(slots=True, eq=False)
class Held:
    """A task in hand."""

    claim: Claim
    cancelled: threading.Event = field(default_factory=threading.Event)
    since: float = field(default_factory=monotonic)
    #: the store gave the task to somebody else: nothing that is done with it counts
    lost: bool = False
    #: somebody has asked for the task to stop
    stop: bool = False
    #: when its attempt has taken too long
    expires: float | None = None

    @property
    def fence(self) -> Fence:
        return self.claim.fence

    def give_time(self, seconds: float) -> None:
        """Lets the attempt take at least so long from now, if it has a limit at all."""
        if self.expires is not None:
            self.expires = max(self.expires, monotonic() + seconds)


class Hands:
    """What a worker holds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[Fence, Held] = {}
        self._claims_begun = 0
        self._claims_ended = 0
        #: fences that the store thinks we hold, each with the claims that had begun by then
        self._suspects: dict[Fence, int] = {}

    def put(self, claim: Claim) -> Held:
        held = Held(claim)
        with self._lock:
            self._held[claim.fence] = held
        return held

    def drop(self, fence: Fence) -> None:
        with self._lock:
            self._held.pop(fence, None)

    def get(self, fence: Fence) -> Held | None:
        return self._held.get(fence)

    def all(self) -> list[Held]:
        with self._lock:
            return list(self._held.values())

    def begin_claim(self) -> None:
        """A request that may bring tasks is under way."""
        with self._lock:
            self._claims_begun += 1

    def end_claim(self) -> None:
        """What the request has brought, if it was answered, is in hand."""
        with self._lock:
            self._claims_ended = self._claims_begun

    def take_in(self, named: Iterable[Fence], renewal: Renewal) -> list[Fence]:
        """Notes what a renewal that named these fences has told; answers the strays.

        A fence that we did not name may be that of a claim whose answer is on its way. It is a
        stray when it is seen twice and every claim that had begun the first time has ended.
        """
        with self._lock:
            for fence in renewal.lost:
                if (held := self._held.get(fence)) is not None:
                    held.lost = True
                    held.cancelled.set()
            for fence in renewal.stop:
                if (held := self._held.get(fence)) is not None:
                    held.stop = True
                    held.cancelled.set()
            known = self._held.keys() | set(named)
            seen = [fence for fence in renewal.stray if fence not in known]
            strays = [
                fence
                for fence in seen
                if self._suspects.get(fence, self._claims_begun + 1) <= self._claims_ended
            ]
            self._suspects = {
                fence: self._suspects.get(fence, self._claims_begun)
                for fence in seen
                if fence not in strays
            }
            return strays


def give_back(kernel: TaskQueue, fence: Fence) -> None:
    """Returns a task, whatever was committed under its fence before."""
    held, number = True, 0
    while held:
        try:
            (done,) = kernel.commit([Commit(fence, Suspend(), number)])
        except Fenced:
            return
        held, number = done.task.fence == fence, done.task.commits
