"""What tests of AgentFlow, and of what is built on it, need: a virtual clock and fixed ids, and the
conformance suites that every implementation of a port must pass.

`clock` has `VirtualClock` and `SequentialIds`. `conformance` has the judge of kernel stores; its
`suite` needs pytest and its `machine` hypothesis, so import them by their full names.
May import every other package; nothing else may import this one.
"""

from __future__ import annotations

from afl.testing.clock import SequentialIds, VirtualClock

__all__ = ["SequentialIds", "VirtualClock"]
