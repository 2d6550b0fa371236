"""Models and people in tests of flows: `fake_llm` and `inbox`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from afl.runtime.errors import BadInputs
from afl.testing.engine import Engine, Stuck
from afl.testing.engine_clock import EngineClock
from afl.testing.engine_inbox import EngineInbox
from afl.testing.engine_simulation import Simulation
from afl.testing.engine_stubs import Stub
from afl.testing.engine_turns import FakeLlm
from afl.turns.model import UserSays

FLOW = """\
namespace demo {
  event facet Search(query: String) => (hits: [String])

  event facet Ask(question: String) => (answer: String, sure: Boolean)
    prompt { system "Be brief." template "Q: {question}" tools [Search, Decide] }

  event facet Title(text: String) => (title: String)
    prompt { template "A title for {text}" model "anthropic:claude-sonnet-5" }

  event facet Decide(what: String) => (ok: Boolean) with Human(group = "bosses", deadline = 2d)

  workflow Do(question: String) => (answer: String, sure: Boolean, title: String) andThen {
    asked = Ask(question = $.question)
    titled = Title(text = asked.answer)
    yield Do(answer = asked.answer, sure = asked.sure, title = titled.title)
  }

  workflow Sign() => (ok: Boolean) andThen {
    decided = Decide(what = "it")
    yield Sign(ok = decided.ok)
  }
}
"""
WHY = {"question": "Why?"}


@pytest.fixture(autouse=True)
def program(engine: Engine) -> None:
    engine.compile(FLOW)


def test_a_text_and_a_result_are_what_a_model_says(engine: Engine, fake_llm: FakeLlm) -> None:
    ask = fake_llm.script("demo.Ask", {"answer": "because", "sure": True})
    fake_llm.script("Title", "On reasons")
    run = engine.run("demo.Do", WHY)
    assert run.outputs == {"answer": "because", "sure": True, "title": "On reasons"}
    (request,) = ask.requests
    assert (request.system, request.messages[0]) == ("Be brief.", UserSays("Q: Why?"))


def test_tools_are_stubs_like_any_other_work(
    engine: Engine, fake_llm: FakeLlm, stub: Callable[..., Stub]
) -> None:
    search = stub("demo.Search", returns={"hits": ["a", "b"]})
    ask = fake_llm.script(
        "Ask",
        fake_llm.calls(("Search", {"query": "x"}), ("Search", {"query": "y"})),
        fake_llm.submits({"answer": "a", "sure": False}),
    )
    fake_llm.script("Title", "t")
    assert engine.run("demo.Do", WHY).outputs["answer"] == "a"
    assert search.calls == [{"query": "x"}, {"query": "y"}]
    assert '["a", "b"]' in str(ask.requests[1].messages)


def test_tokens_are_counted(engine: Engine, fake_llm: FakeLlm) -> None:
    fake_llm.script(
        "Ask",
        fake_llm.calls(("Nothing", {}), tokens=(100, 10)),
        fake_llm.submits({"answer": "a", "sure": True}, tokens=(200, 20)),
    )
    fake_llm.script("Title", fake_llm.says("t", tokens=(7, 3)))
    engine.run("demo.Do", WHY)
    assert fake_llm.tokens == (307, 33)


def test_a_busy_model_is_asked_again_when_the_clock_has_moved(
    engine: Engine, fake_llm: FakeLlm, clock: EngineClock
) -> None:
    fake_llm.script("Ask", fake_llm.busy("1h"))
    run = engine.start("demo.Do", WHY)
    why = engine.operations.why(run.id)
    assert "The model of `demo.Ask` was busy; it is asked again at" in why.sentence
    before = clock.now()
    ended = engine.finish(run.id)
    assert ended.error is not None
    assert "busy" in str(ended.error["message"])
    assert clock.now() - before > timedelta(hours=7)


def test_a_refusal_fails_the_step(engine: Engine, fake_llm: FakeLlm) -> None:
    fake_llm.script("Ask", fake_llm.refuses("the key is wrong"))
    ended = engine.run("demo.Do", WHY)
    assert ended.error is not None
    assert ended.error["message"] == "the key is wrong"


def test_a_wrong_result_goes_back_to_the_model(engine: Engine, fake_llm: FakeLlm) -> None:
    ask = fake_llm.script("Ask", {"answer": 3}, {"answer": "three", "sure": True})
    fake_llm.script("Title", "t")
    assert engine.run("demo.Do", WHY).outputs["answer"] == "three"
    assert "`sure`" in str(ask.requests[1].messages) or "'sure'" in str(ask.requests[1].messages)


def test_a_stub_comes_before_a_script(
    engine: Engine, fake_llm: FakeLlm, stub: Callable[..., Stub]
) -> None:
    fake_llm.script("Ask", "never asked")
    stub("Ask", returns={"answer": "stub", "sure": True})
    fake_llm.script("Title", "t")
    assert engine.run("demo.Do", WHY).outputs["answer"] == "stub"


def test_a_prompt_without_a_script_is_named(engine: Engine) -> None:
    with pytest.raises(Stuck, match=r'fake_llm\.script\("demo\.Ask"'):
        engine.run("demo.Do", WHY)


def test_a_person_answers(engine: Engine, inbox: EngineInbox) -> None:
    run = engine.start("demo.Sign")
    (item,) = inbox.list("bosses")
    assert item.params == {"what": "it"}
    with pytest.raises(BadInputs, match="`ok`"):
        inbox.answer({"ok": "maybe"})
    inbox.answer({"ok": True})
    assert engine.get(run.id).outputs == {"ok": True}
    with pytest.raises(AssertionError, match="Nothing waits for a person"):
        inbox.answer({"ok": True})


def test_a_person_rejects(engine: Engine, inbox: EngineInbox) -> None:
    run = engine.start("demo.Sign")
    inbox.reject("no", facet="Decide")
    error = engine.get(run.id).error
    assert error is not None
    assert (error["type"], error["message"]) == ("Rejected", "no")


def test_which_of_several_has_to_be_said(engine: Engine, inbox: EngineInbox) -> None:
    first, second = engine.start("demo.Sign"), engine.start("demo.Sign")
    with pytest.raises(AssertionError, match="Say which with `facet`"):
        inbox.answer({"ok": True})
    inbox.answer({"ok": True}, facet="Decide")
    assert engine.get(first.id).success
    assert not engine.get(second.id).success


def test_nobody_answers_in_time(engine: Engine, clock: EngineClock) -> None:
    run = engine.start("demo.Sign")
    clock.advance("3d")
    error = engine.get(run.id).error
    assert error is not None
    assert error["type"] == "Timeout"


def test_a_person_is_a_tool(engine: Engine, fake_llm: FakeLlm, inbox: EngineInbox) -> None:
    ask = fake_llm.script(
        "Ask", fake_llm.calls(("Decide", {"what": "x"})), {"answer": "a", "sure": True}
    )
    fake_llm.script("Title", "t")
    run = engine.start("demo.Do", WHY)
    assert "`demo.Ask` waits for a person of the group `bosses`" in (
        engine.operations.why(run.id).sentence
    )
    inbox.answer({"ok": True})
    assert engine.get(run.id).success
    assert '{"ok": true}' in str(ask.requests[1].messages)


def test_a_turn_is_killed_at_every_commit_and_comes_to_the_same_end(
    fake_llm: FakeLlm, stub: Callable[..., Stub], simulate: Callable[..., Simulation]
) -> None:
    stub("demo.Search", returns={"hits": ["a"]})
    fake_llm.script(
        "Ask", fake_llm.calls(("Search", {"query": "x"})), {"answer": "a", "sure": True}
    )
    fake_llm.script("Title", "t")
    simulation = simulate("demo.Do", WHY)
    assert simulation.outputs == {"answer": "a", "sure": True, "title": "t"}
    assert simulation.kills > 12
