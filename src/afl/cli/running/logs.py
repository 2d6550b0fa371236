"""What handlers log, as talk."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_FORM = "%(levelname)s %(name)s: %(message)s"
#: What handlers say through their context; other loggers are heard from warnings on.
_HANDLERS = "afl.handler"


class _Talk(logging.Handler):
    """Writes to standard error as it is at that moment: a tree on a terminal takes its place."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(f"{self.format(record)}\n")
        except Exception:  # noqa: BLE001 - a line that cannot be written must not stop the work
            self.handleError(record)


@contextmanager
def shown_logs() -> Iterator[None]:
    """Shows what is logged while this lasts."""
    root, handlers = logging.getLogger(), logging.getLogger(_HANDLERS)
    talk = _Talk()
    talk.setFormatter(logging.Formatter(_FORM))
    before = handlers.level
    root.addHandler(talk)
    handlers.setLevel(logging.INFO)
    try:
        yield
    finally:
        handlers.setLevel(before)
        root.removeHandler(talk)
