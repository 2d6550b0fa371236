"""Circuit breakers before models and before facets: what turns and workers ask of `messaging`.

Names of breakers say what they protect:

    model/anthropic@api.anthropic.com   a provider of models, where it is asked
    facet/billing.Charge                a facet with `Breaker`
    service/payments                    what several facets call: `Breaker(service = "payments")`
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from urllib.parse import quote, unquote

from afl.messaging.breaker import BreakerState, CircuitBreakerConfig
from afl.messaging.breaker_calls import BreakerCalls
from afl.messaging.errors import CircuitBreakerOpenError
from afl.messaging.memory_breaker import MemoryBreakers, MemoryCircuitBreaker
from afl.turns.errors import ModelBusy, ProviderDown
from afl.turns.model import ModelRequest, Reply
from afl.turns.ports import Listener, Model, Models

#: Those who find a breaker half open, and no room to probe, come back after a part of the time that
#: it was closed for, within these bounds: by then the probes may have decided.
_PROBED_PART = 4
_SOONEST, _LATEST = timedelta(seconds=1), timedelta(seconds=30)
#: Those who were refused together come back one after the other, within such a part of the time.
_SPREAD = 0.1
_MODEL = "model/"

Counts = Callable[[Exception], bool]


class Breakers(Protocol):
    """Breakers by name, in one event loop."""

    async def get(
        self, name: str, config: CircuitBreakerConfig, counts: Counts, user: str
    ) -> BreakerCalls:
        """The breaker of this name. `user` is told to those who look at it."""
        ...

    async def close(self) -> None:
        """Lets go of connections."""
        ...


class OwnBreakers:
    """Breakers of this process alone, in its memory."""

    def __init__(self, memory: MemoryBreakers) -> None:
        self._memory = memory

    async def get(
        self, name: str, config: CircuitBreakerConfig, counts: Counts, user: str
    ) -> BreakerCalls:
        return MemoryCircuitBreaker(self._memory, name, config, counts=counts)

    async def close(self) -> None:
        """There is nothing to let go of."""


class EndpointModels(Models, Protocol):
    """Models, and where they are asked."""

    def endpoint(self, name: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class GuardedModels:
    """`ports.Models`, each behind the breaker of its provider."""

    models: EndpointModels
    breakers: Breakers
    config: CircuitBreakerConfig
    #: who asks, for those who look at the breaker
    user: str

    def find(self, name: str) -> Model:
        model = self.models.find(name)
        endpoint = self.models.endpoint(name)
        if endpoint is None:
            return model
        return _GuardedModel(model, name, f"{_MODEL}{endpoint}", self)


@dataclass(frozen=True, slots=True)
class _GuardedModel:
    """A model that is not asked while its provider is down."""

    model: Model
    name: str
    breaker: str
    guard: GuardedModels

    async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
        guard = self.guard
        breaker = await guard.breakers.get(
            kept_name(self.breaker), guard.config, is_outage, guard.user
        )
        try:
            return await breaker.call(self.model.ask, request, listener)
        except CircuitBreakerOpenError as error:
            wait = wait_of(error, guard.config)
            raise ProviderDown(
                f"{self.name} was not asked: the breaker {self.breaker} is open, since its "
                "provider failed too often",
                breaker=self.breaker,
                after=wait,
            ) from error


def is_outage(error: Exception) -> bool:
    """Whether a failure of a model counts: what is wrong with us, or a limit that we have reached,
    says nothing about the provider."""
    return isinstance(error, ModelBusy) and error.is_outage


def wait_of(
    error: CircuitBreakerOpenError,
    config: CircuitBreakerConfig,
    chance: Callable[[], float] = random.random,
) -> timedelta:
    """How long whoever was refused waits before it asks again."""
    whole = timedelta(seconds=config.timeout_seconds)
    if error.state == BreakerState.HALF_OPEN.value:
        part = min(max(whole / _PROBED_PART, _SOONEST), _LATEST)
        return part * (0.5 + chance() / 2)
    return timedelta(seconds=error.retry_after) + whole * (_SPREAD * chance())


def kept_name(name: str) -> str:
    """The name of a breaker as it is kept: without colons, braces and blanks."""
    return quote(name, safe="/@")


def shown_name(kept: str) -> str:
    """The name of a breaker that is kept, as people know it."""
    return unquote(kept)


async def settled(outcome: asyncio.Future[bool | None]) -> None:
    """Waits for what comes of an attempt that is made elsewhere, and raises what stands for it."""
    good = await outcome
    if good is None:
        raise NothingToCount
    if not good:
        raise AttemptFailed


class AttemptFailed(Exception):
    """An attempt has failed, and that counts."""


class NothingToCount(Exception):
    """What came of an attempt says nothing."""
