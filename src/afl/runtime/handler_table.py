"""Handlers by the names of the facets that they serve, and what a handler is handed.

A handler is plain code of a user: a function that takes an `Invocation` and answers with a dict. It
runs in a thread, on the event loop if it is `async def`, or in another process if it says so.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, cast

from afl.base.errors import AflError
from afl.kernel.model import Json, Task

Result = Mapping[str, Json]
HandlerFunction = Callable[["Invocation"], Result | Awaitable[Result]]
Heartbeat = Callable[[timedelta], datetime | None]
#: What surrounds an attempt of a handler.
Around = Callable[["Invocation"], AbstractContextManager[object]]


class Permanent(AflError):
    """The work cannot succeed, however often it is tried."""

    code = "runtime.permanent"


class HandlerKind(Enum):
    """Where a handler runs."""

    SYNC = "sync"
    ASYNC = "async"
    PROCESS = "process"


def _no_heartbeat(by: timedelta) -> datetime | None:
    raise RuntimeError("a handler in a process of its own cannot ask for more time")


@dataclass(frozen=True, slots=True)
class Invocation:
    """One attempt at a task, as its handler sees it.

    `cancelled` is set when the result is not wanted any more: the run was stopped, the time is up,
    or the task was lost to another worker. A handler that takes long should look.
    """

    task: Task
    params: dict[str, Json]
    #: 1 for the first attempt; a worker that was lost does not count
    attempt: int
    cancelled: threading.Event = field(default_factory=threading.Event)
    _heartbeat: Heartbeat = _no_heartbeat

    @classmethod
    def of(cls, task: Task, cancelled: threading.Event, heartbeat: Heartbeat) -> Invocation:
        """The invocation for a task that was claimed."""
        return cls(task, params_of(task), task.failures + 1, cancelled, heartbeat)

    def heartbeat(self, by: timedelta) -> datetime | None:
        """A sign of life: what deadlines there are move to `by` from now. Answers the first.

        Raises:
            Fenced: the task is somebody else's by now.
        """
        return self._heartbeat(by)


def params_of(task: Task) -> dict[str, Json]:
    """The arguments of the facet that a task serves."""
    given = task.input
    params = given.get("params") if isinstance(given, dict) else None
    return dict(params) if isinstance(params, dict) else {}


@dataclass(frozen=True, slots=True)
class Handler:
    """A function and where it runs."""

    name: str
    function: HandlerFunction
    kind: HandlerKind

    def within(self, attempt: Around) -> Handler:
        """The handler with something around each of its attempts. One that works in another process
        stays as it is: nothing here is around what it does there."""
        function = self.function
        if self.kind is HandlerKind.PROCESS:
            return self
        if self.kind is HandlerKind.ASYNC:

            async def call_async(invocation: Invocation) -> Result:
                with attempt(invocation):
                    return await cast("Awaitable[Result]", function(invocation))

            return replace(self, function=call_async)

        def call(invocation: Invocation) -> Result:
            with attempt(invocation):
                return cast("Result", function(invocation))

        return replace(self, function=call)


class HandlerTable:
    """Handlers by name: the qualified one, else the short one, else the default."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._default: Handler | None = None

    def register(self, name: str, function: HandlerFunction, *, process: bool = False) -> None:
        """Serves `name`, qualified (`billing.Pay`) or short (`Pay`, in every namespace)."""
        self._handlers[name] = Handler(name, function, _kind(function, process))

    def set_default(self, function: HandlerFunction) -> None:
        """Serves what is handed to this table and has no handler of its own."""
        self._default = Handler("default", function, _kind(function, process=False))

    def extended(self, name: str, function: HandlerFunction) -> HandlerTable:
        """This table with one more handler, unless the name is taken."""
        table = HandlerTable()
        table._default = self._default
        table._handlers = {name: Handler(name, function, HandlerKind.SYNC), **self._handlers}
        return table

    def changed(self, change: Callable[[Handler], Handler]) -> HandlerTable:
        """This table with every handler changed, the default too."""
        table = HandlerTable()
        table._handlers = {name: change(handler) for name, handler in self._handlers.items()}
        table._default = None if self._default is None else change(self._default)
        return table

    def names(self) -> list[str]:
        """The registered names, in the order in which they came."""
        return list(self._handlers)

    def find(self, name: str) -> Handler | None:
        """The handler for a facet."""
        found = self._handlers.get(name) or self._handlers.get(name.rpartition(".")[2])
        return found or self._default


def on_params(function: Callable[[dict[str, Any]], Any]) -> HandlerFunction:
    """A handler from a callback that takes the arguments alone, which may be `async def`."""
    if _is_async(function):

        async def call_async(invocation: Invocation) -> Result:
            answer: Result = await function(invocation.params)
            return answer

        return call_async

    def call(invocation: Invocation) -> Result:
        answer: Result = function(invocation.params)
        return answer

    return call


def _kind(function: Callable[..., Any], process: bool) -> HandlerKind:
    if process:
        return HandlerKind.PROCESS
    return HandlerKind.ASYNC if _is_async(function) else HandlerKind.SYNC


def _is_async(function: Callable[..., Any]) -> bool:
    # an object may be a handler too, by an async __call__
    called = getattr(function, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
