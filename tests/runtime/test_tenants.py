"""All work of a run belongs to the tenant of the run, also what it calls."""

from __future__ import annotations

from afl import Client
from afl.app.services import connect
from afl.app.serving import AppWorker
from afl.runtime.handler_table import HandlerTable, on_params
from afl.runtime.worker import WorkerConfig

FLOW = """\
namespace demo {
  event facet Fetch(name: String) => (n: Int)
  event facet Ask(n: Int) => (ok: Boolean) with Human(group = "all")

  workflow Inner(name: String) => (n: Int) andThen {
    slept = afl.time.Sleep(duration = 1ms)
    one = Fetch(name = $.name) after slept
    yield Inner(n = one.n)
  }
  workflow Outer(name: String) => (ok: Boolean) andThen {
    inner = Inner(name = $.name)
    asked = Ask(n = inner.n)
    yield Outer(ok = asked.ok)
  }
}
"""


def test_what_a_run_calls_has_its_tenant() -> None:
    table = HandlerTable()
    table.register("demo.Fetch", on_params(lambda params: {"n": 3}))
    with connect("memory:") as services, Client(services=services) as client:
        client.deploy(FLOW)
        run = client.operations.submit("demo.Outer", {"name": "ada"}, tenant="acme")
        with AppWorker(services, table, WorkerConfig(slots=1)):
            while not (items := client.inbox().list()):
                services.doorbell.wait(["default"], 0.01)
            client.inbox().answer(items[0].task, {"ok": True})
            client.operations.wait(run.id)
        tasks = client.operations.tasks(limit=100)
        assert {task.kind for task in tasks} >= {"flow", "timer", "human"}
        assert {task.tenant for task in tasks} == {"acme"}
        assert {each.tenant for each in client.operations.list()} == {"acme"}
