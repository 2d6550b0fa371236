"""Where handlers run: threads, one event loop, processes. However an attempt ends, the dispatcher
hears of it exactly once."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import datetime, timedelta
from multiprocessing import get_context
from time import monotonic, perf_counter
from typing import Any, cast

from afl.kernel.errors import Fenced
from afl.kernel.model import Close, Fence, Json, Outcome, Suspend, Task
from afl.kernel.port import TaskQueue
from afl.kernel.working.hands import Held
from afl.runtime.handler_table import Handler, HandlerFunction, HandlerKind, Invocation, params_of
from afl.runtime.working.at_hand import is_at_hand
from afl.runtime.working.in_turn import Attempt, InTurn
from afl.runtime.working.messages import Finished
from afl.runtime.working.outcomes import (
    attempt_seconds,
    bad_result,
    close_of_error,
    close_of_result,
)
from afl.runtime.working.threads import HandlerThreads

_log = logging.getLogger("afl.worker")
_MOST_PROCESSES = 8


Tell = Callable[[Finished], None]


class Execution:
    """Runs attempts. `tell` is called from any thread, once for each."""

    def __init__(self, kernel: TaskQueue, slots: int, tell: Tell) -> None:
        self._kernel = kernel
        self._slots = slots
        self._tell = tell
        self._threads = HandlerThreads(slots)
        self._in_turn = InTurn(self._threads.run, self._attempt_in_turn)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._processes: ProcessPoolExecutor | None = None
        #: attempts that a process is at
        self._in_processes: set[Future[Any]] = set()
        self._coroutines: dict[Fence, tuple[str, Future[Any]]] = {}
        #: set by the event loop when it next goes round
        self._round: threading.Event | None = None
        self._warned: set[str] = set()

    def start(self, held: Held, handler: Handler) -> None:
        """Begins an attempt at a task in hand."""
        _limit(held)
        if handler.kind is HandlerKind.SYNC:
            self._threads.run(lambda: self._attempt(held, handler))
        elif handler.kind is HandlerKind.ASYNC:
            self._start_coroutine(held, handler)
        else:
            self._start_process(held, handler)

    def start_in_turn(self, attempts: Sequence[Attempt], free_slots: int) -> None:
        """Begins attempts by plain functions, the rest of them when the first are through."""
        for held, _ in attempts[: max(0, free_slots)]:
            # the dispatcher looks at it before it waits
            _limit(held)
        self._in_turn.add(attempts, free_slots)

    def give_up(self, held: Held) -> None:
        """Waits no longer for an attempt, which is asked to end."""
        self.cancel(held)
        self._in_turn.give_up(held)

    def cancel(self, held: Held) -> None:
        """Asks an attempt to end. What can be ended from outside is."""
        held.cancelled.set()
        if (running := self._coroutines.get(held.fence)) is not None:
            running[1].cancel()

    def check_loop(self) -> None:
        """Warns, once by name, of coroutines that have kept the event loop from going round since
        this was last called."""
        if self._loop is None:
            return
        if self._round is not None and not self._round.is_set():
            names = {name for name, _ in list(self._coroutines.values())} - self._warned
            if names:
                self._warned |= names
                _log.warning(
                    "the event loop is blocked: one of %s waits without `await`, or computes; "
                    "make it a plain function, which gets a thread",
                    ", ".join(f"`{name}`" for name in sorted(names)),
                )
            return
        self._round = threading.Event()
        self._loop.call_soon_threadsafe(self._round.set)

    def close(self) -> None:
        """Ends what can be ended; waits for nobody."""
        self._in_turn.clear()
        self._threads.close()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
        if self._processes is not None:
            # if nothing is under way this is done at once, and the end of this process, which waits
            # for the pool too, does not come upon it in the middle of that
            self._processes.shutdown(wait=not self._in_processes, cancel_futures=True)

    # Threads

    def _attempt_in_turn(self, held: Held, handler: Handler) -> None:
        if held.cancelled.is_set():
            self._tell(Finished(held.fence, Suspend()))
            return
        _limit(held)
        self._attempt(held, handler)

    def _attempt(self, held: Held, handler: Handler) -> None:
        end: Close | Suspend = bad_result(handler.name, "ended without an answer")
        begun = perf_counter()
        try:
            end = close_of_result(handler.name, handler.function(self._invocation(held)))
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its outcome
            end = _end_of_error(held, handler, error)
        finally:
            self._tell(Finished(held.fence, end, perf_counter() - begun))

    def _invocation(self, held: Held) -> Invocation:
        def heartbeat(by: timedelta) -> datetime | None:
            if is_at_hand(held):
                held.give_time(by.total_seconds())
                return None
            try:
                until = self._kernel.extend(held.fence, by)
            except Fenced:
                held.lost = True
                held.cancelled.set()
                raise
            held.give_time(by.total_seconds())
            return until

        return Invocation.of(held.claim.task, held.cancelled, heartbeat)

    # The event loop

    def _start_coroutine(self, held: Held, handler: Handler) -> None:
        loop = self._running_loop()

        begun = perf_counter()

        async def call() -> object:
            called = cast("Coroutine[Any, Any, object]", handler.function(self._invocation(held)))
            return await called

        future: Future[Any] = asyncio.run_coroutine_threadsafe(call(), loop)
        self._coroutines[held.fence] = (handler.name, future)
        future.add_done_callback(lambda done: self._ended(held, handler, done, begun))

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._run_loop, name="afl-event-loop", daemon=True).start()
        return self._loop

    def _run_loop(self) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    # Processes

    def _start_process(self, held: Held, handler: Handler) -> None:
        if self._processes is None:
            # not fork: this process has threads
            self._processes = ProcessPoolExecutor(
                min(self._slots, _MOST_PROCESSES), mp_context=get_context("spawn")
            )
        task = held.claim.task
        try:
            future = self._processes.submit(_in_process, handler.function, task)
        except BrokenProcessPool:
            self._processes = None
            self._start_process(held, handler)
            return
        begun = perf_counter()
        self._in_processes.add(future)
        future.add_done_callback(self._in_processes.discard)
        future.add_done_callback(lambda done: self._ended(held, handler, done, begun))

    def _ended(self, held: Held, handler: Handler, done: Future[Any], begun: float) -> None:
        end: Close | Suspend = bad_result(handler.name, "ended without an answer")
        try:
            self._coroutines.pop(held.fence, None)
            end = close_of_result(handler.name, done.result())
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its outcome
            end = _end_of_error(held, handler, error)
        finally:
            self._tell(Finished(held.fence, end, perf_counter() - begun))


def _limit(held: Held) -> None:
    """An attempt begins: its time runs from now."""
    seconds = attempt_seconds(held.claim.task)
    held.expires = None if seconds is None else monotonic() + seconds


def _in_process(function: HandlerFunction, task: Task) -> Mapping[str, Json]:
    answer = function(Invocation(task, params_of(task), task.failures + 1))
    return cast("Mapping[str, Json]", answer)


def _end_of_error(held: Held, handler: Handler, error: BaseException) -> Close | Suspend:
    """What becomes of a task whose handler has raised."""
    if held.stop:
        # suspended, the kernel closes it as canceled
        return Suspend()
    try:
        return close_of_error(held.claim.task, error)
    except Exception:  # noqa: BLE001 - an error that cannot even be put into words
        message = f"The handler `{handler.name}` raised a {type(error).__name__} without words."
        return Close(Outcome.FAILED, error={"type": type(error).__name__, "message": message})
