"""Models of Anthropic, by its Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from anthropic import AnthropicError, AsyncAnthropic, Timeout
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.providers.anthropic import AnthropicProvider

from afl.turns.errors import ModelRefused
from afl.turns.models.pydantic_model import PydanticModel, can_be_forced

KEY = "ANTHROPIC_API_KEY"
_NO_KEY = f"There is no key for Anthropic's models: set {KEY}."

#: Everything that comes before the next answer stays as it is, so all of it is worth keeping: the
#: instructions and the tools for other turns of the same brief, the conversation for this one.
_CACHING = AnthropicModelSettings(
    anthropic_cache_instructions=True,
    anthropic_cache_tool_definitions=True,
    anthropic_cache_messages=True,
)
_CONNECT_SECONDS = 10.0


def make_client(url: str | None, key: str | None, timeout_seconds: float) -> AsyncAnthropic:
    """A client that never retries. Without a URL or key, the library looks for its own variables.

    Raises:
        ModelRefused: there is no key anywhere.
    """
    try:
        client = AsyncAnthropic(
            base_url=url,
            api_key=key,
            max_retries=0,
            timeout=Timeout(timeout_seconds, connect=_CONNECT_SECONDS),
        )
    except AnthropicError as error:
        raise ModelRefused(f"{_NO_KEY} {error}") from error
    if client.api_key is None and client.auth_token is None and client.credentials is None:
        raise ModelRefused(_NO_KEY)
    return client


def make_model(name: str, model: str, client: AsyncAnthropic) -> PydanticModel:
    """The model that Anthropic calls `model`."""
    theirs = AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))
    profile = cast("Mapping[str, object]", theirs.profile)
    return PydanticModel(
        name=name,
        model=theirs,
        key=KEY,
        settings=_CACHING,
        takes_temperature=not profile.get("anthropic_disallows_sampling_settings"),
        can_be_forced=can_be_forced(profile),
    )
