"""Breakers before models and facets: their names, their waits, and what counts."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from afl.bridges.breakers import (
    GuardedModels,
    OwnBreakers,
    kept_name,
    shown_name,
    wait_of,
)
from afl.bridges.facet_guard import config_of
from afl.messaging.breaker import CircuitBreakerConfig
from afl.messaging.errors import CircuitBreakerOpenError
from afl.messaging.memory_breaker import MemoryBreakers
from afl.runtime.guarding import BreakerWish
from afl.testing.clock import VirtualClock
from afl.turns.errors import ModelBusy, ModelFailure, ModelRefused, ProviderDown
from afl.turns.model import ModelRequest, Reply, Usage
from afl.turns.models.registry import ModelConfig, Registry
from afl.turns.ports import Listener

CONFIG = CircuitBreakerConfig(failure_threshold=2, timeout_seconds=40)


@pytest.mark.parametrize(
    "name", ["facet/billing.Pay", "model/openai@127.0.0.1:8000/v1", "service/a b:{c}%"]
)
def test_every_name_can_be_kept(name: str) -> None:
    assert not set(":{} ") & set(kept_name(name))
    assert shown_name(kept_name(name)) == name


def test_who_is_refused_comes_back_when_the_breaker_may_be_probed() -> None:
    error = CircuitBreakerOpenError("x", state="open", retry_after=7)
    assert wait_of(error, CONFIG, lambda: 0.0) == timedelta(seconds=7)
    assert wait_of(error, CONFIG, lambda: 1.0) == timedelta(seconds=11)


def test_who_finds_no_room_to_probe_comes_back_sooner_than_a_lost_probe_ends() -> None:
    error = CircuitBreakerOpenError("x", state="half_open", retry_after=300)
    assert wait_of(error, CONFIG, lambda: 1.0) == timedelta(seconds=10)
    assert wait_of(error, CONFIG, lambda: 0.0) == timedelta(seconds=5)
    short = CircuitBreakerConfig(timeout_seconds=1)
    assert wait_of(error, short, lambda: 1.0) == timedelta(seconds=1)


def test_a_policy_without_arguments_is_the_usual_breaker() -> None:
    # the numbers are those of the policy, which the runtime's tests compare with what it asks for
    wish = BreakerWish("n", "f", 5, timedelta(minutes=5), timedelta(minutes=1), 3)
    assert config_of(wish) == CircuitBreakerConfig()


def test_every_policy_that_the_checker_takes_makes_a_breaker() -> None:
    hour, ms = timedelta(hours=1), timedelta(milliseconds=1)
    widest = config_of(BreakerWish("n", "f", 100, hour * 24, hour, 20, ms))
    assert (widest.recovery_timeout_seconds, widest.slow_call_seconds) == (7200, 0.001)
    second = timedelta(seconds=1)
    assert config_of(BreakerWish("n", "f", 1, second, second, 1)).success_threshold == 1


class Provider:
    """A model that fails as it is told, and counts."""

    def __init__(self) -> None:
        self.failure: ModelFailure | None = None
        self.asked = 0

    def find(self, name: str) -> Provider:
        return self

    def endpoint(self, name: str) -> str | None:
        return None if name.startswith("scripted:") else "x@y"

    async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return Reply((), "stop", "x:1", Usage())


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.provider = Provider()
        own = OwnBreakers(MemoryBreakers(self.clock))
        self.models = GuardedModels(self.provider, own, CONFIG, "turns")

    def ask(self, failure: ModelFailure | None, name: str = "x:1") -> type[Exception] | None:
        """What asking comes to, when the provider fails like this."""
        self.provider.failure = failure
        try:
            asyncio.run(self.models.find(name).ask(ModelRequest("", (), (), max_tokens=1)))
        except ModelFailure as error:
            return type(error)
        return None


OUTAGE = ModelBusy("503", is_outage=True)


def test_a_provider_that_is_down_is_not_asked_until_it_may_be_probed() -> None:
    world = World()
    assert [world.ask(OUTAGE), world.ask(OUTAGE)] == [ModelBusy, ModelBusy]
    assert world.ask(None) is ProviderDown
    assert world.ask(None, "x:another model of it") is ProviderDown
    assert world.provider.asked == 2
    world.clock.advance(timedelta(seconds=41))
    assert [world.ask(None), world.ask(None), world.ask(OUTAGE), world.ask(None)] == [
        None,
        None,
        ModelBusy,
        None,
    ]


@pytest.mark.parametrize("failure", [ModelBusy("429"), ModelRefused("401")], ids=["limit", "key"])
def test_what_is_no_outage_opens_nothing(failure: ModelFailure) -> None:
    world = World()
    for _ in range(5):
        assert world.ask(failure) is type(failure)
    assert world.ask(None) is None


def test_a_model_that_follows_a_script_has_no_breaker() -> None:
    world = World()
    for _ in range(5):
        assert world.ask(OUTAGE, "scripted:x") is ModelBusy


def test_models_of_one_endpoint_are_down_together() -> None:
    config = ModelConfig(anthropic_url="http://user:pass@gate:1/a/", anthropic_key="k")
    registry = Registry(config)
    assert registry.endpoint("anthropic:one") == "anthropic@gate:1/a"
    assert registry.endpoint("anthropic:two") == "anthropic@gate:1/a"
    assert registry.endpoint("openai@http://host:8000/v1:qwen3:8b") == "openai@host:8000/v1"
    asyncio.run(registry.close())
