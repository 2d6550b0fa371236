"""The port through which AgentFlow reads time.

Code that needs the time is handed a `Clock`; it never asks the machine. That is what lets a test
wait out a three-day timeout in no time at all.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time of day and measures how long things take."""

    def now(self) -> datetime:
        """The current time, aware, in UTC. It may jump when the machine's clock is set."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary start. Never goes back; only differences mean anything."""
        ...
