"""Mailboxes in Redis, on one server or in a cluster. Needs the extra `redis`.

Every operation is one script, so that no crash and no other client can come between its steps.
Redis writes to the disk when it is configured to, and replicates after it has answered: mailboxes
are as durable as the Redis that they are in.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from redis.asyncio import Redis, RedisCluster

from afl.messaging.coordinator import MessageCoordinator, MessageMetrics, Settings
from afl.messaging.errors import MessageCoordinatorError, MessageRefused
from afl.messaging.letters import written
from afl.messaging.metrics import SILENT
from afl.messaging.models import (
    AgentId,
    AgentMessage,
    CoordinatorConfig,
    DeadLetter,
    FailureType,
    MailboxCounts,
    MessageResult,
    MessageSubscription,
    MessageType,
    ReceivedMessage,
)
from afl.messaging.redis.doorbell import Doorbell
from afl.messaging.redis.errands import Errands
from afl.messaging.redis.keys import KeySpace, KeyStyle, Mailbox
from afl.messaging.redis.packing import (
    microseconds,
    text_of,
    unpack,
    unpack_counts,
    unpack_dead,
    unpack_received,
)
from afl.messaging.redis.scripts import Argument, ScriptRunner
from afl.messaging.redis.settings import SharedSettings
from afl.messaging.rules import check_addresses, check_sender

#: How many messages a script moves at a time, so that no other client waits long.
_PAGE = 200
#: The keys of so many agents are kept at hand.
_KNOWN_MAILBOXES = 1000
#: ok, recovered, buried, until something is due
_RECEIVE_HEAD = 4


class RedisMessageCoordinator(MessageCoordinator):
    """Mailboxes that all processes with the same Redis and prefix share.

    The client is the caller's, who closes it. A cluster needs `key_style="tagged"`; a deployment
    must not mix the styles.
    """

    def __init__(
        self,
        redis: Redis | RedisCluster,
        key_prefix: str = "ao",
        metrics: MessageMetrics | None = None,
        key_style: KeyStyle = "plain",
        *,
        _clock_offset: Callable[[], float] = lambda: 0.0,
    ) -> None:
        if isinstance(redis, RedisCluster) and key_style != "tagged":
            raise MessageRefused("A Redis Cluster needs key_style='tagged'.")
        if key_style not in ("plain", "tagged"):
            raise MessageRefused(f"key_style is 'plain' or 'tagged', not {key_style!r}.")
        if not key_prefix.rstrip(":") or set(key_prefix) & set("{}"):
            raise MessageRefused("key_prefix must not be empty and have no braces.")
        self._keys = KeySpace(key_prefix.rstrip(":"), key_style)
        self._metrics = metrics or SILENT
        self._clock_offset = _clock_offset
        self._scripts = ScriptRunner(redis)
        self._settings = SharedSettings(redis, self._scripts, self._keys)
        self._doorbell = Doorbell(redis)
        self._mailboxes: dict[AgentId, Mailbox] = {}
        self._errands = Errands()

    async def send_message(
        self, sender: AgentId, recipient: AgentId, message: AgentMessage
    ) -> MessageResult:
        check_addresses(sender, recipient, message)
        mailbox = self._mailbox(recipient)
        ttl = "" if message.ttl_seconds is None else microseconds(message.ttl_seconds)
        body = written(message)
        args = [
            message.message_id,
            message.message_type.value,
            message.priority.value,
            microseconds(message.delay_seconds),
            ttl,
            mailbox.bell,
            body,
        ]
        try:
            (answer,) = await self._run_configured("send", mailbox, args)
        except MessageCoordinatorError:
            self._metrics.inc_delivered_error(1)
            raise
        return self._sent(message.message_id, recipient, text_of(answer))

    async def broadcast_message(
        self, sender: AgentId, message: AgentMessage, recipients: list[AgentId]
    ) -> list[MessageResult]:
        check_sender(sender, message)
        results = []
        for recipient in recipients:
            copy = message.model_copy(update={"recipient": recipient})
            try:
                results.append(await self.send_message(sender, recipient, copy))
            except MessageRefused:
                raise
            except MessageCoordinatorError as error:
                failed = MessageResult(
                    message_id=message.message_id, delivered=False, error=error.message
                )
                results.append(failed)
        return results

    def subscribe_to_messages(
        self, agent_id: AgentId, message_types: list[MessageType]
    ) -> MessageSubscription:
        if not message_types:
            raise MessageRefused("A subscription needs at least one message type.")
        made = MessageSubscription(
            subscription_id=f"sub_{secrets.token_hex(6)}",
            agent_id=agent_id,
            message_types=message_types,
        )
        types = " ".join(each.value for each in message_types)
        self._send_out("subscribe", agent_id, [made.subscription_id, types])
        return made

    def unsubscribe(self, subscription: MessageSubscription) -> None:
        agent = subscription.agent_id
        bell = self._mailbox(agent).bell
        self._send_out("unsubscribe", agent, [subscription.subscription_id, bell])

    async def receive(
        self, agent_id: AgentId, visibility_timeout: float = 5
    ) -> ReceivedMessage | None:
        found, _ = await self._look(self._mailbox(agent_id), 1, visibility_timeout)
        return found[0] if found else None

    async def receive_batch(
        self,
        agent_id: AgentId,
        limit: int,
        visibility_timeout: float = 5,
        *,
        wait_seconds: float = 0,
    ) -> list[ReceivedMessage]:
        mailbox = self._mailbox(agent_id)
        found, _ = await self._look(mailbox, limit, visibility_timeout)
        if found or wait_seconds <= 0 or limit < 1:
            return found
        loop = asyncio.get_running_loop()
        end = loop.time() + wait_seconds
        async with self._doorbell.waiter(mailbox.bell) as waiter:
            while True:
                found, due = await self._look(mailbox, limit, visibility_timeout)
                waiter.found = bool(found)
                left = end - loop.time()
                if found or left <= 0:
                    return found
                await waiter.wait(left if due is None else min(left, due))

    async def ack(self, agent_id: AgentId, token: str) -> bool:
        return bool(await self._run("ack", self._mailbox(agent_id), [token, _mark(token)]))

    async def nack(
        self,
        agent_id: AgentId,
        token: str,
        failure: FailureType = FailureType.TRANSIENT,
        error: str | None = None,
    ) -> bool:
        mailbox = self._mailbox(agent_id)
        # the jitter of backoffs needs no secret
        args = [token, _mark(token), failure.value, random.random(), mailbox.bell]
        if error is not None:
            args.append(error)
        outcome, *backoff = await self._run_configured("nack", mailbox, args)
        return self._nacked(text_of(outcome), [float(each) / 1e6 for each in backoff])

    async def extend(self, agent_id: AgentId, token: str, visibility_timeout: float) -> bool:
        args: list[Argument] = [token, _visibility(visibility_timeout)]
        return bool(await self._run("extend", self._mailbox(agent_id), args))

    async def recover_pending(self, agent_id: AgentId | None = None) -> int:
        if agent_id is None:
            overdue = {
                each.bell: each
                for name in ("deadlines", "expiries")
                for each in await self._settings.mailboxes(name)
            }
            mailboxes = list(overdue.values())
        else:
            mailboxes = [self._mailbox(agent_id)]
        total = 0
        for mailbox in mailboxes:
            moved = -1
            while moved:
                _, recovered, buried = await self._run_configured(
                    "recover", mailbox, [mailbox.bell]
                )
                self._buried(buried)
                total += recovered
                moved = recovered + buried
        return total

    async def _change(self, settings: Settings) -> None:
        await self._settings.change(settings)

    async def config(self) -> CoordinatorConfig:
        return await self._settings.read()

    async def peek(self, agent_id: AgentId, limit: int = 10) -> list[AgentMessage]:
        return [unpack(each) for each in await self._run("peek", self._mailbox(agent_id), [limit])]

    async def counts(self, agent_id: AgentId) -> MailboxCounts:
        return unpack_counts(await self._run("counts", self._mailbox(agent_id), []))

    async def dead_letters(self, agent_id: AgentId, limit: int = 100) -> list[DeadLetter]:
        if limit < 1:
            return []
        return unpack_dead(await self._run("dead_letters", self._mailbox(agent_id), [limit]))

    async def redrive(self, agent_id: AgentId, message_id: str | None = None) -> int:
        mailbox = self._mailbox(agent_id)
        if message_id is not None:
            _, moved = await self._run_configured("redrive", mailbox, [1, mailbox.bell, message_id])
            return int(moved)
        total, moved = 0, _PAGE
        while moved == _PAGE:
            _, moved = await self._run_configured("redrive", mailbox, [_PAGE, mailbox.bell])
            total += moved
        return total

    async def purge(self, agent_id: AgentId, message_id: str | None = None) -> int:
        mailbox = self._mailbox(agent_id)
        if message_id is not None:
            return int(await self._run("purge", mailbox, [1, message_id]))
        total, gone = 0, _PAGE
        while gone == _PAGE:
            gone = await self._run("purge", mailbox, [_PAGE])
            total += gone
        return total

    async def close(self) -> None:
        await self._errands.close()
        await self._doorbell.close()

    async def _look(
        self, mailbox: Mailbox, limit: int, visibility_timeout: float
    ) -> tuple[list[ReceivedMessage], float | None]:
        """What is there, or in how many seconds there may be something."""
        # the token is ours, so that a repeat of a lost answer finds what it has reserved
        token = f"res_{secrets.token_hex(8)}"
        args: list[Argument] = [token, limit, _visibility(visibility_timeout)]
        answer = await self._run_configured("receive", mailbox, args)
        _, _, buried, due = answer[:_RECEIVE_HEAD]
        self._buried(buried)
        found = unpack_received(answer[_RECEIVE_HEAD:])
        return found, None if due is None else float(due) / 1e6

    def _sent(self, message_id: str, recipient: AgentId, answer: str) -> MessageResult:
        if answer == "full":
            self._metrics.inc_delivered_error(1)
            error = (
                f"The mailbox of {recipient} is full. Send it again later, or raise queue_size"
                " with configure()."
            )
            return MessageResult(message_id=message_id, delivered=False, error=error)
        if answer == "sent":
            self._metrics.inc_delivered_ok(1)
        return MessageResult(message_id=message_id, delivered=True)

    def _nacked(self, outcome: str, backoffs: list[float]) -> bool:
        if outcome == "lost":
            return False
        self._metrics.inc_nacks(1)
        for backoff in backoffs:
            self._metrics.inc_retries_scheduled(1, backoff)
        self._buried(int(outcome == "dead"))
        return True

    def _buried(self, count: int) -> None:
        if count:
            self._metrics.inc_permanent(count)

    def _mailbox(self, agent: AgentId) -> Mailbox:
        known = self._mailboxes.get(agent)
        if known is None:
            if len(self._mailboxes) >= _KNOWN_MAILBOXES:
                self._mailboxes.clear()
            known = self._mailboxes[agent] = self._keys.mailbox(agent)
        return known

    async def _run_configured(self, name: str, mailbox: Mailbox, args: Sequence[Argument]) -> Any:  # noqa: ANN401
        """Runs a script that needs settings, and gives the mailbox some if it has none yet."""
        answer = await self._run(name, mailbox, args)
        while text_of(answer[0]) == "unconfigured":
            await self._settings.introduce(mailbox)
            answer = await self._run(name, mailbox, args)
        return answer

    async def _run(self, name: str, mailbox: Mailbox, args: Sequence[Argument]) -> Any:  # noqa: ANN401
        if self._errands:
            await self._errands.settle()
        offset = microseconds(self._clock_offset())
        return await self._scripts.run(name, mailbox, [offset, *args])

    def _send_out(self, name: str, agent: AgentId, args: list[Argument]) -> None:
        """Runs a script soon, and before anything else that this object does."""
        self._errands.add(lambda: self._scripts.run(name, self._mailbox(agent), [0, *args]))


def _visibility(seconds: float) -> int:
    if not seconds >= 0:
        raise MessageRefused(f"A visibility timeout is 0 seconds or more, not {seconds}.")
    return microseconds(seconds)


def _mark(token: str) -> str:
    """Tells this answer from a later one with the same token."""
    return f"{token} {secrets.token_hex(8)}"
