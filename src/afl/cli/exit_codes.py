"""How `afl` ends. These numbers are a promise: scripts rely on them."""

from __future__ import annotations

OK = 0
"""Everything asked for was done, and nothing is wrong."""

FAILED = 1
"""The check found errors, `fmt --check` found differences, or the command could not do its work."""

USAGE = 2
"""The command line or a setting is wrong."""

UNREADABLE = 3
"""A file or an input could not be read, found or written; a run, a task, ... is not there."""

RUN_FAILED = 4
"""The run or turn that the command waited for has failed."""

NOT_ENDED = 5
"""The run or turn has not ended, or not in the time that was given."""

RUN_CANCELED = 6
"""The run or turn that the command waited for was canceled."""

INTERNAL = 70
"""A mistake in AgentFlow itself."""

INTERRUPTED = 130
"""Stopped with Ctrl-C."""

READER_GONE = 141
"""Whoever read the output stopped reading, as in `afl check | head -1`."""
