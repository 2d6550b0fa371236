"""Spans of what workers do: attempts of handlers, and requests to models. The span is the current
one while the work is done, so that what a handler traces itself hangs below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanKind, Status, StatusCode, Tracer

from afl.app.tracing.ids import span_context
from afl.kernel.model import Task
from afl.kernel.working.task_fields import place_of
from afl.runtime.handler_table import Handler, Invocation
from afl.turns.current import CURRENT
from afl.turns.model import ModelRequest, Reply
from afl.turns.ports import Listener, Model, Models

#: The name under which spans say who has made them.
SCOPE = "afl"


def traced_handler(tracer: Tracer) -> Callable[[Handler], Handler]:
    """A change of handlers for `HandlerTable.changed`: each attempt is a span."""

    return lambda handler: handler.within(partial(_attempt, tracer))


@contextmanager
def _attempt(tracer: Tracer, invocation: Invocation) -> Iterator[Span]:
    task = invocation.task
    attributes: dict[str, str | int] = {
        **_about(task),
        "afl.facet": task.name,
        "afl.attempt": invocation.attempt,
        "afl.worker": task.worker or "",
    }
    with tracer.start_as_current_span(
        f"attempt {task.short_name}", _parent(task), SpanKind.CONSUMER, attributes
    ) as span:
        yield span


class TracedModels:
    """Models whose requests are spans, by the names of the conventions for generative AI."""

    def __init__(self, models: Models, tracer: Tracer) -> None:
        self._models = models
        self._tracer = tracer

    def find(self, name: str) -> Model:
        return _TracedModel(self._models.find(name), name, self._tracer)


class _TracedModel:
    def __init__(self, model: Model, name: str, tracer: Tracer) -> None:
        self._model = model
        self._name = name
        self._tracer = tracer

    async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
        task = CURRENT.get()
        provider, _, model = self._name.partition(":")
        attributes: dict[str, str | int] = {
            **({} if task is None else _about(task)),
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.request.max_tokens": request.max_tokens,
        }
        parent = None if task is None else _parent(task)
        with self._tracer.start_as_current_span(
            f"chat {model}", parent, SpanKind.CLIENT, attributes
        ) as span:
            reply = await self._model.ask(request, listener)
            span.set_attribute("gen_ai.response.model", reply.model.partition(":")[2])
            span.set_attribute("gen_ai.response.finish_reasons", [reply.finish])
            span.set_attribute("gen_ai.usage.input_tokens", reply.usage.input)
            span.set_attribute("gen_ai.usage.output_tokens", reply.usage.output)
            if reply.finish == "error":
                span.set_status(Status(StatusCode.ERROR))
            return reply


def _parent(task: Task) -> Context:
    run, step = place_of(task)
    return trace.set_span_in_context(NonRecordingSpan(span_context(task.run, run, step)), Context())


def _about(task: Task) -> dict[str, str | int]:
    run, step = place_of(task)
    return {"afl.run": run, "afl.step": step, "afl.task": task.id, "afl.tenant": task.tenant}
