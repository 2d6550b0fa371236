"""Whether somebody traces in this process. Those who do not need no library, and pay nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from afl.app.extras import extra_part
from afl.app.services import Services
from afl.runtime.handler_table import HandlerTable

if TYPE_CHECKING:
    from afl.turns.ports import Models

#: Whoever traces has loaded it.
_IN_USE = "opentelemetry.sdk.trace"
#: The variables by which OpenTelemetry says where spans go.
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_SCOPE = "afl"


def traced_table(table: HandlerTable) -> HandlerTable:
    """The handlers, each attempt of which is a span if somebody traces."""
    if _IN_USE not in sys.modules:
        return table
    work = importlib.import_module("afl.app.tracing.work")
    return table.changed(work.traced_handler(_tracer()))


def traced_models(models: Models) -> Models:
    """The models, each request to which is a span if somebody traces."""
    if _IN_USE not in sys.modules:
        return models
    work = importlib.import_module("afl.app.tracing.work")
    found: Models = work.TracedModels(models, _tracer())
    return found


@contextmanager
def traced_if_wanted(
    services: Services, service: str, variables: Mapping[str, str]
) -> Iterator[bool]:
    """Traces while this lasts if OpenTelemetry's variables say where to; tells whether it does.

    Raises:
        ExtraMissing: it is wanted, and the extra `otel` is not installed.
    """
    if not any(variables.get(name) for name in _ENDPOINTS):
        yield False
        return
    setup = extra_part("afl.app.tracing.setup", "otel", "Traces need")
    with setup.traced(services, service):
        yield True


def _tracer() -> object:
    return importlib.import_module("opentelemetry.trace").get_tracer(_SCOPE)
