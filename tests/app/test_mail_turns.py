"""Turns that send and ask, and messages that start turns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from afl import App
from afl.app.agents import Agents
from afl.bridges.offers import facet_tool
from afl.kernel.model import Json
from afl.messaging.models import AgentId, MessageType
from tests.app.mailing import answer, at_mail, message, post, received, sent_to, until

FLOW = """\
namespace deal {
  event facet Negotiate(item: String) => (price: Int)
    prompt { template "Buy {item}." tools [afl.mail.Send, afl.mail.Ask] }

  workflow Buy(item: String) => (price: Int) andThen {
    got = Negotiate(item = $.item)
    yield Buy(price = got.price)
  }

  workflow AskAgent(to: String, what: Json) => (answer: Json, by: String) andThen {
    asked = afl.mail.Ask(to = $.to, payload = $.what)
    yield AskAgent(answer = asked.payload, by = asked.sender)
  }
}
"""
#: What it says depends on who asks, and on what.
SCRIPT = """\
from afl.turns.errors import ModelRefused
from afl.turns.model import AgentSaid, UserSays
from afl.turns.models.scripted import Answer, Call


def replies(request):
    asked = [each.text for each in request.messages if isinstance(each, UserSays)][-1]
    said = sum(isinstance(each, AgentSaid) for each in request.messages)
    names = {tool.name for tool in request.tools}
    if "refuse" in asked:
        return ModelRefused("not for you")
    if "submit_result" in names and not said:
        calls = (
            Call("Send", {"to": "press", "payload": {"news": "we buy"}}),
            Call("Ask", {"to": "shop", "payload": "how much?"}),
        )
        return Answer(calls=calls)
    if "submit_result" in names:
        return Answer(calls=(Call("submit_result", {"price": 3}),))
    if "offer" in asked and "Send" in names and not said:
        text = "what do you pay?"
        given = {"to": "seller", "payload": text, "message_type": "request"}
        return Answer(calls=(Call("Send", given),))
    return Answer(text=f"heard: {asked}")
"""


@pytest.fixture
def app(mail_place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    (tmp_path / "model.py").write_text(SCRIPT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AFL_MODEL", "scripted:model.py")
    made = App("deal", mail_place)
    made.client().deploy(FLOW)
    yield made
    made.close()


def test_a_model_sends_and_asks(app: App) -> None:
    client = app.client()
    with app.worker():
        run = client.submit("deal.Buy", {"item": "tea"})
        question = received(app, "shop")
        assert question.payload == {"text": "how much?"}
        answer(app, question, {"cents": 3})
        assert run.result("30s") == {"price": 3}
    assert received(app, "press").payload == {"news": "we buy"}
    assert (sent_to(app, "shop"), sent_to(app, "press")) == (1, 1)


def test_a_flow_asks_an_agent_that_answers_by_a_turn(app: App) -> None:
    agents = Agents(app.services)
    agents.set("seller", system="You sell.")
    client = app.client()
    with app.worker():
        run = client.submit("deal.AskAgent", {"to": "seller", "what": {"instruction": "price?"}})
        answered = run.result("30s")
        assert answered == {"answer": {"text": "heard: price?"}, "by": "seller:default"}
        (turn,) = agents.turns("seller")
        assert (turn.outcome, turn.instruction) == ("success", "price?")
        # a turn that fails is an answer too: the step says why
        failing = client.submit("deal.AskAgent", {"to": "seller", "what": "refuse"})
        failing.wait("30s")
        error = failing.get().error
        assert error is not None
        assert error["type"] == "AnswerFailed"
        assert "seller:default has no answer: not for you" in str(error["message"])


def test_a_turn_delivers_what_the_message_wants(app: App) -> None:
    Agents(app.services).set("seller")
    returns: Json = {
        "type": "object",
        "properties": {"price": {"type": "integer"}},
        "required": ["price"],
    }
    wanted: dict[str, Json] = {"instruction": "How much is {item}?", "arguments": {"item": "tea"}}
    asked = message("seller", {**wanted, "returns": returns}, MessageType.REQUEST)
    with app.worker():
        post(app, asked)
        # it has no tools to ask with, so it calls one that is not there, and then submits
        response = received(app, "tester")
    assert response.payload == {"price": 3}
    assert (response.correlation_id, response.sender) == ("msg-0001", AgentId(type="seller"))
    assert response.message_type is MessageType.RESPONSE


def test_agents_write_to_each_other(app: App) -> None:
    agents = Agents(app.services)
    agents.set("buyer", tools=["afl.mail.Send"])
    agents.set("seller")
    with app.worker():
        post(app, message("buyer", {"text": "make an offer"}))
        until(lambda: len(agents.turns("buyer")) == 2)
        second, first = agents.turns("buyer")
        assert first.instruction == (
            "A message has come: event msg-0001, from tester:default.\n\nmake an offer"
        )
        # the response to a message that a turn has sent is its agent's next turn
        assert "response mail_" in second.instruction
        assert "from seller:default" in second.instruction
        assert "what do you pay?" in second.instruction
        until(lambda: agents.head("buyer").status == "idle")
    assert len(agents.turns("seller")) == 1
    assert (sent_to(app, "buyer"), sent_to(app, "seller")) == (2, 1)


@pytest.mark.parametrize("kind", [MessageType.REQUEST, MessageType.EVENT])
def test_what_cannot_start_a_turn_is_a_dead_letter(app: App, kind: MessageType) -> None:
    Agents(app.services).set("seller")
    post(app, message("seller", {}, kind, "empty-1"))
    post(app, message("seller", {"instruction": 7}, kind, "bad-02"))
    post(app, message("seller", {"instruction": "x", "arguments": []}, kind, "bad-03"))
    seller = AgentId(type="seller")
    with app.worker():
        until(lambda: at_mail(app, lambda mail: mail.counts(seller)).dead == 3)
    letters = at_mail(app, lambda mail: mail.dead_letters(seller))
    errors = {each.queue_message.message.message_id: each for each in letters}
    assert "nothing to do" in str(errors["empty-1"].queue_message.last_error)
    assert "`instruction` of a message is a text" in str(errors["bad-02"].queue_message.last_error)
    assert "`arguments` of a message is an obj" in str(errors["bad-03"].queue_message.last_error)
    assert Agents(app.services).turns("seller") == []


def test_only_agents_with_a_target_of_this_worker_get_their_mail(app: App) -> None:
    agents = Agents(app.services)
    agents.set("far", target="elsewhere")
    agents.set("ada", person=True)
    agents.set("near")
    for each in ("far", "ada", "near"):
        post(app, message(each, {"instruction": "go"}))
    with app.worker():
        until(lambda: len(agents.turns("near")) == 1)
    for each in ("far", "ada"):
        counts = at_mail(app, lambda mail, each=each: mail.counts(AgentId(type=each)))  # type: ignore[misc]
        assert (counts.ready, counts.acked) == (1, 0)


def test_the_tools_say_what_they_are(app: App) -> None:
    plans = app.services.evaluator.plans
    plan = plans.get(app.services.operations.program("default"))
    tool = facet_tool(plan, "p", "afl.mail.Send")
    assert tool.description.startswith("Put a message into the mailbox of an agent.")
    assert "whose mailbox" in json.dumps(tool.schema)
