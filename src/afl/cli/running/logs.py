"""What is logged, on standard error: as talk, or as the lines of a process that serves."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from afl.base.log_names import HANDLER_LOG
from afl.base.settings import Settings

if TYPE_CHECKING:
    from afl.app.process_logs import ProcessFields

#: The driver of MongoDB tells every command with its documents, several a second.
_CHATTY = "pymongo"
_FORM = "%(levelname)s %(name)s: %(message)s"


class _Talk(logging.Handler):
    """Writes to standard error as it is at that moment: a tree on a terminal takes its place."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(f"{self.format(record)}\n")
        except Exception:  # noqa: BLE001 - a line that cannot be written must not stop the work
            self.handleError(record)


@contextmanager
def shown_logs(level: str | None = None, form: logging.Formatter | None = None) -> Iterator[None]:
    """Shows what is logged while this lasts: all from a level on; without one, what handlers say
    through their context from info on, and everything else from warnings on. The driver of a
    database is not heard below warnings in any case."""
    root, handlers = logging.getLogger(), logging.getLogger(HANDLER_LOG)
    driver = logging.getLogger(_CHATTY)
    talk = _Talk()
    talk.setFormatter(form or logging.Formatter(_FORM))
    before = {logger: logger.level for logger in (root, handlers, driver)}
    root.addHandler(talk)
    handlers.setLevel((level or "info").upper())
    root.setLevel((level or "warning").upper())
    driver.setLevel(max(logging.WARNING, root.level))
    try:
        yield
    finally:
        for logger, its in before.items():
            logger.setLevel(its)
        root.removeHandler(talk)


@contextmanager
def process_logs(
    process: str, settings: Settings, level: str | None = None
) -> Iterator[ProcessFields]:
    """The same for a process that serves: in the form of the settings, with the fields of the work
    that a line is about, and without secrets.

    Args:
        process: which one it is, such as `worker`.
        level: else that of the settings.
    """
    # `structlog` is for those who serve, and costs others time
    from afl.app.process_logs import ProcessFields, process_formatter, structlog_routed

    fields = ProcessFields(process)
    form = process_formatter(settings, fields)
    with shown_logs(level or settings.log_level, form), structlog_routed():
        yield fields
