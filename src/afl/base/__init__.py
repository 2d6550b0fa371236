"""The ground floor: what every other package may use, and nothing that knows about flows.

Modules:
    errors     `AflError`, the root of every error that AgentFlow raises on purpose
    clock      `Clock`, the port through which time is read
    ids        `IdSource`, the port through which fresh ids are made
    durations  `30s`, `1h30m` and the like, to and from whole milliseconds
    log_fields what every line says that is logged while some work is done
    system     the real clock and id source of this machine
    settings   `Settings`, the one reader of environment variables

Invariants:
    Nothing here imports another package of AgentFlow.
    This file re-exports the pure modules only. `system` and `settings` touch the machine, so
    whoever needs them imports them by their full name, where the import contracts can see it.
"""

from __future__ import annotations

from afl.base.clock import Clock
from afl.base.durations import format_duration, parse_duration
from afl.base.errors import AflError, ConfigError, DurationError
from afl.base.ids import IdSource

__all__ = [
    "AflError",
    "Clock",
    "ConfigError",
    "DurationError",
    "IdSource",
    "format_duration",
    "parse_duration",
]
