"""`ClaudeAgentRunner`: a run from its beginning to its end in one call."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import afl
from afl.app.compiling import compile_program
from afl.bridges.claude_agent_runner import ClaudeAgentRunner
from afl.kernel.model import Outcome, State, Task
from afl.runtime.agent_poller import AgentPoller
from afl.runtime.errors import BadInputs, UnknownRun
from afl.runtime.evaluator import Evaluator, ExecutionStatus
from afl.runtime.inbox import Inbox
from afl.runtime.memory_store import MemoryStore
from afl.runtime.mongo_store import MongoStore
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.runner import ToolRegistry
from afl.runtime.step import WorkflowId
from afl.testing.clock import SequentialIds, VirtualClock
from afl.turns.errors import ModelBusy, ModelRefused
from afl.turns.memory_store import MemoryTurnStore
from afl.turns.models.scripted import Answer, Call, ScriptedModel
from tests.turns.lasting_stores import KINDS, fresh_turns

FLOW = """\
namespace demo {
  /**
   * Counts the rows {exactly}.
   * @param table which table
   */
  event facet Count(table: String) => (rows: Int)
  event facet Look(word: String) => (meaning: String)
  event facet Explain(word: String) => (text: String)
    prompt { system "You explain." template "Explain {word}." tools [Look] }

  workflow Audit(table: String) => (rows: Int) andThen {
    counted = Count(table = $.table)
    yield Audit(rows = counted.rows)
  }

  workflow Learn(word: String) => (text: String) andThen {
    said = Explain(word = $.word)
    yield Learn(text = said.text)
  }

  workflow Both(word: String) => (rows: Int, text: String) andThen {
    counted = Count(table = $.word)
    said = Explain(word = $.word)
    yield Both(rows = counted.rows, text = said.text)
  }
}
"""


def submits(**fields: object) -> Answer:
    return Answer(calls=(Call("submit_result", fields),))


@pytest.fixture(params=["memory", *KINDS])
def store(request: pytest.FixtureRequest) -> Iterator[PersistenceAPI]:
    if request.param == "memory":
        yield MemoryStore()
        return
    persistence = PostgresPersistence if request.param == "postgres" else MongoStore
    with fresh_turns(request.param) as url, persistence.connect(url) as connected:
        yield connected


def runner(store: PersistenceAPI, *args: Any, **options: Any) -> ClaudeAgentRunner:  # noqa: ANN401
    return ClaudeAgentRunner(Evaluator(store), store, *args, **options)


def registry(**tools: Any) -> ToolRegistry:  # noqa: ANN401
    found = ToolRegistry()
    for name, tool in tools.items():
        found.register(name.replace("_", "."), tool)
    return found


def tasks(store: PersistenceAPI, run: WorkflowId) -> list[Task]:
    return store.kernel.find_tasks(run=run, limit=1000)  # type: ignore[arg-type]


def is_left_alone(store: PersistenceAPI, run: WorkflowId) -> bool:
    """Whether nothing of a run is in anybody's hands, or waits for hands."""
    return all(task.state is State.CLOSED for task in tasks(store, run))


PROGRAM = compile_program(FLOW)


def test_it_is_where_users_of_the_package_look_for_it() -> None:
    assert afl.ClaudeAgentRunner is ClaudeAgentRunner


def test_a_model_does_what_no_handler_does(store: PersistenceAPI) -> None:
    model = ScriptedModel([submits(rows=42)])
    result = runner(store, model=model).run(PROGRAM, {"table": "users"}, "demo.Audit")
    assert result.status is ExecutionStatus.COMPLETED
    assert result.outputs == {"rows": 42}
    (request,) = model.requests
    (said,) = request.messages
    assert said.text == (  # type: ignore[union-attr]
        "The step is `demo.Count`.\n\nCounts the rows {exactly}.\n\n"
        "It is given:\n- table (which table): users"
    )
    assert [tool.name for tool in request.tools] == ["submit_result"]
    assert is_left_alone(store, result.workflow_id)
    outcomes = {task.outcome for task in tasks(store, result.workflow_id)}
    assert outcomes == {Outcome.SUCCESS}
    assert store.kernel.live_workers() == []


def test_a_prompt_is_answered_with_the_help_of_tools(store: PersistenceAPI) -> None:
    looked: list[object] = []

    def look(params: dict[str, object]) -> dict[str, object]:
        looked.append(params)
        return {"meaning": "an animal"}

    model = ScriptedModel(
        [Answer(calls=(Call("Look", {"word": "cat"}),)), Answer(text="A cat is an animal.")]
    )
    result = runner(store, registry(demo_Look=look), model).run(
        PROGRAM, {"word": "cat"}, "demo.Learn"
    )
    assert result.outputs == {"text": "A cat is an animal."}
    assert looked == [{"word": "cat"}]
    assert [request.system for request in model.requests] == ["You explain."] * 2
    assert is_left_alone(store, result.workflow_id)


async def _later(params: dict[str, object]) -> dict[str, object]:
    return {"rows": 3}


@pytest.mark.parametrize(
    ("tools", "rows"),
    [
        ({"demo_Count": lambda _: {"rows": 1}, "Count": lambda _: {"rows": 2}}, 1),
        ({"Count": lambda _: {"rows": 2}}, 2),
        ({"Count": _later}, 3),
    ],
    ids=["qualified", "short", "async"],
)
def test_a_handler_is_found_by_its_names(tools: dict[str, Any], rows: int) -> None:
    store = MemoryStore()
    result = runner(store, registry(**tools), ScriptedModel([])).run(
        PROGRAM, {"table": "t"}, "demo.Audit"
    )
    assert result.outputs == {"rows": rows}


def test_the_default_handler_gets_the_rest() -> None:
    store, tools = MemoryStore(), registry(Look=lambda _: {})
    tools.set_default_handler(lambda params: {"rows": len(str(params["table"]))})
    result = runner(store, tools, ScriptedModel([])).run(PROGRAM, {"table": "four"}, "demo.Audit")
    assert result.outputs == {"rows": 4}


def test_a_handler_that_raises_fails_its_step(store: PersistenceAPI) -> None:
    def count(params: dict[str, object]) -> dict[str, object]:
        raise ValueError("there is no such table")

    result = runner(store, registry(Count=count)).run(PROGRAM, {"table": "t"}, "demo.Audit")
    assert result.status is ExecutionStatus.ERROR
    assert result.error is not None
    assert (result.error["type"], result.error["message"]) == (
        "ValueError",
        "there is no such table",
    )
    assert is_left_alone(store, result.workflow_id)


@pytest.mark.parametrize("answer", [None, 7, {"rows": object()}])
def test_what_a_handler_must_not_answer_is_not_taken_for_nothing(answer: object) -> None:
    tools = registry(Count=lambda _: answer)
    result = runner(MemoryStore(), tools).run(PROGRAM, {"table": "t"}, "demo.Audit")
    assert result.error is not None
    assert result.error["type"] == "BadResult"


def test_a_model_that_never_delivers_fails_its_step(store: PersistenceAPI) -> None:
    def chatter(request: object) -> Answer:
        return Answer(text="Let me think.")

    model = ScriptedModel(chatter)
    result = runner(store, model=model, max_retries=2).run(PROGRAM, {"table": "t"}, "demo.Audit")
    assert result.status is ExecutionStatus.ERROR
    assert result.error is not None
    assert result.error["code"] == "turns.limit"
    assert result.outputs == {}
    assert len(model.requests) == 3
    assert is_left_alone(store, result.workflow_id)


def test_a_model_is_asked_so_often_and_not_more() -> None:
    def looks(request: object) -> Answer:
        return Answer(calls=(Call("Look", {"word": "x"}),))

    model = ScriptedModel(looks)
    tools = registry(Look=lambda _: {"meaning": "m"})
    result = runner(MemoryStore(), tools, model, max_turns=4).run(
        PROGRAM, {"word": "x"}, "demo.Learn"
    )
    assert result.status is ExecutionStatus.ERROR
    assert len(model.requests) == 4


def test_a_model_that_refuses_fails_its_step() -> None:
    model = ScriptedModel([ModelRefused("no such key")])
    result = runner(MemoryStore(), model=model).run(PROGRAM, {"table": "t"}, "demo.Audit")
    assert result.error is not None
    assert (result.error["code"], result.error["message"]) == (
        "turns.model_refused",
        "no such key",
    )


def test_a_poller_on_the_same_store_is_given_nothing(store: PersistenceAPI) -> None:
    poller = AgentPoller(store, Evaluator(store))
    for name in ("demo.Count", "demo.Explain", "demo.Look"):
        poller.register(name, lambda params: pytest.fail("the poller was given something"))
    polled: list[int] = []

    def look(params: dict[str, object]) -> dict[str, object]:
        polled.append(poller.poll_once())
        return {"rows": 1} if "table" in params else {"meaning": "m"}

    model = ScriptedModel([Answer(calls=(Call("Look", {"word": "x"}),)), Answer(text="done")])
    tools = registry(Count=look, Look=look)
    result = runner(store, tools, model).run(PROGRAM, {"word": "x"}, "demo.Both")
    assert result.outputs == {"rows": 1, "text": "done"}
    assert polled == [0, 0]
    assert poller.poll_once() == 0


HUMAN = """\
namespace demo {
  event facet Agree(question: String) => (yes: Boolean) with Human(group = "hosts")
  workflow Ask() => (yes: Boolean) andThen {
    asked = Agree(question = "May I?")
    yield Ask(yes = asked.yes)
  }
}
"""


def test_a_person_is_asked_and_the_run_goes_on_with_the_answer(store: PersistenceAPI) -> None:
    asking = runner(store, model=ScriptedModel([]))
    paused = asking.run(compile_program(HUMAN))
    assert paused.status is ExecutionStatus.PAUSED
    inbox = Inbox(store, Evaluator(store).plans)
    (item,) = inbox.list("hosts")
    inbox.answer(item.task, {"yes": True}, by="Ada")
    assert asking.resume(paused.workflow_id).outputs == {"yes": True}


def test_a_handler_of_that_name_stands_in_for_a_person() -> None:
    tools = registry(Agree=lambda _: {"yes": False})
    assert runner(MemoryStore(), tools).run(compile_program(HUMAN)).outputs == {"yes": False}
    default = ToolRegistry()
    default.set_default_handler(lambda _: pytest.fail("nobody said that it may answer for people"))
    waits = runner(MemoryStore(), default).run(compile_program(HUMAN))
    assert waits.status is ExecutionStatus.PAUSED


MORE = """\
namespace demo {
  event facet Flaky(n: Int) => (n: Int) with Retry(max_attempts = 3, delay = 10s, jitter = false)
  event facet Double(n: Int) => (n: Int) script python { result = {"n": params["n"] * 2} }

  workflow Inner(n: Int) => (n: Int) andThen {
    tried = Flaky(n = $.n)
    yield Inner(n = tried.n)
  }

  workflow Outer(n: Int) => (n: Int) andThen {
    slept = afl.time.Sleep(duration = 1h)
    inner = Inner(n = $.n) after slept
    twice = Double(n = inner.n)
    yield Outer(n = twice.n)
  }
}
"""


def virtual() -> tuple[MemoryStore, VirtualClock, list[float]]:
    clock = VirtualClock()
    return MemoryStore(clock, SequentialIds()), clock, []


def test_sleeps_retries_scripts_and_called_workflows_are_done_too() -> None:
    store, clock, slept = virtual()
    tries: list[object] = []

    def flaky(params: dict[str, object]) -> dict[str, object]:
        tries.append(params)
        if len(tries) < 3:
            raise ConnectionError("gone")
        return {"n": 21}

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.advance(timedelta(seconds=seconds))

    running = runner(store, registry(Flaky=flaky), ScriptedModel([]), sleep=sleep)
    result = running.run(compile_program(MORE), {"n": 1}, "demo.Outer")
    assert result.outputs == {"n": 42}
    assert len(tries) == 3
    assert [round(seconds) for seconds in slept] == [3600, 10, 20]
    assert is_left_alone(store, result.workflow_id)


def test_a_model_that_is_busy_is_asked_again_when_it_says() -> None:
    store, clock, slept = virtual()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.advance(timedelta(seconds=seconds))

    busy = ModelBusy("overloaded", after=timedelta(seconds=30))
    model = ScriptedModel([Answer(calls=(Call("submit_result", {"rows": 1}),), failures=(busy,))])
    result = runner(store, model=model, sleep=sleep).run(PROGRAM, {"table": "t"}, "demo.Audit")
    assert result.outputs == {"rows": 1}
    assert [round(seconds) for seconds in slept] == [30]
    (used,) = MemoryTurnStore(store.kernel).usage("step")
    assert (used.key, used.requests) == ("0/counted", 1)


def test_what_is_interrupted_is_handed_back(store: PersistenceAPI) -> None:
    def count(params: dict[str, object]) -> dict[str, object]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner(store, registry(Count=count)).run(PROGRAM, {"table": "t"}, "demo.Audit")
    assert [task.name for task in store.kernel.find_tasks(state=State.READY)] == ["demo.Count"]
    assert store.kernel.find_tasks(state=State.RUNNING) == []


def test_a_run_that_was_canceled_leaves_nothing_in_hand(store: PersistenceAPI) -> None:
    evaluator = Evaluator(store)

    def look(params: dict[str, object]) -> dict[str, object]:
        (flow,) = store.kernel.find_tasks(state=State.WAITING, limit=10)
        store.kernel.stop(flow.id, force=True)
        return {"rows": 1}

    running = ClaudeAgentRunner(evaluator, store, registry(Count=look), ScriptedModel([]))
    result = running.run(PROGRAM, {"word": "x"}, "demo.Both")
    assert is_left_alone(store, result.workflow_id)


def test_which_workflow_is_meant_has_to_be_clear() -> None:
    with pytest.raises(BadInputs, match=r"has 3 workflows; name one of demo\.Audit, demo\.Both"):
        runner(MemoryStore()).run(PROGRAM, {})
    with pytest.raises(BadInputs, match="no workflow"):
        runner(MemoryStore()).run(compile_program("namespace x { facet A(n: Int) }"))
    with pytest.raises(UnknownRun):
        runner(MemoryStore()).resume(WorkflowId("none"))
