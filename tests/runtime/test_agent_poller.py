from __future__ import annotations

import inspect
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from afl.kernel.model import Outcome, State, TaskId, TaskSpec
from afl.runtime.agent_poller import AgentPoller, AgentPollerConfig
from afl.runtime.entities import ServerState, TaskState
from afl.runtime.evaluator import ExecutionStatus
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.step import step_id
from tests.runtime.serving import PATIENCE_SECONDS, Serving, eventually, serving


@pytest.fixture
def served(real_store: PersistenceAPI) -> Iterator[Serving]:
    with serving(real_store) as made:
        yield made


def poller(served: Serving, **config: Any) -> AgentPoller:  # noqa: ANN401 - any field
    return AgentPoller(served.store, served.evaluator, AgentPollerConfig(**config))


def more(params: dict[str, Any]) -> dict[str, Any]:
    return {"paid": params["amount"] + 1}


def test_the_defaults_are_those_of_the_specification() -> None:
    config = AgentPollerConfig()
    assert vars(config) == {
        "service_name": "afl-agent",
        "server_group": "default",
        "server_name": socket.gethostname(),
        "task_list": "default",
        "poll_interval_ms": 2000,
        "max_concurrent": 5,
        "heartbeat_interval_ms": 10000,
    }


def test_one_poll_serves_and_advances(served: Serving) -> None:
    agent = poller(served)
    seen: list[dict[str, Any]] = []

    def callback(params: dict[str, Any]) -> dict[str, Any]:
        seen.append(params)
        return more(params)

    agent.register("Pay", callback)
    run = served.start("billing.Again", amount=1)
    assert served.evaluator.resume(run).status is ExecutionStatus.PAUSED
    assert [agent.poll_once() for _ in range(5)] == [1, 1, 1, 1, 0]
    assert served.evaluator.result(run).outputs == {"paid": 5}
    # exactly the arguments: nothing is added to them
    assert seen == [{"amount": n} for n in (1, 2, 3, 4)]


def test_one_poll_starts_no_threads(served: Serving) -> None:
    agent = poller(served)
    agent.register("Pay", more)
    run = served.start("billing.Once", amount=1)
    served.evaluator.resume(run)
    before = set(threading.enumerate())
    assert agent.poll_once() == 1
    assert {thread for thread in threading.enumerate() if thread.name.startswith("afl-")} <= before
    assert not agent.is_running


def test_a_failed_callback_fails_the_run(served: Serving) -> None:
    agent = poller(served)

    def callback(params: dict[str, Any]) -> dict[str, Any]:
        raise LookupError("no such account")

    agent.register("billing.Pay", callback)
    run = served.start("billing.Once", amount=1)
    served.evaluator.resume(run)
    assert agent.poll_once() == 1
    result = served.evaluator.result(run)
    assert result.status is ExecutionStatus.ERROR
    assert result.error is not None
    assert result.error["message"] == "no such account"
    (task,) = [t for t in served.store.get_tasks_by_workflow(run) if t.name == "billing.Pay"]
    assert task.state == TaskState.FAILED


def test_coroutines_are_callbacks_too(served: Serving) -> None:
    async def callback(params: dict[str, Any]) -> dict[str, Any]:
        return more(params)

    agent = poller(served)
    agent.register("Pay", callback)  # type: ignore[arg-type]
    run = served.start("billing.Once", amount=1)
    served.evaluator.resume(run)
    assert agent.poll_once() == 1
    assert served.evaluator.result(run).outputs == {"paid": 2}


def test_it_takes_only_what_it_serves(served: Serving) -> None:
    kernel = served.store.kernel
    wanted, other, elsewhere = kernel.enqueue(
        [
            TaskSpec("event", "billing.Pay", input={"params": {"amount": 1}}),
            TaskSpec("event", "billing.Refund"),
            TaskSpec("event", "billing.Pay", list="other"),
        ]
    )
    agent = poller(served)
    assert agent.poll_once() == 0  # nothing is registered
    agent.register("Pay", more)
    agent.register("not.Refund", more)
    assert agent.registered_names() == ["Pay", "not.Refund"]
    assert agent.poll_once() == 1
    states = [kernel.get_task(task.id) for task in (wanted, other, elsewhere)]
    assert [task and task.state for task in states] == [State.CLOSED, State.READY, State.READY]


def test_an_answer_from_elsewhere_wins(served: Serving) -> None:
    agent = poller(served)
    run = served.start("billing.Once", amount=1)
    served.evaluator.resume(run)

    def callback(params: dict[str, Any]) -> dict[str, Any]:
        served.evaluator.continue_step(step_id(run, "0/a"), {"paid": 99})
        return more(params)

    agent.register("Pay", callback)
    assert agent.poll_once() == 1
    assert served.evaluator.resume(run).outputs == {"paid": 99}


def test_the_server_is_known_from_its_start_to_its_end(served: Serving) -> None:
    agent = poller(served, service_name="payments", server_group="eu", heartbeat_interval_ms=100)
    agent.register("Pay", more)
    assert served.store.get_server(agent.server_id) is None
    thread = threading.Thread(target=agent.start)
    thread.start()
    eventually(lambda: agent.is_running, "it runs")
    server = served.store.get_server(agent.server_id)
    assert server is not None
    assert (server.state, server.handlers) == (ServerState.RUNNING, ["Pay"])
    assert (server.service_name, server.server_group) == ("payments", "eu")
    assert server.server_name == socket.gethostname()
    first_ping = server.ping_time

    def pinged() -> bool:
        found = served.store.get_server(agent.server_id)
        return found is not None and found.ping_time > first_ping

    eventually(pinged, "the heartbeat is seen")
    agent.stop()
    thread.join(PATIENCE_SECONDS)
    assert not agent.is_running
    server = served.store.get_server(agent.server_id)
    assert server is not None
    assert server.state == ServerState.SHUTDOWN


def test_the_loop_serves_and_advances_the_runs_it_has_served(served: Serving) -> None:
    agent = poller(served, poll_interval_ms=20)
    agent.register("Pay", more)
    nested = served.start("billing.Outer", amount=1)
    never = served.start("billing.Once", amount=1)
    served.evaluator.resume(nested)
    thread = threading.Thread(target=agent.start)
    thread.start()
    assert served.result(nested).outputs == {"paid": 6}
    agent.stop()
    thread.join(PATIENCE_SECONDS)
    # runs that have not begun are for runners
    task = served.store.kernel.get_task(TaskId(never))
    assert task is not None
    assert (task.state, task.committed_fence) == (State.READY, None)


def test_agents_share_runs(served: Serving) -> None:
    """Each advances what it has answered; what comes while the other is at it is not lost."""
    one, other = (poller(served, poll_interval_ms=20) for _ in range(2))
    one.register("Pay", more)
    other.register("Refund", lambda params: {"refunded": params["amount"]})
    runs = [served.start("billing.Both", amount=n) for n in range(10)]
    for run in runs:
        served.evaluator.resume(run)
    threads = [threading.Thread(target=agent.start) for agent in (one, other)]
    for thread in threads:
        thread.start()
    results = [served.result(run).outputs for run in runs]
    for agent, thread in zip((one, other), threads, strict=True):
        agent.stop()
        thread.join(PATIENCE_SECONDS)
    assert results == [{"paid": 2 * n + 2, "refunded": n} for n in range(10)]


def test_a_failure_in_the_loop_fails_the_run(served: Serving) -> None:
    agent = poller(served, poll_interval_ms=20)

    def callback(params: dict[str, Any]) -> dict[str, Any]:
        raise LookupError("no such account")

    agent.register("Pay", callback)
    run = served.start("billing.Once", amount=1)
    served.evaluator.resume(run)
    thread = threading.Thread(target=agent.start)
    thread.start()
    assert served.result(run).status is ExecutionStatus.ERROR
    agent.stop()
    thread.join(PATIENCE_SECONDS)


def test_a_cached_program_is_ready(served: Serving) -> None:
    agent = poller(served)
    run = served.start("billing.Once", amount=1)
    found = served.store.get_run(run)
    assert found is not None
    text = served.store.get_program(found.program)
    assert text is not None
    agent.cache_workflow_ast(run, text)
    agent.cache_workflow_ast(run, {"any": "form"})
    agent.cache_workflow_ast("no such run", {})


def test_the_signatures_are_those_of_the_specification() -> None:
    names = list(inspect.signature(AgentPoller.__init__).parameters)
    assert names[:4] == ["self", "persistence", "evaluator", "config"]
    assert list(inspect.signature(AgentPoller.register).parameters) == [
        "self",
        "facet_name",
        "callback",
    ]
    assert list(inspect.signature(AgentPoller.cache_workflow_ast).parameters) == [
        "self",
        "workflow_id",
        "ast",
    ]


def test_after_a_stop_it_can_poll_again(served: Serving) -> None:
    agent = poller(served)
    agent.register("Pay", more)
    assert agent.poll_once() == 0
    agent.stop()
    server = served.store.get_server(agent.server_id)
    assert server is not None
    assert server.state == ServerState.SHUTDOWN
    (task,) = served.store.kernel.enqueue(
        [TaskSpec("event", "billing.Pay", input={"params": {"amount": 1}})]
    )
    assert agent.poll_once() == 1
    found = served.store.kernel.get_task(task.id)
    assert found is not None
    assert found.outcome is Outcome.SUCCESS
