"""What comes back, whole or in pieces."""

from __future__ import annotations

from dataclasses import replace

import pytest

from afl.testing.llm_server import LoopbackLLM, Said, ToolCall
from afl.turns.model import AgentSaid, Text, Thinking, ToolUse, Usage
from afl.turns.ports import Listener
from tests.turns.models.asking import ANTHROPIC, BOTH, HELLO, LOCAL, OPENAI, always, ask, ignore

FULL = Said(
    "Let me look.",
    (ToolCall("look", '{"q": 1}', "c1"), ToolCall("look", "{}", "c2")),
    thinking="Hmm.",
    signature="sig",
    input_tokens=100,
    output_tokens=7,
    cache_read=40,
)
MODES = pytest.mark.parametrize("listener", [None, ignore], ids=["whole", "streamed"])


@MODES
@pytest.mark.parametrize("name", [*BOTH, LOCAL])
def test_an_answer_has_its_parts_in_order(name: str, listener: Listener | None) -> None:
    with LoopbackLLM(always(FULL)) as server:
        reply = ask(server, name, listener=listener)
    thinking, text, *calls = reply.parts
    assert isinstance(thinking, Thinking)
    assert thinking.text == "Hmm."
    assert text == Text("Let me look.")
    assert [(call.id, call.name) for call in calls if isinstance(call, ToolUse)] == [
        ("c1", "look"),
        ("c2", "look"),
    ]
    assert (reply.finish, reply.model) == ("tool_call", name)
    assert reply.provider_id


@MODES
def test_tokens_are_counted_with_those_of_the_cache_among_them(listener: Listener | None) -> None:
    with LoopbackLLM(always(replace(FULL, cache_write=20))) as server:
        usage = ask(server, ANTHROPIC, listener=listener).usage
        assert usage == Usage(input=100, output=7, cache_read=40, cache_write=20)
        usage = ask(server, OPENAI, listener=listener).usage
    assert usage == Usage(input=100, output=7, cache_read=40)


@MODES
def test_thinking_goes_back_with_its_signature(listener: Listener | None) -> None:
    with LoopbackLLM(always(FULL)) as server:
        reply = ask(server, ANTHROPIC, listener=listener)
        again = replace(HELLO, messages=(*HELLO.messages, AgentSaid(reply.parts, ANTHROPIC)))
        ask(server, ANTHROPIC, again)
    said = server.requests[-1].json["messages"][1]["content"]
    assert said[0] == {"type": "thinking", "thinking": "Hmm.", "signature": "sig"}


def test_reasoning_of_a_compatible_server_goes_back_in_its_own_field() -> None:
    with LoopbackLLM(always(FULL)) as server:
        reply = ask(server, LOCAL)
        again = replace(HELLO, messages=(*HELLO.messages, AgentSaid(reply.parts, LOCAL)))
        ask(server, LOCAL, again)
    assert server.requests[-1].json["messages"][2]["reasoning_content"] == "Hmm."


def test_a_signature_is_not_shown_to_another_provider() -> None:
    with LoopbackLLM(always(FULL)) as server:
        reply = ask(server, ANTHROPIC)
        again = replace(HELLO, messages=(*HELLO.messages, AgentSaid(reply.parts, ANTHROPIC)))
        ask(server, OPENAI, again)
    assert b'"sig"' not in server.requests[-1].body


@pytest.mark.parametrize("name", BOTH)
def test_a_listener_hears_the_pieces_as_they_come(name: str) -> None:
    pieces: list[tuple[str, str]] = []
    with LoopbackLLM(always(replace(FULL, calls=FULL.calls[:1]))) as server:
        ask(server, name, listener=lambda kind, text: pieces.append((kind, text)))
    assert server.requests[0].is_streamed
    assert pieces == [
        ("thinking", "Hm"),
        ("thinking", "m."),
        ("text", "Let me"),
        ("text", " look."),
        ("tool", "look"),
        ("tool_call", '{"q"'),
        ("tool_call", ": 1}"),
    ]


def test_arguments_that_are_no_json_stay_as_the_model_wrote_them() -> None:
    said = Said(calls=(ToolCall("look", '{"q": '),))
    with LoopbackLLM(always(said)) as server:
        assert ask(server, OPENAI).tool_uses[0].arguments == '{"q": '
        assert ask(server, OPENAI, listener=ignore).tool_uses[0].arguments == '{"q": '
        assert ask(server, ANTHROPIC, listener=ignore).tool_uses[0].arguments == '{"q": '


@MODES
@pytest.mark.parametrize("name", BOTH)
def test_a_call_without_arguments_has_an_empty_object(name: str, listener: Listener | None) -> None:
    with LoopbackLLM(always(Said(calls=(ToolCall("look", ""),)))) as server:
        assert ask(server, name, listener=listener).tool_uses[0].arguments == "{}"


@MODES
@pytest.mark.parametrize(
    ("name", "stop", "finish"),
    [
        (ANTHROPIC, None, "stop"),
        (ANTHROPIC, "max_tokens", "length"),
        (ANTHROPIC, "refusal", "content_filter"),
        (OPENAI, None, "stop"),
        (OPENAI, "length", "length"),
        (OPENAI, "content_filter", "content_filter"),
    ],
)
def test_the_reason_of_the_end_is_told(
    name: str, stop: str | None, finish: str, listener: Listener | None
) -> None:
    with LoopbackLLM(always(Said("Hm.", stop=stop))) as server:
        assert ask(server, name, listener=listener).finish == finish
