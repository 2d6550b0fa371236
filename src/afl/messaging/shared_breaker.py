"""A circuit breaker's state in Redis: one script, and the keys that it changes.

cb:state:NAME     STRING  the breaker as JSON, for a day
cb:metrics:NAME   HASH    how many calls were admitted, refused, good, bad, slow, given up
cb:about:NAME     HASH    how it is set up, and by whom it is used, each with the last time
cb:registry       SET     the names of all breakers
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from redis.asyncio import Redis, RedisCluster
from redis.exceptions import NoScriptError, RedisError

from afl.base.clock import Clock
from afl.messaging.breaker import Admission, Breaker, BreakerState, CircuitBreakerConfig, ms
from afl.messaging.errors import CircuitBreakerUnavailable
from afl.messaging.redis.keys import KeyStyle

_log = logging.getLogger("afl.messaging")

#: Without an answer for so long, Redis is down. Then it is not asked for a while.
_ANSWER_SECONDS = 1.0
_AWAY_SECONDS = 1.0
#: How often a breaker that is used is put on the list: somebody may have emptied the server.
_LIST_SECONDS = 60.0
_ABOUT_SECONDS = 604_800
_SCRIPT = files("afl.messaging").joinpath("breaker.lua").read_bytes()
_SHA = hashlib.sha1(_SCRIPT, usedforsecurity=False).hexdigest()


class SharedBreaker:
    """One breaker as all processes see it. Everything may raise `CircuitBreakerUnavailable`."""

    def __init__(
        self,
        redis: Redis | RedisCluster,
        name: str,
        config: CircuitBreakerConfig,
        key_prefix: str,
        key_style: KeyStyle,
        clock: Clock,
        clock_offset: Callable[[], float],
    ) -> None:
        self._redis = redis
        self._name = name
        self._registry = registry_key(key_prefix)
        self._state = breaker_key("state", name, key_prefix, key_style)
        self._metrics = breaker_key("metrics", name, key_prefix, key_style)
        self._about = breaker_key("about", name, key_prefix, key_style)
        self._settings = _settings(config)
        self._config = config.model_dump_json()
        self._users: set[str] = set()
        self._clock = clock
        self._offset = clock_offset
        self._list_again_at = 0.0
        self._ask_again_at = 0.0

    def used_by(self, user: str) -> None:
        """Somebody calls through it, as those who look at it are told."""
        if user not in self._users:
            self._users.add(user)
            self._list_again_at = 0.0

    async def admit(self, permit: str) -> Admission:
        """Whether a call goes through."""
        if self._clock.monotonic() >= self._list_again_at:
            await self._list()
        admitted, state, epoch, left = await self._run("admit", permit)
        return Admission(bool(admitted), BreakerState(as_text(state)), epoch, left)

    async def settle(self, permit: str, epoch: int, *, good: bool, slow: bool) -> None:
        """What came of a call."""
        await self._run("settle", permit, epoch, good, slow)

    async def release(self, permit: str) -> None:
        """Nothing came of it."""
        await self._run("release", permit)

    async def reset(self) -> None:
        """Closes it."""
        await self._run("reset")

    async def look(self) -> tuple[Breaker, dict[str, int]]:
        """The breaker, and how many calls came to what."""
        await self._run("look")
        text = await self._command("GET", self._state)
        totals = await self._command("HGETALL", self._metrics)
        return parsed(text), {as_text(name): int(number) for name, number in totals.items()}

    async def _list(self) -> None:
        """Puts it on the list of breakers, with how it is set up and who uses it."""
        # first of all: of many calls at once, one does this
        self._list_again_at = self._clock.monotonic() + _LIST_SECONDS
        await self._command("SADD", self._registry, self._name)
        told = ["config", self._config]
        for user in sorted(self._users):
            told += [f"user:{user}", str(int(self._clock.now().timestamp()))]
        await self._command("HSET", self._about, *told)
        await self._command("EXPIRE", self._about, _ABOUT_SECONDS)

    async def _run(
        self, verb: str, permit: str = "", epoch: int = 0, good: bool = False, slow: bool = False
    ) -> Any:  # noqa: ANN401 - whatever the script answers
        words = (verb, permit, epoch, int(good), int(slow), ms(self._offset()), self._settings)
        arguments = (2, self._state, self._metrics, *words)
        try:
            return await self._command("EVALSHA", _SHA, *arguments)
        except NoScriptError:
            # a server that was restarted, or another one: it knows the script from now on
            return await self._command("EVAL", _SCRIPT, *arguments)

    async def _command(self, *words: str | bytes | int) -> Any:  # noqa: ANN401 - redis's own
        if self._clock.monotonic() < self._ask_again_at:
            raise CircuitBreakerUnavailable
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await self._redis.execute_command(*words)
        except NoScriptError:
            raise
        except (RedisError, OSError) as error:
            self._ask_again_at = self._clock.monotonic() + _AWAY_SECONDS
            self._list_again_at = 0.0
            _log.warning("The circuit breaker %s cannot reach Redis: %s", self._name, error)
            raise CircuitBreakerUnavailable from error


def breaker_key(what: str, name: str, key_prefix: str, key_style: KeyStyle) -> str:
    """Where something of a breaker is."""
    place = f"{{{name}}}" if key_style == "tagged" else name
    return f"{key_prefix.rstrip(':')}:cb:{what}:{place}"


def registry_key(key_prefix: str) -> str:
    """Where the names of all breakers are."""
    return f"{key_prefix.rstrip(':')}:cb:registry"


def as_text(value: str | bytes) -> str:
    """What Redis answers, whether the client decodes or not."""
    return value.decode() if isinstance(value, bytes) else value


def _settings(config: CircuitBreakerConfig) -> str:
    return json.dumps(
        {
            "threshold": config.failure_threshold,
            "window": ms(config.failure_window_seconds),
            "timeout": ms(config.timeout_seconds),
            "lease": ms(config.recovery_timeout_seconds),
            "probes": config.half_open_max_calls,
            "successes": config.success_threshold,
        }
    )


def parsed(text: str | bytes | None) -> Breaker:
    """A breaker as Redis keeps it."""
    if text is None:
        return Breaker()
    found = json.loads(text)
    return Breaker(
        BreakerState(found["state"]),
        int(found["epoch"]),
        int(found["since"]),
        # Lua writes an empty list as an object
        tuple(int(at) for at in found["failures"]),
        int(found["successes"]),
        tuple(sorted((id_, int(ends)) for id_, ends in dict(found["permits"]).items())),
    )
