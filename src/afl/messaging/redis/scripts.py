"""Loads the scripts and runs them.

The first lines of a script say which keys it uses, by their names in `keys`, and which fragments
(the files that begin with `_`) come before it. In the script a key has its name in capitals.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Protocol

from redis.exceptions import (
    ClusterCrossSlotError,
    MaxConnectionsError,
    NoScriptError,
    RedisClusterException,
    RedisError,
    ResponseError,
)
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
)
from redis.exceptions import (
    TimeoutError as RedisTimeoutError,
)

from afl.messaging.errors import MessageCoordinatorError, MessageRefused
from afl.messaging.redis.cancelling import Heeded
from afl.messaging.redis.keys import Mailbox

_UNREACHABLE = (RedisConnectionError, RedisTimeoutError, RedisClusterException, OSError)

#: What a client can send.
Argument = str | bytes | int | float

#: Half of the connections that a client has unless it is told otherwise.
_AT_ONCE = 50


class Commands(Protocol):
    """What is needed of a client: `redis.asyncio.Redis` and `RedisCluster` have it."""

    def execute_command(self, *args: Any) -> Awaitable[Any]: ...  # noqa: ANN401 - redis's own
    def initialize(self) -> Awaitable[Any]: ...


@dataclass(frozen=True, slots=True)
class Script:
    """One operation."""

    name: str
    keys: tuple[str, ...]
    text: bytes
    sha: str


def _load() -> Mapping[str, Script]:
    folder = files("afl.messaging.redis").joinpath("lua")
    sources = {
        each.name.removesuffix(".lua"): each.read_text(encoding="utf-8")
        for each in folder.iterdir()
        if each.name.endswith(".lua")
    }
    return {
        name: _compose(name, source, sources)
        for name, source in sources.items()
        if not name.startswith("_")
    }


def _compose(name: str, source: str, sources: Mapping[str, str]) -> Script:
    keys = _listed(source, "keys")
    parts = [f"local {key.upper()} = KEYS[{place}]\n" for place, key in enumerate(keys, 1)]
    parts += [sources[f"_{fragment}"] for fragment in _listed(source, "uses")]
    text = "".join([*parts, source]).encode()
    return Script(name, tuple(keys), text, hashlib.sha1(text, usedforsecurity=False).hexdigest())


def _listed(source: str, head: str) -> list[str]:
    for line in source.splitlines():
        if line.startswith(f"-- {head}: "):
            return line.removeprefix(f"-- {head}: ").split()
    return []


SCRIPTS = _load()


class ScriptRunner:
    """Runs scripts on a server or a cluster."""

    def __init__(self, redis: Commands) -> None:
        self._redis = redis
        self._initialized = False
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def prepare(self) -> None:
        """Lets the client of a cluster learn the slots; before, it sends commands anywhere."""
        await self._redis.initialize()
        self._initialized = True

    async def run(self, name: str, mailbox: Mailbox, args: Sequence[Argument]) -> Any:  # noqa: ANN401
        """Runs one, again if its answer is lost.

        Raises:
            MessageCoordinatorError: Redis cannot be reached, or refuses.
        """
        script = SCRIPTS[name]
        keys = mailbox.keys_of(name, script.keys)
        try:
            with Heeded():
                async with self._turns:
                    try:
                        return await self._evaluate(script, keys, args)
                    except (RedisConnectionError, RedisTimeoutError):
                        # once more: every operation tells a repeat from a second wish
                        return await self._evaluate(script, keys, args)
        except (RedisError, OSError) as error:
            raise refusal(error) from error

    async def _evaluate(
        self, script: Script, keys: tuple[bytes, ...], args: Sequence[Argument]
    ) -> Any:  # noqa: ANN401
        if not self._initialized:
            await self.prepare()
        command = self._redis.execute_command
        try:
            return await command("EVALSHA", script.sha, len(keys), *keys, *args)
        except NoScriptError:
            # a server that was restarted, or another one: it knows the script from now on
            return await command("EVAL", script.text, len(keys), *keys, *args)


def refusal(error: Exception) -> MessageCoordinatorError:
    """What an error of Redis means to who wanted something of a mailbox, and what to do."""
    if isinstance(error, MaxConnectionsError):
        return MessageCoordinatorError(
            f"The Redis client has no connection left ({error}). Give it a larger max_connections,"
            " or a BlockingConnectionPool, and do this again."
        )
    if isinstance(error, ClusterCrossSlotError) or "key slot" in str(error):
        return MessageRefused(
            f"The Redis Cluster refused: {error}. The keys of a mailbox must be in one slot: give"
            " the coordinator key_style='tagged'."
        )
    if isinstance(error, _UNREACHABLE):
        return MessageCoordinatorError(
            f"Redis cannot be reached ({error}). It is not known whether this was done; do it again"
            " when Redis is back: a message with the same message_id is not sent twice, and what"
            " was received and not acknowledged comes again after its visibility timeout."
        )
    if isinstance(error, ResponseError):
        return MessageCoordinatorError(
            f"Redis refused: {error}. Look at its memory limit, its role (not a read-only replica)"
            " and the user's permissions for EVALSHA, EVAL and PUBLISH."
        )
    return MessageCoordinatorError(f"Redis failed: {error}. Do it again when Redis is well.")
