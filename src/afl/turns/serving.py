"""Who works on what a turn worker has claimed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from afl.base.log_fields import log_fields
from afl.kernel import rules
from afl.kernel.errors import Fenced, KernelError
from afl.kernel.model import Claim, Close, Commit, Json, Outcome
from afl.kernel.port import Store
from afl.kernel.working.hands import give_back
from afl.kernel.working.task_fields import task_fields
from afl.turns.grip import Grip, Left
from afl.turns.ports import Server

_log = logging.getLogger("afl.turns")

_INTERRUPTED = "it was cut short when its worker ended; what it has done is not known"

Ring = Callable[[Iterable[str]], None]


class Attendant(Protocol):
    """Works on tasks of some names, commit by commit, without blocking the event loop."""

    def names(self) -> tuple[str, ...]:
        """What it can serve now; asked again and again, in a thread."""
        ...

    async def run(self, claim: Claim, grip: Grip) -> None:
        """Everything that one claim needs: until it is suspended or closed.

        May raise `Fenced` and `Left`. A claim that it leaves open is handed back; any other
        exception fails the task.
        """
        ...


class ServerAttendant:
    """Has a server do a task whole, and commits how it ended."""

    def __init__(self, kernel: Store, server: Server, ring: Ring) -> None:
        self._kernel = kernel
        self._server = server
        self._ring = ring

    def names(self) -> tuple[str, ...]:
        return self._server.names()

    async def run(self, claim: Claim, grip: Grip) -> None:
        if grip.is_draining:
            raise Left
        try:
            close = await grip.unless_called(self._server.serve(claim))
        except Left:
            if grip.is_over or claim.task.max_crashes:
                raise
            # what must not be done twice is not handed back once it has begun
            close = _ended(Outcome.FAILED, "interrupted", _INTERRUPTED)
        if close is None:
            close = _ended(Outcome.CANCELED, "stopped", "It was stopped.")
        await grip.commit(self._kernel, Commit(claim.fence, close))
        self._ring([claim.task.list])


def _ended(outcome: Outcome, code: str, message: str) -> Close:
    error: Json = {"code": code, "message": message}
    return Close(outcome, error=error, permanent=True)


@dataclass(frozen=True, slots=True)
class Served:
    """Who serves which names, as they were when they were asked."""

    attendants: tuple[tuple[Attendant, tuple[str, ...]], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for _, names in self.attendants for name in names))

    def find(self, name: str) -> Attendant | None:
        """Who serves a task of this name; the first, if several do."""
        for attendant, names in self.attendants:
            if rules.serves(names, name):
                return attendant
        return None


async def work_on(kernel: Store, served: Served, grip: Grip) -> None:
    """Has a claim worked on, and sees to it that it does not stay in hand. Never raises."""
    claim = grip.claim
    with log_fields(task_fields(claim.task)):
        try:
            attendant = served.find(claim.task.name)
            if attendant is not None:
                await attendant.run(claim, grip)
        except (Fenced, Left):
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, the worker outlives it
            _log.exception("task %s failed", claim.task.id)
            await _fail(kernel, grip, error)
        if not grip.is_over:
            await _hand_back(kernel, claim)


async def _fail(kernel: Store, grip: Grip, error: Exception) -> None:
    """Not for good: the task's own policy says whether it is tried again."""
    told: Json = {"code": "internal", "message": f"{type(error).__name__}: {error}"[:2000]}
    try:
        await grip.commit(kernel, Commit(grip.claim.fence, Close(Outcome.FAILED, error=told)))
    except (KernelError, Left):
        _log.warning("task %s could not be closed", grip.claim.task.id, exc_info=True)


async def _hand_back(kernel: Store, claim: Claim) -> None:
    """What cannot be handed back comes back when the lease ends, or as a stray."""
    try:
        await asyncio.to_thread(give_back, kernel, claim.fence)
    except KernelError:
        _log.warning("task %s could not be handed back", claim.task.id, exc_info=True)
