"""A model of a provider, asked through pydantic-ai: one request, and no loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic_ai import messages as theirs
from pydantic_ai.models import Model as TheirModel
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from afl.turns.model import ModelRequest, Reply
from afl.turns.models.failures import cut_off, failure_of
from afl.turns.models.messages import our_reply, their_messages, their_parameters
from afl.turns.ports import Listener


@dataclass(frozen=True, slots=True)
class PydanticModel:
    """`ports.Model` over one model of pydantic-ai, whose client must not retry by itself.

    With a listener the answer is streamed. The first piece of a tool call is the tool's name, those
    that follow are the text of its arguments.
    """

    #: as in `Brief.models`
    name: str
    model: TheirModel
    #: where its key is set, for people who have to correct it
    key: str
    #: what goes with every request
    settings: ModelSettings
    #: some models only think at their own temperature, and complain about any other
    takes_temperature: bool = True
    #: some cannot be made to call a tool; the turn then has to remind them
    can_be_forced: bool = True

    @property
    def base_url(self) -> str | None:
        """Where it is asked."""
        return self.model.base_url

    async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
        """Asks once. Raises `ModelBusy` or `ModelRefused`, nothing else."""
        messages = their_messages(request)
        settings = self._settings(request)
        parameters = their_parameters(request)
        try:
            if listener is None:
                response = await self.model.request(messages, settings, parameters)
            else:
                response = await self._stream(messages, settings, parameters, listener)
        except Exception as error:  # the turn has to know what to do, whatever it is
            raise failure_of(error, self.name, self.key) from error
        if _is_cut(response):
            raise cut_off(self.name)
        return our_reply(response, self.name)

    def _settings(self, request: ModelRequest) -> ModelSettings:
        settings = self.settings.copy()
        settings["max_tokens"] = request.max_tokens
        if request.temperature is not None and self.takes_temperature:
            settings["temperature"] = request.temperature
        if request.tool_required and request.tools and self.can_be_forced:
            settings["tool_choice"] = "required"
        return settings

    async def _stream(
        self,
        messages: list[theirs.ModelMessage],
        settings: ModelSettings,
        parameters: ModelRequestParameters,
        listener: Listener,
    ) -> theirs.ModelResponse:
        async with self.model.request_stream(messages, settings, parameters) as stream:
            async for event in stream:
                _tell(event, listener)
            return stream.get()


def can_be_forced(profile: Mapping[str, object]) -> bool:
    """Whether a model of this profile takes the demand to call a tool, thinking as it does."""
    if not profile.get("supports_forced_tool_choice", True):
        return False
    thinks = bool(profile.get("thinking_enabled_by_default", False))
    return not thinks or bool(profile.get("supports_forced_tool_choice_with_thinking", True))


def _tell(event: theirs.ModelResponseStreamEvent, listener: Listener) -> None:
    kind, text = "text", ""
    match event:
        case theirs.PartStartEvent(part=theirs.TextPart(content=content)):
            text = content
        case theirs.PartStartEvent(part=theirs.ThinkingPart(content=content)):
            kind, text = "thinking", content
        case theirs.PartStartEvent(part=theirs.ToolCallPart(tool_name=name)):
            kind, text = "tool", name
        case theirs.PartDeltaEvent(delta=theirs.TextPartDelta(content_delta=content)):
            text = content
        case theirs.PartDeltaEvent(delta=theirs.ThinkingPartDelta(content_delta=thought)):
            kind, text = "thinking", thought or ""
        case theirs.PartDeltaEvent(delta=theirs.ToolCallPartDelta(args_delta=str(arguments))):
            kind, text = "tool_call", arguments
    if text:
        listener(kind, text)


def _is_cut(response: theirs.ModelResponse) -> bool:
    # a connection that is closed politely looks like an end, but no reason for it was given
    details = response.provider_details or {}
    return response.finish_reason is None and "finish_reason" not in details
