"""The settings that all processes share, in a hash with a version.

On one server the scripts read the hash itself. In a cluster each mailbox has a copy in its slot: a
new mailbox takes one, and `change` brings all of them up to date. An older version never replaces a
newer one, and who takes a copy looks afterwards whether it was still the newest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import ValidationError
from redis.asyncio import Redis, RedisCluster
from redis.exceptions import RedisError

from afl.messaging.errors import MessageRefused
from afl.messaging.models import CoordinatorConfig
from afl.messaging.redis.cancelling import Heeded
from afl.messaging.redis.keys import KeySpace, Mailbox
from afl.messaging.redis.packing import Text, text_of
from afl.messaging.redis.scripts import Argument, ScriptRunner, refusal

_Pairs = list[str]


class SharedSettings:
    """Reads and changes them."""

    def __init__(self, redis: Redis | RedisCluster, scripts: ScriptRunner, keys: KeySpace) -> None:
        self._redis = redis
        self._scripts = scripts
        self._keys = keys
        self._shared = Mailbox(bell="", named={"config": keys.config.encode()})

    async def read(self) -> CoordinatorConfig:
        return _config(await self._configure([]))

    async def change(self, changes: Mapping[str, object]) -> None:
        """Changes what is named.

        Raises:
            MessageRefused: a value is impossible; nothing has changed.
        """
        try:
            CoordinatorConfig.model_validate(changes)
        except ValidationError as error:
            problems = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in error.errors())
            raise MessageRefused(f"These settings are impossible: {problems}.") from error
        pairs = await self._configure([*_flat(changes)])
        if self._keys.style == "tagged":
            for mailbox in await self.mailboxes("config"):
                await self._adopt(mailbox, pairs)

    async def introduce(self, mailbox: Mailbox) -> None:
        """Gives settings to a mailbox that has none."""
        pairs = await self._configure([])
        while self._keys.style == "tagged":
            await self._adopt(mailbox, pairs)
            now = await self._configure([])
            if now == pairs:
                return
            pairs = now

    async def mailboxes(self, name: str) -> list[Mailbox]:
        """Those that have something under a key of this name, on all servers."""
        try:
            with Heeded():
                await self._scripts.prepare()
                return [
                    self._keys.mailbox_of(text_of(key))
                    async for key in self._redis.scan_iter(match=self._keys.every(name), count=1000)
                ]
        except (RedisError, OSError) as error:
            raise refusal(error) from error

    async def _configure(self, changed: _Pairs) -> _Pairs:
        args: list[Argument] = [0, len(changed), *changed]
        args += _flat(CoordinatorConfig().model_dump())
        answer: list[Text] | dict[Text, Text] = await self._scripts.run(
            "configure", self._shared, args
        )
        flat = answer if isinstance(answer, list) else [each for p in answer.items() for each in p]
        return [text_of(each) for each in flat]

    async def _adopt(self, mailbox: Mailbox, pairs: _Pairs) -> None:
        await self._scripts.run("adopt", mailbox, [0, _config(pairs).version, *pairs])


def _flat(settings: Mapping[str, object]) -> Iterator[str]:
    for name, value in settings.items():
        yield from (name, str(value))


def _config(pairs: _Pairs) -> CoordinatorConfig:
    return CoordinatorConfig.model_validate(dict(zip(pairs[::2], pairs[1::2], strict=True)))
