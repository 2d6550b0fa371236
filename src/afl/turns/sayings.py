"""What a turn did, in the log of its step: a line for each thing that a commit has kept."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from afl.base.log_names import TURN_LOG
from afl.kernel.model import CardSpec, Task
from afl.turns.transcript_lines import lines_of

_LOG = logging.getLogger(TURN_LOG)
#: The whole is in the transcript.
_LONGEST = 500


def say(task: Task, cards: Sequence[CardSpec]) -> None:
    """Says what these cards of a turn tell."""
    if not _LOG.isEnabledFor(logging.INFO):
        return
    given = task.input if isinstance(task.input, dict) else {}
    about = {
        "run": str(given.get("run") or task.run),
        "step": str(given.get("step") or ""),
        "attempt": task.failures + 1,
    }
    for card in cards:
        for line in lines_of(card):
            text = line.text if len(line.text) <= _LONGEST else f"{line.text[:_LONGEST]}…"
            level = logging.WARNING if line.failed or line.who == "error" else logging.INFO
            _LOG.log(level, "%s: %s", line.who, text, extra=about)
