"""Flows that send messages and ask agents: `afl.mail.Send` and `afl.mail.Ask`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from afl import App, Client
from afl.kernel.model import Json
from afl.messaging.models import AgentId, FailureType, MessagePriority, MessageType
from afl.messaging.requesting import response_to
from afl.runtime.errors import RunFailed
from tests.app.mailing import answer, at_mail, post, receive, received, sent_to, until

FLOW = """\
namespace post {
  workflow Tell(to: String, payload: Json, kind: String = "event") => (id: String) andThen {
    sent = afl.mail.Send(to = $.to, payload = $.payload, message_type = $.kind, priority = "high")
    yield Tell(id = sent.message_id)
  }

  workflow Ask(to: String, timeout: Duration? = null) => (price: Json, by: String) andThen {
    asked = afl.mail.Ask(to = $.to, payload = #{item: "tea"}, timeout = $.timeout)
    yield Ask(price = asked.payload, by = asked.sender)
  }

  workflow Twice(to: String) => (price: Json, by: String) andThen {
    asked = afl.mail.Ask(to = $.to, payload = "tea?", timeout = 200ms)
      with Retry(max_attempts = 100, delay = 1ms, max_delay = 1ms, on = ["Timeout"])
    yield Twice(price = asked.payload, by = asked.sender)
  }
}
"""


@pytest.fixture
def app(mail_place: str) -> Iterator[App]:
    made = App("post", mail_place)
    made.client().deploy(FLOW)
    yield made
    made.close()


def failure(client: Client, workflow: str, **inputs: Json) -> str:
    """How a run fails."""
    run = client.submit(workflow, inputs)
    with pytest.raises(RunFailed) as failed:
        run.result("30s")
    return str(failed.value)


def test_a_step_sends_a_message_once(app: App) -> None:
    client = app.client()
    with app.worker():
        run = client.submit("post.Tell", {"to": "clerk:2", "payload": {"n": 1}})
        id_ = run.result("30s")["id"]
    got = received(app, "clerk:2")
    assert got.message_id == id_
    assert (got.payload, got.priority) == ({"n": 1}, MessagePriority.HIGH)
    assert got.message_type is MessageType.EVENT
    assert got.sender == AgentId(type="run", instance=run.id)
    assert sent_to(app, "clerk:2") == 1


def test_what_cannot_be_sent_fails_and_says_what_to_do(app: App) -> None:
    client = app.client()
    with app.worker():
        bad = failure(client, "post.Tell", to="a b", payload={})
        assert "`to` is `a b`, which is no address. Write `type` or `type:instance`" in bad
        odd = failure(client, "post.Tell", to="a", payload=7)
        assert "an object or a text" in odd
        kind = failure(client, "post.Tell", to="a", payload="x", kind="letter")
        assert "`message_type` is `letter`. It can be request, response, event." in kind
        unheard = failure(client, "post.Tell", to="a", payload="x", kind="request")
        assert "Use `afl.mail.Ask`" in unheard


def test_a_full_mailbox_fails_the_step(app: App) -> None:
    at_mail(app, lambda mail: mail.configure(queue_size=1))
    try:
        client = app.client()
        with app.worker():
            client.submit("post.Tell", {"to": "clerk", "payload": "1"}).result("30s")
            full = failure(client, "post.Tell", to="clerk", payload="2")
            assert "The mailbox of clerk:default is full. Let somebody receive there" in full
    finally:
        at_mail(app, lambda mail: mail.configure(queue_size=10_000))


def test_an_answer_comes_after_the_worker_was_replaced(app: App) -> None:
    client = app.client()
    with app.worker():
        run = client.submit("post.Ask", {"to": "shop"})
        question = received(app, "shop")
        until(lambda: "waits for the answer of `shop:default`" in run.why().sentence)
        assert question.message_id in run.why().sentence
        # no worker is held while it waits
        assert all(each.state.value != "running" for each in client.operations.tasks(run=run.id))
    answer(app, question, {"cents": 250})
    with app.worker():
        assert run.result("30s") == {"price": {"cents": 250}, "by": "shop:default"}
    assert sent_to(app, "shop") == 1


def test_the_first_of_two_answers_counts(app: App) -> None:
    client = app.client()
    with app.worker():
        run = client.submit("post.Ask", {"to": "shop"})
        question = received(app, "shop")
        replies = question.reply_to
        assert replies is not None
    answer(app, question, {"cents": 1})
    other = question.model_copy(update={"recipient": AgentId(type="other")})
    late = {"message_id": f"{question.message_id}.late"}
    post(app, response_to(other, {"cents": 2}).model_copy(update=late))
    with app.worker():
        assert run.result("30s")["price"] == {"cents": 1}
        until(lambda: at_mail(app, lambda mail: mail.counts(replies)).acked == 2)
    assert at_mail(app, lambda mail: mail.counts(replies)).dead == 0


def test_no_answer_in_time_fails_the_step(app: App) -> None:
    client = app.client()
    with app.worker():
        late = failure(client, "post.Ask", to="shop", timeout=100)
        assert "Timeout" in late
        assert "There was no answer to the message ask_" in late
        # an answer that comes too late is of no use, and does no harm
        question = received(app, "shop")
        assert question.reply_to is not None
        replies = question.reply_to
        answer(app, question, {"cents": 1})
        until(lambda: at_mail(app, lambda mail: mail.counts(replies)).acked == 1)


def test_a_retry_after_a_timeout_asks_again(app: App) -> None:
    client = app.client()
    with app.worker():
        run = client.submit("post.Twice", {"to": "shop"})
        first, second = received(app, "shop"), received(app, "shop")
        assert first.message_id != second.message_id
        # each question may be out of date by the time that it is answered
        asked = second
        while run.state == "running":
            answer(app, asked, {"cents": 3})
            asked = receive(app, "shop", seconds=0.5) or asked
        assert run.result("30s")["price"] == {"cents": 3}


def test_an_answer_that_is_none_is_a_dead_letter(app: App) -> None:
    client = app.client()
    with app.worker():
        run = client.submit("post.Ask", {"to": "shop"})
        question = received(app, "shop")
        assert question.reply_to is not None
        replies = question.reply_to
        stray = question.model_copy(update={"message_id": "never-asked"})
        answer(app, stray, {"cents": 1})
        (dead,) = until(lambda: at_mail(app, lambda mail: mail.dead_letters(replies)))
        assert "not the id of a message that was asked" in str(dead.queue_message.last_error)
        assert dead.reason == FailureType.PERMANENT
        answer(app, question, {"cents": 2})
        assert run.result("30s")["price"] == {"cents": 2}
