"""Metrics as a Prometheus server reads them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from afl.app.serving import AppWorker
from afl.runtime.handler_table import HandlerTable, on_params
from afl.runtime.worker import WorkerConfig
from afl.server.application import create_app
from afl.server.backend import Backend
from tests.cli.deployed import FLOW
from tests.server.calling import token_for


def _samples(client: TestClient) -> dict[tuple[str, ...], float]:
    answer = client.get("/api/v1/metrics")
    assert answer.status_code == 200, answer.text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_work_that_waits_is_counted_and_has_an_age(backend: Backend, admin: TestClient) -> None:
    before = _samples(admin)
    assert before["afl_inbox_open",] == 0
    assert before["afl_workers", "idle"] == 0
    backend.client.deploy(FLOW)
    backend.client.submit("demo.Hello", {"name": "ada"})
    waiting = _samples(admin)
    assert waiting["afl_tasks_ready", "default"] == 1
    assert waiting["afl_oldest_ready_seconds", "default"] >= 0
    assert waiting["afl_runs", "created"] == 1
    assert waiting["afl_unserved_facets",] == 1


def test_facets_that_nobody_serves_are_told(backend: Backend, admin: TestClient) -> None:
    backend.client.deploy(FLOW)
    run = backend.client.submit("demo.Hello", {"name": "ada"})
    table = HandlerTable()
    table.register("demo.Fetch", on_params(lambda params: {"n": 1}))
    with AppWorker(backend.services, table, WorkerConfig(slots=1)):
        for _ in range(500):
            found = _samples(admin)
            if found["afl_unserved_facets",] == 1 and found["afl_runs", "running"] == 1:
                break
            backend.services.doorbell.wait(["default"], 0.02)
        else:
            raise AssertionError(backend.client.run(run.id).why())
        assert found["afl_workers", "idle"] + found["afl_workers", "busy"] == 1


def test_who_sees_one_tenant_sees_no_metrics(backend: Backend) -> None:
    client = TestClient(create_app(backend), headers=token_for(backend, "admin", "elsewhere"))
    assert client.get("/api/v1/metrics").status_code == 403
