"""Trace context in messages, for those who trace with OpenTelemetry.

A message takes the context of whoever sends it along in its `headers`, as `traceparent` and what
else the propagators of the process write. `context_of` gives it to whoever receives, so that its
span is a child of the sender's:

    with tracer.start_as_current_span("negotiate", context=context_of(message)):
        ...

Nothing here loads OpenTelemetry for those who do not: it is the extra `otel`, and a process that
has not loaded it has no span.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from afl.messaging.models import AgentMessage

if TYPE_CHECKING:
    from opentelemetry.context import Context

#: Whoever traces has loaded it.
_IN_USE = "opentelemetry.context"


def traced(message: AgentMessage) -> AgentMessage:
    """The message with the context of whoever sends it now, unless it has one."""
    if _IN_USE not in sys.modules:
        return message
    from opentelemetry import context, propagate  # noqa: PLC0415 - an extra

    current = context.get_current()
    if not current:
        return message
    carried: dict[str, str] = {}
    propagate.inject(carried, current)
    if not carried or carried.keys() & message.headers.keys():
        return message
    return message.model_copy(update={"headers": {**message.headers, **carried}})


def context_of(message: AgentMessage) -> Context | None:
    """What a span about this message is to be a child of, or linked with. None if the message
    brings nothing, or OpenTelemetry is not installed."""
    try:
        from opentelemetry import propagate  # noqa: PLC0415 - an extra
        from opentelemetry.context import Context  # noqa: PLC0415
    except ModuleNotFoundError:
        return None
    return propagate.extract(message.headers, Context()) or None
