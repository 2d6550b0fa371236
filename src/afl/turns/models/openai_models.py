"""Models of OpenAI, and of servers that speak like it, by the chat-completions API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from openai import AsyncOpenAI, OpenAIError, Timeout
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings

from afl.turns.errors import ModelRefused
from afl.turns.models.pydantic_model import PydanticModel, can_be_forced

KEY = "OPENAI_API_KEY"

_CONNECT_SECONDS = 10.0
#: What servers without keys are given: the client insists on one, and OpenAI's is not for them.
_NO_KEY = "none"


def make_client(url: str | None, key: str | None, timeout_seconds: float) -> AsyncOpenAI:
    """A client that never retries. Without a URL or key, the library looks for its own variables.

    Raises:
        ModelRefused: there is no key anywhere.
    """
    try:
        return AsyncOpenAI(
            base_url=url,
            api_key=key,
            max_retries=0,
            timeout=Timeout(timeout_seconds, connect=_CONNECT_SECONDS),
        )
    except OpenAIError as error:
        raise ModelRefused(f"There is no key for OpenAI's models: set {KEY}.") from error


def make_compatible_client(url: str, key: str | None, timeout_seconds: float) -> AsyncOpenAI:
    """A client for another server. It never sees the key of OpenAI."""
    return make_client(url, key or _NO_KEY, timeout_seconds)


def make_model(name: str, model: str, client: AsyncOpenAI) -> PydanticModel:
    """The model that OpenAI calls `model`."""
    theirs = OpenAIChatModel(
        model,
        provider=OpenAIProvider(openai_client=client),
        profile=OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True),
    )
    return _model(name, theirs, KEY)


def make_compatible_model(
    name: str, model: str, client: AsyncOpenAI, endpoint: str
) -> PydanticModel:
    """The model that another server calls `model`."""
    theirs = OpenAIChatModel(
        model,
        provider=OpenAICompatibleProvider(endpoint, openai_client=client),
        profile=OpenAIModelProfile(
            openai_chat_streaming_requires_finish_reason=True,
            # the older of the two names is the one that all of them know
            openai_chat_supports_max_completion_tokens=False,
        ),
    )
    return _model(name, theirs, f"the key of {endpoint}")


def _model(name: str, theirs: OpenAIChatModel, key: str) -> PydanticModel:
    profile = cast("Mapping[str, object]", theirs.profile)
    return PydanticModel(
        name=name,
        model=theirs,
        key=key,
        settings=ModelSettings(),
        takes_temperature=_takes_temperature(profile),
        can_be_forced=can_be_forced(profile),
    )


def _takes_temperature(profile: Mapping[str, object]) -> bool:
    # a model that reasons takes none, unless it can leave reasoning off and does so by default
    if not profile.get("openai_supports_reasoning"):
        return True
    efforts = profile.get("openai_reasoning_efforts")
    can_be_off = (
        bool(profile.get("openai_supports_reasoning_effort_none"))
        if efforts is None
        else "none" in cast("tuple[str, ...]", efforts)
    )
    return can_be_off and not profile.get("thinking_enabled_by_default")
