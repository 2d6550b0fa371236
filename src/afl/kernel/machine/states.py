"""The states by a short way: Python looks a member up in its enum at ten times the cost."""

from __future__ import annotations

from typing import Final

from afl.kernel.model import CallStatus, State

QUEUED: Final = State.QUEUED
READY: Final = State.READY
RUNNING: Final = State.RUNNING
WAITING: Final = State.WAITING
CLOSED: Final = State.CLOSED
OPEN: Final = CallStatus.OPEN
