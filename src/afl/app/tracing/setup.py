"""Tracing of a worker, if somebody wants it: OpenTelemetry's own variables say where spans go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from afl import __version__
from afl.app.services import Services
from afl.app.tracing.finished import FinishedRuns


@contextmanager
def traced(
    services: Services, service: str, exporter: SpanExporter | None = None
) -> Iterator[None]:
    """Traces what this process does while this lasts, and the runs that end in that time.

    Once for a process: OpenTelemetry has one place for what makes spans.

    Args:
        exporter: where spans go; else over OTLP to where OTEL_EXPORTER_OTLP_ENDPOINT says.
    """
    resource = Resource.create({SERVICE_NAME: service, "service.version": __version__})
    spans = BatchSpanProcessor(exporter or OTLPSpanExporter())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(spans)
    trace.set_tracer_provider(provider)
    finished = FinishedRuns(services.persistence, spans, resource, service)
    finished.start()
    try:
        yield
    finally:
        finished.stop()
        provider.shutdown()
