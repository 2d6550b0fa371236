from __future__ import annotations

import json
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from afl.base.errors import ConfigError
from afl.kernel.model import Outcome, State, TaskId, TaskSpec
from afl.runtime.entities import ServerState
from afl.runtime.memory_store import MemoryStore
from afl.runtime.runner import RunnerConfig, RunnerService, ToolRegistry
from afl.runtime.runner.__main__ import load_handlers, main
from afl.runtime.runner.status_server import StatusServer, json_answer
from tests.runtime.serving import PATIENCE_SECONDS, Serving, eventually, serving


@pytest.fixture
def served() -> Iterator[Serving]:
    with serving(MemoryStore()) as made:
        yield made


def more(params: dict[str, Any]) -> dict[str, Any]:
    return {"paid": params["amount"] + 1}


def registry_of(**tools: Any) -> ToolRegistry:  # noqa: ANN401 - callables
    registry = ToolRegistry()
    for name, tool in tools.items():
        registry.register(name, tool)
    return registry


@contextmanager
def runner(
    served: Serving,
    registry: ToolRegistry | None = None,
    **config: Any,  # noqa: ANN401
) -> Iterator[RunnerService]:
    given = RunnerConfig(**{"poll_interval_ms": 20, "http_port": 0, **config})
    service = RunnerService(served.store, served.evaluator, given, registry)
    thread = threading.Thread(target=service.start)
    thread.start()
    assert service.wait_until_ready(PATIENCE_SECONDS)
    try:
        yield service
    finally:
        service.stop()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def get(service: RunnerService, path: str) -> tuple[int, str, str]:
    url = f"http://127.0.0.1:{service.http_port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def test_the_defaults_are_those_of_the_specification() -> None:
    assert vars(RunnerConfig()) == {
        "server_group": "default",
        "service_name": "afl-runner",
        "server_name": socket.gethostname(),
        "topics": [],
        "task_list": "default",
        "poll_interval_ms": 2000,
        "heartbeat_interval_ms": 10000,
        "lock_duration_ms": 60000,
        "lock_extend_interval_ms": 20000,
        "max_concurrent": 5,
        "shutdown_timeout_ms": 30000,
        "http_port": 8080,
        "http_max_port_attempts": 20,
    }


# The registry


def test_a_registry_finds_the_qualified_name_then_the_short_one_then_the_default() -> None:
    registry = registry_of(Pay=lambda params: {"by": "short"})
    registry.register("billing.Pay", lambda params: {"by": "qualified"})
    assert registry.handle("billing.Pay", {}) == {"by": "qualified"}
    assert registry.handle("other.Pay", {}) == {"by": "short"}
    assert not registry.has_handler("other.Refund")
    assert registry.handle("other.Refund", {}) is None
    registry.set_default_handler(lambda params: {"by": "default"})
    assert registry.has_handler("other.Refund")
    assert registry.handle("other.Refund", {}) == {"by": "default"}


# The service


def test_it_starts_runs_and_serves_them(served: Serving) -> None:
    with runner(served, registry_of(Pay=more)) as service:
        run = served.start("billing.Outer", amount=1)
        assert served.result(run).outputs == {"paid": 6}
        server = served.store.get_server(service.server_id)
        assert server is not None
        assert (server.state, server.service_name) == (ServerState.RUNNING, "afl-runner")
        assert "Pay" in server.handlers
        assert "afl:execute" in server.handlers
    server = served.store.get_server(service.server_id)
    assert server is not None
    assert server.state == ServerState.SHUTDOWN


def test_topics_narrow_what_is_served_and_give_the_default_its_names(served: Serving) -> None:
    registry = registry_of(Pay=more, Refund=lambda params: {"refunded": 0})
    registry.set_default_handler(lambda params: {"by": "default"})
    pay, refund, other = served.store.kernel.enqueue(
        [
            TaskSpec("event", "billing.Pay", input={"params": {"amount": 1}}),
            TaskSpec("event", "billing.Refund", input={"params": {"amount": 1}}),
            TaskSpec("event", "billing.Other", input={"params": {"amount": 1}}),
        ]
    )
    kernel = served.store.kernel
    with runner(served, registry, topics=["billing.Pay", "Other"]):
        eventually(
            lambda: all(_succeeded(served, task.id) for task in (pay, other)), "both are served"
        )
    found = [kernel.get_task(task.id) for task in (pay, refund, other)]
    assert [task and task.result for task in found] == [{"paid": 2}, None, {"by": "default"}]
    assert found[1] is not None
    assert found[1].state is State.READY


def _succeeded(served: Serving, task: TaskId) -> bool:
    found = served.store.kernel.get_task(task)
    return found is not None and found.outcome is Outcome.SUCCESS


def test_health_status_and_metrics(served: Serving) -> None:
    def fail(params: dict[str, Any]) -> dict[str, Any]:
        raise LookupError("no")

    with runner(served, registry_of(Pay=more, Refund=fail)) as service:
        served.result(served.start("billing.Again", amount=1))
        served.result(served.start("billing.Back", amount=1))
        assert get(service, "/health")[0] == 200
        status, kind, body = get(service, "/status")
        assert (status, kind) == (200, "application/json")
        told = json.loads(body)
        assert told["server_id"] == service.server_id
        assert told["state"] == "running"
        assert told["uptime_seconds"] > 0
        assert {"facet": "billing.Pay", "outcome": "success", "count": 4} in told["handled"]
        assert {loop["name"] for loop in told["loops"]} >= {"dispatcher", "renewal", "sweep"}
        assert [loop["errors"] for loop in told["loops"]] == [0, 0, 0, 0]

        status, kind, body = get(service, "/metrics")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        lines = body.splitlines()
        assert 'afl_tasks_handled_total{facet="billing.Pay",outcome="success"} 4' in lines
        assert 'afl_tasks_handled_total{facet="billing.Refund",outcome="failed"} 1' in lines
        assert "afl_tasks_in_flight 0" in lines
        names = {line.partition("{")[0].partition(" ")[0] for line in lines if line[0] != "#"}
        assert names >= {"afl_claims_total", "afl_commits_total"}
        for loop in ("renewal", "sweep"):
            pattern = rf'afl_loop_last_success_age_seconds{{loop="{loop}"}} \d'
            assert re.search(pattern, body)
        sample = re.compile(r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? -?[0-9.]+$')
        assert [line for line in lines if line[0] != "#" and not sample.match(line)] == []

        assert get(service, "/nothing")[0] == 404


def test_health_is_not_ok_while_it_drains(served: Serving) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(params: dict[str, Any]) -> dict[str, Any]:
        entered.set()
        assert leave.wait(PATIENCE_SECONDS)
        return more(params)

    with runner(served, registry_of(Pay=slow)) as service:
        run = served.start("billing.Once", amount=1)
        assert entered.wait(PATIENCE_SECONDS)
        service.stop()
        eventually(lambda: get(service, "/health")[0] == 503, "it says that it ends")
        leave.set()
    (task,) = served.store.get_tasks_by_workflow(run)
    assert task.state == "completed"


def test_a_port_that_is_taken_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = StatusServer({"/health": lambda: json_answer({})}, port, 20)
        assert port < server.port <= port + 19
        server.stop()
        with pytest.raises(OSError, match="is free"):
            StatusServer({}, port, 1)


# The command line


def test_handlers_are_loaded_from_modules() -> None:
    registry = load_handlers(
        ["tests.runtime.runner_handlers", "tests.runtime.runner_handlers:MORE"]
    )
    assert registry.names() == ["Pay", "Slow", "billing.Refund"]
    assert registry.handle("billing.Refund", {"amount": 3}) == {"refunded": 3}


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("tests.no_such_module", "cannot be imported"),
        ("tests.runtime.runner_handlers:nothing", "has no nothing"),
        ("tests.runtime.runner_handlers:NUMBER", "no ToolRegistry and no dict"),
    ],
)
def test_handlers_that_are_not_there(place: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_handlers([place])


def test_a_wrong_command_line_is_answered_in_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AFL_DATABASE_URL", raising=False)
    assert main([]) == 2
    assert "--database-url" in capsys.readouterr().err
