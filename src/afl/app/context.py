"""`Context`: what a handler is handed beside its arguments."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from datetime import datetime, timedelta
from typing import Any

from afl.base.durations import parse_duration
from afl.base.log_names import HANDLER_LOG
from afl.kernel.model import Json
from afl.runtime.handler_table import Invocation

_LOG = logging.getLogger(HANDLER_LOG)
_SIGN_OF_LIFE = timedelta(minutes=1)


class Context:
    """One attempt at the work of a step."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._task = invocation.task
        about = {"run": self.run_id, "step": self.step, "facet": self.facet}
        self.log = _Log(_LOG, {**about, "attempt": self.attempt})

    @property
    def run_id(self) -> str:
        """The run that the step belongs to."""
        return str(self._given("run") or self._task.run)

    @property
    def step(self) -> str:
        """The path of the step in its run."""
        return str(self._given("step") or "")

    @property
    def facet(self) -> str:
        """The full name of the facet that is served."""
        return str(self._given("facet") or self._task.name)

    @property
    def attempt(self) -> int:
        """1 for the first attempt. A worker that was lost does not count."""
        return self._invocation.attempt

    @property
    def deadline(self) -> datetime | None:
        """When the work is given up, all attempts together; None if it never is."""
        return self._task.deadline

    @property
    def idempotency_key(self) -> str:
        """The same in every attempt at this step, and in no other step: for services that
        recognise a repetition by a key."""
        return f"{self.run_id}:{self.step}"

    @property
    def cancelled(self) -> bool:
        """Whether the result is not wanted any more. Work that takes long should look."""
        return self._invocation.cancelled.is_set()

    def heartbeat(self, by: str | timedelta = _SIGN_OF_LIFE) -> datetime | None:
        """A sign of life, which moves the deadlines to `by` from now if that is later.

        Answers the first deadline; None if there is none.
        """
        span = timedelta(milliseconds=parse_duration(by)) if isinstance(by, str) else by
        return self._invocation.heartbeat(span)

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Tells the log how far the work is."""
        of = "" if total is None else f" of {total:g}"
        self.log.info("%g%s done%s", done, of, f": {note}" if note else "")

    def _given(self, name: str) -> Json:
        given = self._task.input
        return given.get(name) if isinstance(given, dict) else None


class _Log(logging.LoggerAdapter[logging.Logger]):
    """Every line says which run and step it is about, in the text and as fields of the record."""

    def process(
        self, msg: object, kwargs: MutableMapping[str, Any]
    ) -> tuple[str, MutableMapping[str, Any]]:
        extra = dict(self.extra or {})
        kwargs["extra"] = {**extra, **(kwargs.get("extra") or {})}
        return f"[{extra['run']} {extra['step']}] {msg}", kwargs
