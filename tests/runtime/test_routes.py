"""States in which nothing happens to a step are left out, and nothing else is."""

from __future__ import annotations

from afl.kernel.model import (
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Json,
    Outcome,
    WorkerId,
    WorkerSpec,
)
from afl.lang.api import compile_sources
from afl.runtime.evaluator import Evaluator
from afl.runtime.memory_store import MemoryStore
from afl.runtime.plan import Plan
from afl.runtime.routes import route_of
from afl.runtime.states import STEP_TRANSITIONS, TERMINAL, ObjectType, StepState
from afl.runtime.step import StepDefinition, WorkflowId
from afl.runtime.telemetry import SILENT, Silence, Telemetry

_WORKER = WorkerId("w")
_TEXT = """
namespace t {
  event facet Add(a: Int) => (b: Int)
  event facet Fail(a: Int) => (b: Int)
  facet Tag(name: String = "x") => (note: String) andThen { yield Tag(note = $.name) }
  facet Twice(a: Int) => (b: Int) andThen {
    one = Add(a = $.a)
    yield Twice(b = one.b + one.b)
  }
  facet Plain(a: Int, b: Int = 3)
  facet Guarded(a: Int) => (b: Int) andThen {
    one = Fail(a = $.a)
    yield Guarded(b = one.b)
  } catch { yield Guarded(b = 0) }
  workflow Child(a: Int) => (b: Int) andThen {
    one = Twice(a = $.a)
    yield Child(b = one.b)
  }
  workflow W(xs: [Int]) => (ys: [Int], z: Int) andThen foreach x in $.xs {
    added = Add(a = $.x)
    twice = Twice(a = added.b)
    yield W(ys = [twice.b])
  } andThen {
    plain = Plain(a = 1)
    child = Child(a = plain.b)
    guarded = Guarded(a = child.b)
    caught = Fail(a = 1) catch { yield Fail(b = 7) }
    own = Add(a = caught.b) andThen {
      inner = Add(a = 5)
      yield Add(b = inner.b)
    }
    yield W(z = guarded.b + own.b)
  }
}
"""


class Listening(Silence):
    """Somebody who wants to be told of each state."""

    def __init__(self) -> None:
        self.states: set[str] = set()

    def log_state_begin(self, step: StepDefinition, state: str) -> None:
        self.states.add(state)


def rows_of(telemetry: Telemetry) -> list[tuple[object, ...]]:
    """The rows of a run to its end, without the counts of what has none."""
    store = MemoryStore()
    evaluator = Evaluator(store, telemetry)
    compiled = compile_sources([("t.afl", _TEXT)])
    assert compiled.program is not None, [each.message for each in compiled.diagnostics]
    run = evaluator.start(evaluator.plans.add(compiled.program), "t.W", {"xs": [1, 2]})
    store.kernel.register(WorkerSpec(_WORKER, "w"))
    while claims := _advanced(store, evaluator, run):
        for claim in claims:
            given = claim.task.input
            assert isinstance(given, dict)
            params = given["params"]
            assert isinstance(params, dict)
            close = Close(Outcome.SUCCESS, {"b": int(str(params["a"])) + 1})
            if claim.task.name == "t.Fail":
                close = Close(Outcome.FAILED, error={"type": "No", "message": "no"})
            store.kernel.commit([Commit(claim.fence, close)])
    assert evaluator.result(run).outputs == {"ys": [6, 8], "z": 6}
    runs = sorted(store.find_runs(), key=lambda each: each.workflow)
    return [
        (each.workflow, row.path, row.state, row.params, row.returns, row.error, _told(row.frame))
        for each in runs
        for row in store.get_steps_by_workflow(each.id)
    ]


def _advanced(store: MemoryStore, evaluator: Evaluator, run: WorkflowId) -> list[Claim]:
    """Advances all runs as far as they go; the work that there is then."""
    evaluator.resume(run)
    return store.kernel.claim(ClaimRequest(_WORKER, ("Add", "Fail"), n=10))


def _told(frame: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in frame.items() if (name, value) != ("left", 0)}


def test_a_step_passes_without_a_stop_what_is_not_for_it() -> None:
    listening = Listening()
    assert rows_of(SILENT) == rows_of(listening)
    assert StepState.MIXIN_BLOCKS_BEGIN in listening.states, "who listens hears of every state"


def test_the_shortest_way_of_a_step() -> None:
    compiled = compile_sources([("t.afl", _TEXT)])
    assert compiled.program is not None
    plan = Plan(compiled.program)
    step = StepDefinition(
        WorkflowId("r"), "0/0/added", ObjectType.VARIABLE_ASSIGNMENT, "t.W/0/added", "t.Add"
    )
    stops, state = [], StepState.CREATED
    while (state := route_of(plan, step).get(state, state)) not in TERMINAL:
        stops.append(state)
        state = STEP_TRANSITIONS[state]
    assert stops == [
        StepState.FACET_INIT_BEGIN,
        StepState.EVENT_TRANSMIT,
        StepState.STATEMENT_CAPTURE_BEGIN,
    ]
    assert route_of(plan, step) is route_of(plan, step), "it is found out once"
