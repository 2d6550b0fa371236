"""All circuit breakers of a Redis, as somebody sees them who does not call through them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from redis.asyncio import Redis, RedisCluster

from afl.base.system import SystemClock
from afl.messaging.breaker import Breaker, BreakerState, CircuitBreakerConfig, ms, seen_at
from afl.messaging.redis.keys import KeyStyle
from afl.messaging.shared_breaker import (
    SharedBreaker,
    as_text,
    breaker_key,
    parsed,
    registry_key,
)

_USER = "user:"
#: The clock of the server that has a key; a plain TIME may ask another one of a cluster.
_TIME = "return redis.call('TIME')"


@dataclass(frozen=True, slots=True)
class ListedBreaker:
    """One breaker, its set-up, and who uses it."""

    name: str
    state: BreakerState
    since: datetime
    #: failures in a row, successes of probes, and how many probe now
    failures: int
    successes: int
    probing: int
    #: when it lets calls probe; None if it is not open
    until: datetime | None
    config: CircuitBreakerConfig
    #: calls since the counting began, by what came of them
    totals: Mapping[str, int]
    #: who calls through it, and when it was last heard of
    users: Mapping[str, datetime]


async def listed_breakers(
    redis: Redis | RedisCluster, key_prefix: str = "ao", key_style: KeyStyle = "plain"
) -> list[ListedBreaker]:
    """All that were ever called, by name. Looking changes none of them."""
    names = await redis.execute_command("SMEMBERS", registry_key(key_prefix))
    found = []
    for name in sorted(map(as_text, names)):
        keys = {
            what: breaker_key(what, name, key_prefix, key_style)
            for what in ("state", "about", "metrics")
        }
        text = await redis.execute_command("GET", keys["state"])
        about = _texts(await redis.execute_command("HGETALL", keys["about"]))
        totals = _texts(await redis.execute_command("HGETALL", keys["metrics"]))
        seconds, micros = await redis.execute_command("EVAL", _TIME, 1, keys["state"])
        now = int(seconds) * 1000 + int(micros) // 1000
        found.append(
            _listed(name, parsed(text) if text else Breaker(since=now), about, totals, now)
        )
    return found


async def reset_breaker(
    redis: Redis | RedisCluster, name: str, key_prefix: str = "ao", key_style: KeyStyle = "plain"
) -> None:
    """Closes a breaker, for everybody."""
    config = CircuitBreakerConfig()
    clock = SystemClock()
    kept = SharedBreaker(redis, name, config, key_prefix, key_style, clock, lambda: 0.0)
    await kept.reset()


def _listed(
    name: str, kept: Breaker, about: Mapping[str, str], totals: Mapping[str, str], now: int
) -> ListedBreaker:
    config = CircuitBreakerConfig()
    if "config" in about:
        config = CircuitBreakerConfig.model_validate_json(about["config"])
    breaker = seen_at(kept, config, now)
    until = None
    if breaker.state is BreakerState.OPEN:
        until = _moment(breaker.since + ms(config.timeout_seconds))
    users = {
        key.removeprefix(_USER): datetime.fromtimestamp(int(at), UTC)
        for key, at in sorted(about.items())
        if key.startswith(_USER)
    }
    return ListedBreaker(
        name=name,
        state=breaker.state,
        since=_moment(breaker.since),
        failures=len(breaker.failures),
        successes=breaker.successes,
        probing=len(breaker.permits),
        until=until,
        config=config,
        totals={what: int(number) for what, number in sorted(totals.items())},
        users=users,
    )


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def _texts(found: Mapping[str | bytes, str | bytes]) -> dict[str, str]:
    return {as_text(key): as_text(value) for key, value in found.items()}
