"""Which turn the code at work belongs to, for those who only see a request to a model."""

from __future__ import annotations

from contextvars import ContextVar

from afl.kernel.model import Task

#: The task of the turn that this asyncio task is at; None outside of turns.
CURRENT: ContextVar[Task | None] = ContextVar("afl_turn", default=None)
