"""Commands that `afl run` runs: what they print is talk, each line behind the name of its step."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from afl.app.executing import EXEC_SLOTS, Executing, ExecWish
from afl.runtime.handler_table import Invocation


def shown_commands() -> Executing:
    """Runs commands, and shows what they print."""
    return Executing(ExecWish(EXEC_SLOTS), _shown)


@contextmanager
def _shown(invocation: Invocation) -> Iterator[_Shown]:
    given = invocation.task.input
    step = given.get("step") if isinstance(given, dict) else None
    yield _Shown(str(step or "").rpartition("/")[2])


class _Shown:
    def __init__(self, step: str) -> None:
        self._step = step

    def line(self, stream: str, data: bytes, *, partial: bool, time: datetime) -> None:
        text = data.decode("utf-8", "replace")
        sys.stderr.write(f"{self._step}: {text}{'…' if partial else ''}\n")
