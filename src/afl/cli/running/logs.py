"""What handlers log, as talk."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from afl.base.log_names import HANDLER_LOG

#: The levels that can be asked for.
LEVELS = ("debug", "info", "warning", "error")

_FORM = "%(levelname)s %(name)s: %(message)s"


class _Talk(logging.Handler):
    """Writes to standard error as it is at that moment: a tree on a terminal takes its place."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(f"{self.format(record)}\n")
        except Exception:  # noqa: BLE001 - a line that cannot be written must not stop the work
            self.handleError(record)


@contextmanager
def shown_logs(level: str | None = None) -> Iterator[None]:
    """Shows what is logged while this lasts: all from a level on; without one, what handlers say
    through their context from info on, and everything else from warnings on."""
    root, handlers = logging.getLogger(), logging.getLogger(HANDLER_LOG)
    talk = _Talk()
    talk.setFormatter(logging.Formatter(_FORM))
    before = handlers.level, root.level
    root.addHandler(talk)
    handlers.setLevel((level or "info").upper())
    root.setLevel((level or "warning").upper())
    try:
        yield
    finally:
        handlers.setLevel(before[0])
        root.setLevel(before[1])
        root.removeHandler(talk)
