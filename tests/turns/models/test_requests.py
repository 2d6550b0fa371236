"""What goes over the wire, made by the real clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from afl.testing.llm_server import LoopbackLLM, Said
from afl.turns.model import AgentSaid, ModelRequest, Text, Thinking, ToolAnswered, ToolUse, UserSays
from afl.turns.models.registry import Registry
from tests.turns.models.asking import (
    ANTHROPIC,
    BOTH,
    HELLO,
    LOCAL,
    LOOK,
    OPENAI,
    always,
    ask,
    config_of,
    ignore,
    with_registry,
)

EPHEMERAL = {"type": "ephemeral", "ttl": "5m"}
TALK = ModelRequest(
    "Be brief.",
    (
        UserSays("Some context."),
        UserSays("Go."),
        AgentSaid(
            (
                Thinking("Hm.", {"signature": "signed", "provider": "anthropic"}),
                Text("Looking."),
                ToolUse("c1", "look", '{"q": "x", "a": 2}'),
                ToolUse("c2", "look", "{broken"),
            ),
            ANTHROPIC,
        ),
        ToolAnswered("c1", "look", "found"),
        ToolAnswered("c2", "look", "not JSON", is_error=True),
        UserSays("Go on."),
    ),
    (LOOK, replace(LOOK, name="look_again")),
    max_tokens=321,
    temperature=0.5,
)


@pytest.fixture
def server() -> Iterator[LoopbackLLM]:
    with LoopbackLLM(always(Said("Hello."))) as running:
        yield running


def body(server: LoopbackLLM, name: str, request: ModelRequest) -> dict[str, Any]:
    ask(server, name, request)
    return server.requests[-1].json


def test_a_conversation_is_told_to_anthropic_in_order(server: LoopbackLLM) -> None:
    sent = body(server, ANTHROPIC, TALK)
    first, said, answered = sent["messages"]
    assert [block["text"] for block in first["content"]] == ["Some context.", "Go."]
    assert said["role"] == "assistant"
    assert said["content"][0] == {"type": "thinking", "thinking": "Hm.", "signature": "signed"}
    assert said["content"][1] == {"type": "text", "text": "Looking."}
    assert said["content"][2]["input"] == {"q": "x", "a": 2}
    results = [(b["tool_use_id"], b["is_error"]) for b in answered["content"][:2]]
    assert results == [("c1", False), ("c2", True)]
    assert answered["content"][2]["text"] == "Go on."
    assert (sent["max_tokens"], sent["temperature"]) == (321, 0.5)


def test_a_conversation_is_told_to_openai_in_order(server: LoopbackLLM) -> None:
    sent = body(server, OPENAI, TALK)
    roles = [message["role"] for message in sent["messages"]]
    assert roles == ["system", "user", "user", "assistant", "tool", "tool", "user"]
    calls = sent["messages"][3]["tool_calls"]
    assert calls[0]["function"] == {"name": "look", "arguments": '{"q":"x","a":2}'}
    assert "{broken" in calls[1]["function"]["arguments"]
    assert sent["messages"][5]["content"] == '{"error":"not JSON"}'
    assert (sent["max_completion_tokens"], sent["temperature"]) == (321, 0.5)


def test_answers_of_tools_come_before_notes_whatever_their_order(server: LoopbackLLM) -> None:
    asked = (
        UserSays("Go."),
        AgentSaid((ToolUse("c1", "look", "{}"),)),
        UserSays("A note."),
        ToolAnswered("c1", "look", "found"),
    )
    sent = body(server, ANTHROPIC, replace(HELLO, messages=asked))
    kinds = [block["type"] for block in sent["messages"][-1]["content"]]
    assert kinds == ["tool_result", "text"]


def test_anthropic_is_asked_to_keep_instructions_tools_and_the_last_message(
    server: LoopbackLLM,
) -> None:
    sent = body(server, ANTHROPIC, TALK)
    assert [block.get("cache_control") for block in sent["system"]] == [EPHEMERAL]
    assert [tool.get("cache_control") for tool in sent["tools"]] == [None, EPHEMERAL]
    marks = [b.get("cache_control") for m in sent["messages"] for b in m["content"]]
    assert marks == [None] * (len(marks) - 1) + [EPHEMERAL]


def test_a_longer_conversation_begins_with_the_same_words(server: LoopbackLLM) -> None:
    shorter = replace(TALK, messages=TALK.messages[:2])
    before, after = body(server, ANTHROPIC, shorter), body(server, ANTHROPIC, TALK)
    before["messages"][-1]["content"][-1].pop("cache_control")
    assert after["messages"][: len(before["messages"])] == before["messages"]
    assert (after["system"], after["tools"]) == (before["system"], before["tools"])


@pytest.mark.parametrize("name", [*BOTH, LOCAL])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_same_request_makes_the_same_bytes(
    server: LoopbackLLM, name: str, is_streamed: bool
) -> None:
    listener = ignore if is_streamed else None
    for _ in range(2):  # each with clients and models of its own
        ask(server, name, TALK, listener)
    first, second = (asked.body for asked in server.requests)
    assert first == second


def test_the_same_bytes_go_out_when_the_model_is_kept(server: LoopbackLLM) -> None:
    async def twice(registry: Registry) -> None:
        for _ in range(2):
            await registry.find(ANTHROPIC).ask(TALK)

    with_registry(config_of(server), twice)
    first, second = (asked.body for asked in server.requests)
    assert first == second


@pytest.mark.parametrize(("name", "choice"), [(ANTHROPIC, {"type": "any"}), (OPENAI, "required")])
def test_a_required_tool_is_demanded(server: LoopbackLLM, name: str, choice: object) -> None:
    assert body(server, name, replace(HELLO, tool_required=True))["tool_choice"] == choice
    assert body(server, name, HELLO)["tool_choice"] != choice


def test_a_model_that_cannot_be_forced_is_asked_without_force(server: LoopbackLLM) -> None:
    request = replace(HELLO, tool_required=True)
    assert body(server, "anthropic:claude-fable-5-1", request)["tool_choice"] == {"type": "auto"}


@pytest.mark.parametrize("name", ["anthropic:claude-opus-5", "openai:gpt-5"])
def test_models_that_take_no_temperature_are_given_none(server: LoopbackLLM, name: str) -> None:
    assert "temperature" not in body(server, name, TALK)


def test_a_request_without_tools_and_system_has_neither(server: LoopbackLLM) -> None:
    bare = ModelRequest("", (UserSays("Hi."),), (), max_tokens=5, tool_required=True)
    for name in BOTH:
        sent = body(server, name, bare)
        assert not {"tools", "tool_choice", "system"} & sent.keys()
        assert [message["role"] for message in sent["messages"]] == ["user"]


def test_schemas_go_out_as_they_were_written(server: LoopbackLLM) -> None:
    assert body(server, ANTHROPIC, HELLO)["tools"][0]["input_schema"] == LOOK.schema
    function = body(server, OPENAI, HELLO)["tools"][0]["function"]
    assert function["parameters"] == LOOK.schema
    assert not function.get("strict")


def test_each_server_gets_its_own_key_and_nothing_else(server: LoopbackLLM) -> None:
    for name in [*BOTH, LOCAL, f"openai@{server.openai_url}:qwen3"]:
        ask(server, name)
    keys = [asked.headers["authorization"] for asked in server.requests]
    assert keys == ["Bearer key-a", "Bearer key-o", "Bearer key-l", "Bearer none"]


def test_compatible_servers_get_the_field_that_all_of_them_know(server: LoopbackLLM) -> None:
    sent = body(server, LOCAL, TALK)
    assert (sent["model"], sent["max_tokens"]) == ("qwen3:8b", 321)
    assert "max_completion_tokens" not in sent
