"""What a process of ours logs: readable lines or JSON, on standard error.

Everything goes through the standard library's `logging`, also what libraries and handlers log, and
what handlers say to `structlog`. A line has the fields of the work that it is about: the run, the
step, the task, the worker, the tenant, the trace. Secrets are taken out of all of it.

Whoever imports this module loads `structlog`: commands do so when they are called.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import structlog
from structlog.stdlib import ProcessorFormatter

from afl.app.log_keeping import secrets_of
from afl.base.log_fields import Fields, current_log_fields
from afl.base.settings import LogFormat, Settings, environment
from afl.logs.redacting import Redactor

_Event = MutableMapping[str, Any]
#: In this order at the beginning of each line.
_FIRST = ("time", "level", "logger", "event")
#: Who reads the terminal of a process knows these, or does not need them.
_NOT_FOR_PEOPLE = frozenset(
    (*_FIRST, "exception", "process", "worker", "task", "facet", "attempt", "tenant", "trace")
)
#: What libraries add for formatters of their own.
_FOREIGN = ("color_message", "taskName")


@contextmanager
def structlog_routed() -> Iterator[None]:
    """Has what is said to `structlog` go where everything else is logged, while this lasts. Code
    that sets it up itself has its own way."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.filter_by_level,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.PositionalArgumentsFormatter(),
            ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    try:
        yield
    finally:
        structlog.reset_defaults()


class ProcessFields:
    """What all lines of a process say."""

    def __init__(self, process: str) -> None:
        self._fields: dict[str, str | int] = {"process": process}

    def add(self, fields: Fields) -> None:
        """Adds what is known by now, such as the id of the worker."""
        self._fields = {**self._fields, **fields}

    def __call__(self, _logger: object, _method: str, event: _Event) -> _Event:
        """A line with all that is known where it is logged. What it says itself comes first."""
        known = {**self._fields, **current_log_fields()}
        return {**event, **{name: known[name] for name in known if name not in event}}


def process_formatter(settings: Settings, fields: ProcessFields) -> logging.Formatter:
    """What makes a line of something that was logged, as the settings say."""
    redactor = Redactor(secrets_of(settings, environment()))
    last = _as_json if settings.log_format is LogFormat.JSON else _for_people
    return ProcessorFormatter(
        foreign_pre_chain=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
        ],
        processors=[
            fields,
            _time,
            structlog.processors.format_exc_info,
            ProcessorFormatter.remove_processors_meta,
            _Redacting(redactor),
            last,
        ],
    )


def _time(_logger: object, _method: str, event: _Event) -> _Event:
    """The time at which a line was logged, in UTC."""
    moment = datetime.fromtimestamp(event["_record"].created, UTC)
    event["time"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return event


class _Redacting:
    """Takes secrets out of every value. Before a line is put together: in one, a quote would be
    written differently from the secret that has it."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, _logger: object, _method: str, event: _Event) -> _Event:
        return {
            self._text(name): self._plain(value)
            for name, value in event.items()
            if name not in _FOREIGN
        }

    def _plain(self, value: object) -> object:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {self._text(str(key)): self._plain(each) for key, each in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._plain(each) for each in value]
        return self._text(str(value))

    def _text(self, text: str) -> str:
        return self._redactor.redacted(text.encode(errors="replace")).decode(errors="replace")


def _as_json(logger: object, method: str, event: _Event) -> str:
    """One object on one line. What handlers say has its run and step in fields alone."""
    event["event"] = str(event["event"]).removeprefix(_place(event))
    ordered = {**{name: event.get(name) for name in _FIRST}, **event}
    return str(_render(logger, method, ordered))


_render = structlog.processors.JSONRenderer(ensure_ascii=False)


def _for_people(_logger: object, _method: str, event: _Event) -> str:
    """The time, the level, who says it and what; then what the text does not have yet."""
    said = str(event["event"])
    more = "".join(
        f" {name}={value}"
        for name, value in event.items()
        if name not in _NOT_FOR_PEOPLE and str(value) not in said
    )
    level = str(event["level"]).upper()
    line = f"{event['time']} {level} {event['logger']}: {said}{more}"
    return f"{line}\n{event['exception']}" if "exception" in event else line


def _place(event: _Event) -> str:
    return f"[{event.get('run')} {event.get('step')}] "
