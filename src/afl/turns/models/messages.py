"""Requests and answers, in the words of turns and in those of pydantic-ai. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import cast

from pydantic_ai import messages as theirs
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from afl.kernel.model import Json
from afl.turns.model import (
    AgentSaid,
    Message,
    ModelRequest,
    Part,
    Reply,
    Text,
    Thinking,
    Tool,
    ToolAnswered,
    ToolUse,
    Usage,
    UserSays,
)


def their_messages(request: ModelRequest) -> list[theirs.ModelMessage]:
    """The conversation of a request. Whatever lies between two answers is one message."""
    made: list[theirs.ModelMessage] = []
    asked: list[Message] = []
    for message in request.messages:
        if isinstance(message, AgentSaid):
            made.extend(_request(asked))
            made.append(theirs.ModelResponse(parts=[_their_part(part) for part in message.parts]))
            asked = []
        else:
            asked.append(message)
    made.extend(_request(asked))
    return made


def their_parameters(request: ModelRequest) -> ModelRequestParameters:
    """The tools and the instructions of a request."""
    return ModelRequestParameters(
        function_tools=[_definition(tool) for tool in request.tools],
        instruction_parts=(
            [theirs.InstructionPart(content=request.system)] if request.system else []
        ),
    )


def our_reply(response: theirs.ModelResponse, model: str) -> Reply:
    """The answer, under the name by which the model was asked."""
    parts = tuple(_our_parts(response.parts))
    called = any(isinstance(part, ToolUse) for part in parts)
    return Reply(
        parts=parts,
        finish=response.finish_reason or ("tool_call" if called else "stop"),
        model=model,
        usage=Usage(
            input=response.usage.input_tokens,
            output=response.usage.output_tokens,
            cache_read=response.usage.cache_read_tokens,
            cache_write=response.usage.cache_write_tokens,
        ),
        provider_id=response.provider_response_id,
    )


def _request(asked: list[Message]) -> Iterable[theirs.ModelRequest]:
    # Providers want the answers of tools before anything else that follows the calls.
    answers = [_answered(message) for message in asked if isinstance(message, ToolAnswered)]
    texts = [
        theirs.UserPromptPart(message.text)
        for message in asked
        if isinstance(message, UserSays) and message.text
    ]
    if answers or texts:
        yield theirs.ModelRequest(parts=[*answers, *texts])


def _answered(message: ToolAnswered) -> theirs.ToolReturnPart:
    return theirs.ToolReturnPart(
        tool_name=message.name,
        content=message.content,
        tool_call_id=message.id,
        outcome="failed" if message.is_error else "success",
    )


def _definition(tool: Tool) -> ToolDefinition:
    # Not strict: arguments are checked by the turn, and schemas go out as they were written.
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=dict(tool.schema),
        strict=False,
    )


def _their_part(part: Part) -> theirs.ModelResponsePart:
    match part:
        case Text(text):
            return theirs.TextPart(text)
        case ToolUse(id, name, arguments):
            return theirs.ToolCallPart(tool_name=name, args=arguments, tool_call_id=id)
        case Thinking(text, opaque):
            kept = opaque if isinstance(opaque, dict) else {}
            return theirs.ThinkingPart(
                text,
                id=_text(kept.get("id")),
                signature=_text(kept.get("signature")),
                provider_name=_text(kept.get("provider")),
                provider_details=cast("dict[str, object] | None", kept.get("details")),
            )


def _our_parts(parts: Iterable[theirs.ModelResponsePart]) -> Iterable[Part]:
    for part in parts:
        match part:
            case theirs.TextPart(content=content) if content:
                yield Text(content)
            case theirs.ThinkingPart():
                yield Thinking(part.content, _opaque(part))
            case theirs.ToolCallPart():
                yield ToolUse(part.tool_call_id, part.tool_name, _arguments(part.args))
            case _:  # nothing else was asked for
                continue


def _opaque(part: theirs.ThinkingPart) -> Json:
    kept = {
        "id": part.id,
        "signature": part.signature,
        "provider": part.provider_name,
        "details": part.provider_details,
    }
    return {key: value for key, value in kept.items() if value} or None


def _arguments(args: str | Mapping[str, object] | None) -> str:
    # some providers write nothing at all where there is nothing to say
    if not args:
        return "{}"
    if isinstance(args, str):
        return args
    return json.dumps(args, ensure_ascii=False, separators=(",", ":"))


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
