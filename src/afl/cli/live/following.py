"""Looks at a run until it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from afl.cli.live.lines import Positions, lines_of
from afl.cli.live.views import View
from afl.kernel.waiting import PollPolicy
from afl.runtime.entities import Run
from afl.runtime.operations import Operations
from afl.runtime.states import RunState
from afl.runtime.views import state_word

_STEPS_SHOWN = 500
_QUIET_SECONDS = 2.0
LOCAL = PollPolicy(min_seconds=0.01, max_seconds=0.1, backoff=1.5, jitter=0.0)
REMOTE = PollPolicy(min_seconds=0.1, max_seconds=1.0, backoff=1.5, jitter=0.1)


def follow(
    operations: Operations,
    run: str,
    view: View,
    *,
    timeout: timedelta | None = None,
    poll: PollPolicy = REMOTE,
    pause: Callable[[float], None] = time.sleep,
) -> Run:
    """Shows a run until it has ended, or the time is up. Answers the run as it stands then.

    `pause` waits for so many seconds between looks; what it raises ends this.
    """
    found = operations.get(run)
    positions = Positions(operations, found)
    started = changed = asked = time.monotonic()
    end = None if timeout is None else started + timeout.total_seconds()
    last: object = None
    looks = 0
    with view:
        while True:
            tree = operations.tree(run, limit=_STEPS_SHOWN)
            lines = lines_of(tree, positions)
            now = time.monotonic()
            if (state_word(found), lines) != last:
                last, changed, looks = (state_word(found), lines), now, 0
                view.show(found, lines)
            over = end is not None and now >= end
            if over or RunState.is_terminal(found.state):
                if tree.next is not None:
                    view.tell(f"only the first {_STEPS_SHOWN} steps are shown")
                return found
            if now - max(changed, asked) >= _QUIET_SECONDS:
                asked = now
                view.tell(operations.why(run).sentence)
            looks += 1
            seconds = poll.wait_seconds(looks, 0.0)
            pause(seconds if end is None else max(0.0, min(seconds, end - now)))
            # read before the tree: what has ended does not change any more, so nothing is missed
            found = operations.get(run)
