"""Models that follow a script."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from afl.turns.errors import ModelBusy, ModelRefused
from afl.turns.model import AgentSaid, ModelRequest, Reply, Thinking, ToolUse, Usage
from afl.turns.models.script_files import load_script
from afl.turns.models.scripted import Answer, Call, Script, ScriptedModel, thoughts
from afl.turns.ports import Listener
from afl.turns.prices import PriceBook, Rate
from tests.turns.models.asking import HELLO

SCRIPT = [
    Answer("Let me see.", (Call("look", {"q": "é"}), Call("look", "{broken"))),
    Answer("Found it.", usage=Usage(input=9, output=3)),
]


def after(number: int) -> ModelRequest:
    """The request of a conversation with so many answers."""
    said = tuple(AgentSaid(()) for _ in range(number))
    return replace(HELLO, messages=HELLO.messages + said)


def ask(script: Script, request: ModelRequest = HELLO, listener: Listener | None = None) -> Reply:
    return asyncio.run(ScriptedModel(script).ask(request, listener))


def test_the_step_is_the_number_of_answers_so_far() -> None:
    assert thoughts(after(2)) == 2
    assert ask(SCRIPT).text == "Let me see."
    assert ask(SCRIPT, after(1)).text == "Found it."


def test_the_same_request_gets_the_same_answer_from_any_process() -> None:
    model = ScriptedModel(SCRIPT)
    asyncio.run(model.ask(after(1)))
    assert asyncio.run(model.ask(HELLO)) == ask(SCRIPT)


def test_calls_have_ids_of_their_place_and_their_arguments_as_written() -> None:
    assert ask(SCRIPT).tool_uses == (
        ToolUse("call_0_0", "look", '{"q":"é"}'),
        ToolUse("call_0_1", "look", "{broken"),
    )
    assert ask(SCRIPT).finish == "tool_call"
    assert ask(SCRIPT, after(1)).finish == "stop"


def test_tokens_are_counted_or_given() -> None:
    assert ask(SCRIPT, after(1)).usage == Usage(input=9, output=3)
    counted = ask([Answer("x" * 40)]).usage
    assert counted.output == 10
    assert 0 < counted.input <= len(HELLO.system) + 40


def test_a_script_may_be_a_function_of_the_request() -> None:
    def echo(request: ModelRequest) -> Answer:
        return Answer(f"You said {len(request.messages)} things.", thinking="Hm.")

    reply = ask(echo)
    assert reply.parts[0] == Thinking("Hm.")
    assert reply.text == "You said 1 things."


def test_failures_come_before_the_answer_one_for_each_time() -> None:
    busy = ModelBusy("later", after=timedelta(seconds=3))
    model = ScriptedModel([Answer("Hi.", failures=(busy, busy))])
    for _ in range(2):
        with pytest.raises(ModelBusy, match="later") as caught:
            asyncio.run(model.ask(HELLO))
        assert caught.value.after == timedelta(seconds=3)
    assert asyncio.run(model.ask(HELLO)).text == "Hi."


def test_a_failure_as_a_step_never_ends() -> None:
    model = ScriptedModel([ModelRefused("no")])
    for _ in range(3):
        with pytest.raises(ModelRefused, match="no"):
            asyncio.run(model.ask(HELLO))
    assert len(model.requests) == 3


def test_a_script_that_is_too_short_says_so() -> None:
    with pytest.raises(ModelRefused, match="2 replies, and this is request 3"):
        ask(SCRIPT, after(2))


def test_a_listener_hears_pieces() -> None:
    pieces: list[tuple[str, str]] = []
    answer = Answer("Hello.", (Call("look", "{}"),), thinking="Hm.", piece=4)
    ask([answer], listener=lambda kind, text: pieces.append((kind, text)))
    assert pieces == [
        ("thinking", "Hm."),
        ("text", "Hell"),
        ("text", "o."),
        ("tool", "look"),
        ("tool_call", "{}"),
    ]


def test_a_slow_answer_can_be_canceled() -> None:
    async def run() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ScriptedModel([Answer("x", delay_seconds=60)]).ask(HELLO), 0.01)

    asyncio.run(run())


def test_a_price_for_each_request_serves_budgets() -> None:
    model = ScriptedModel(SCRIPT, rate=Rate(request=Decimal("0.25")))
    book = PriceBook({model.name: model.rate}.get)
    reply = asyncio.run(model.ask(HELLO))
    assert book.price(reply.model, reply.usage).usd == Decimal("0.25")
    assert book.most(model.name, 5_000, 0, 100) == Decimal("0.25")


def test_a_json_file_scripts_a_model(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text(
        """{"rate": {"request": "0.01", "output": 3},
            "replies": [
              {"text": "Hm.", "calls": [{"name": "look", "arguments": {"q": 1}}],
               "failures": [{"busy": "later", "after_seconds": 2}]},
              {"text": "Done.", "usage": {"input": 7, "output": 2}, "finish": "length"},
              {"refused": "no such model"}]}""",
        encoding="utf-8",
    )
    model = load_script(path, "scripted:talk.json")
    assert model.rate == Rate(request=Decimal("0.01"), output=Decimal(3))
    with pytest.raises(ModelBusy) as caught:
        asyncio.run(model.ask(HELLO))
    assert caught.value.after == timedelta(seconds=2)
    first, second = (asyncio.run(model.ask(after(number))) for number in (0, 1))
    assert first.tool_uses[0].arguments == '{"q":1}'
    assert (first.model, second.finish) == ("scripted:talk.json", "length")
    assert second.usage == Usage(input=7, output=2)
    with pytest.raises(ModelRefused, match="no such model"):
        asyncio.run(model.ask(after(2)))


def test_a_python_file_scripts_a_model(tmp_path: Path) -> None:
    path = tmp_path / "talk.py"
    path.write_text(
        "from afl.turns.models.scripted import Answer\n"
        "def replies(request):\n"
        "    return Answer(f'{len(request.tools)} tools')\n",
        encoding="utf-8",
    )
    assert asyncio.run(load_script(path, "scripted:talk.py").ask(HELLO)).text == "1 tools"


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.json", "{", "Expecting property name"),
        ("a.json", "[]", "is not a script"),
        ("a.json", '{"replies": [{"txt": "Hi."}]}', "'txt' is unknown"),
        ("a.json", '{"replies": [{"text": "Hi.", "usage": {"in": 1}}]}', "'in'"),
        ("a.json", '{"replies": {}, "rate": {}}', "should be a list"),
        ("a.json", '{"replies": [], "rate": {"request": "much"}}', "is not a script"),
        ("a.py", "answers = []", "does not set `replies`"),
    ],
)
def test_a_file_that_is_no_script_is_refused_with_what_is_wrong(
    tmp_path: Path, name: str, text: str, complaint: str
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ModelRefused, match=complaint):
        load_script(path, f"scripted:{name}")
