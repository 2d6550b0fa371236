"""Traces: a worker process that sends spans to a collector over OTLP, as people set it up."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from uuid import UUID

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from afl import Client
from afl.app.tracing.ids import span_id
from afl.app.tracing.work import TracedModels
from afl.kernel.working.task_fields import trace_id
from afl.turns.errors import ModelBusy
from afl.turns.model import ModelRequest, Reply, UserSays
from afl.turns.models.scripted import Answer, ScriptedModel
from afl.turns.ports import Model
from tests.cli.deployed import deployed_database, write_project
from tests.cli.runner import AFL, plain_environment
from tests.kernel.postgres.databases import server_is_there


class _Collector(ThreadingHTTPServer):
    def __init__(self) -> None:
        self.spans: list[Span] = []
        super().__init__(("127.0.0.1", 0), _Receiver)


class _Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, _Collector)
        if self.headers.get("Content-Encoding") is None:
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    self.server.spans += scope.spans
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def _collector() -> Iterator[_Collector]:
    with _Collector() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def _attributes(span: Span) -> dict[str, str | int]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


@pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")
def test_a_run_is_one_trace_with_its_steps_and_attempts(tmp_path: Path) -> None:
    write_project(tmp_path)
    with deployed_database() as url, _collector() as collector:
        environment = {
            **plain_environment(),
            "AFL_DATABASE_URL": url,
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        }
        with subprocess.Popen(
            [AFL, "worker", "--handlers", "handlers"],
            cwd=tmp_path,
            env=environment,
            stderr=subprocess.PIPE,
        ) as worker:
            try:
                with Client(url) as client:
                    good = client.submit("demo.Outer", {"name": "ada"})
                    good.result(timeout="60s")
                    bad = client.submit("demo.Hello", {"name": "bad"})
                    client.operations.wait(bad.id)
                    (inner,) = client.operations.list(parent=good.id)
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(60) == 0
            finally:
                worker.kill()
    of_run = [span for span in collector.spans if span.trace_id == UUID(good.id).bytes]
    by_name = {span.name: span for span in of_run}
    run, step = by_name["run demo.Outer"], by_name["inner"]
    assert run.parent_span_id == b""
    assert _attributes(run)["afl.state"] == "completed"
    assert run.start_time_unix_nano <= step.start_time_unix_nano
    assert step.end_time_unix_nano <= run.end_time_unix_nano
    # what a run calls is in the same trace, below the step that has called it
    called = by_name["run demo.Hello"]
    assert called.parent_span_id == step.span_id
    attempt = by_name["attempt Greet"]
    assert attempt.parent_span_id == span_id(inner.id, "0/hello").to_bytes(8, "big")
    assert attempt.parent_span_id in {span.span_id for span in of_run}
    assert _attributes(attempt)["afl.attempt"] == 1
    failed = [span for span in collector.spans if span.trace_id == UUID(bad.id).bytes]
    attempts = [span for span in failed if span.name == "attempt Greet"]
    assert [_attributes(each)["afl.attempt"] for each in attempts] == [1, 2]
    ended = next(span for span in failed if span.name == "run demo.Hello")
    assert "there is no such name" in ended.status.message


class _One:
    def __init__(self, model: Model) -> None:
        self._model = model

    def find(self, name: str) -> Model:
        return self._model


def test_a_request_to_a_modelis_a_span_with_its_tokens() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    scripted = ScriptedModel([Answer("Yes.", failures=(ModelBusy("Not now."),))])
    models = TracedModels(_One(scripted), provider.get_tracer("test"))
    request = ModelRequest("", (UserSays("Well?"),), (), 100)
    model = models.find("scripted:test")
    with pytest.raises(ModelBusy):
        asyncio.run(_asked(model, request))
    reply = asyncio.run(_asked(model, request))
    failed, span = exporter.get_finished_spans()
    assert not failed.status.is_ok
    assert span.name == "chat test"
    assert span.attributes is not None
    assert span.attributes["gen_ai.provider.name"] == "scripted"
    assert span.attributes["gen_ai.usage.output_tokens"] == reply.usage.output


async def _asked(model: Model, request: ModelRequest) -> Reply:
    return await model.ask(request)


def test_the_ids_follow_from_what_they_are_about() -> None:
    run = "0199a1b2-0000-7000-8000-000000000001"
    assert trace_id(run) == UUID(run).int
    assert span_id(run, "a") == span_id(run, "a") != span_id(run, "b")
    assert trace_id("no uuid") == trace_id("no uuid") != 0
