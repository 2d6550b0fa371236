"""The end of the road through NATS: takes slices from the stream into the store.

A message is acknowledged when what it brings is committed, or was before. One sink at a time works
for a store; whoever becomes that one starts with the first message that is still there.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NatsTimeout
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.errors import NotFoundError

from afl.kernel.errors import StoreUnavailable
from afl.logs.codec import BadBytes, unpack_slice
from afl.logs.jetstream import Names, connected, with_stream
from afl.logs.model import Slice
from afl.logs.store import LogStore

_log = logging.getLogger("afl.logs")
_BATCH = 32
_FETCH_SECONDS = 1.0
_ACK_WAIT = timedelta(seconds=30)
_MOST_UNACKED = 256
#: A slice that came before its turn comes again after this.
_AHEAD_SECONDS = 1.0
_PAUSE_SECONDS = 0.5
_STOP_SECONDS = 10.0


def _always() -> bool:
    return True


class JetStreamSink:
    """Works from `start` to `stop`, in a thread of its own."""

    def __init__(self, url: str, store: LogStore, leads: Callable[[], bool] = _always) -> None:
        """
        Args:
            leads: whether this is the one that works; asked about once a second.
        """
        self._url = url
        self._store = store
        self._leads = leads
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="afl-log-sink", daemon=True)
        self._is_lead = False
        self._asked_at = 0.0
        self.is_working = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        while not self._stopped.is_set():
            try:
                if await self._leads_now():
                    await self._session()
            except (OSError, NatsError, TimeoutError, StoreUnavailable) as e:
                _log.info("log lines do not come through NATS at the moment: %r", e)
            except Exception:  # noqa: BLE001 - whatever it is, the next session may go better
                _log.warning("the sink of log lines failed, and goes on", exc_info=True)
            self.is_working = False
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _leads_now(self) -> bool:
        now = time.monotonic()
        if not self._is_lead or now >= self._asked_at + _FETCH_SECONDS:
            self._is_lead = await asyncio.to_thread(self._leads)
            self._asked_at = now
        return self._is_lead

    async def _session(self) -> None:
        """Works as long as the connection holds."""
        client = await connected(self._url)
        try:
            names = Names(await asyncio.to_thread(self._store.home))
            js, _ = await with_stream(client, names)
            await self._work(client, js, names)
        finally:
            with suppress(NatsError, OSError):
                await client.close()

    async def _work(self, client: Client, js: JetStreamContext, names: Names) -> None:
        # a new consumer gets at once what another had in hand
        with suppress(NotFoundError):
            await js.delete_consumer(names.stream, names.consumer)
        subscription = await js.pull_subscribe(
            names.subjects,
            durable=names.consumer,
            stream=names.stream,
            config=ConsumerConfig(
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=_ACK_WAIT.total_seconds(),
                max_ack_pending=_MOST_UNACKED,
            ),
        )
        self.is_working = True
        while not self._stopped.is_set() and await self._leads_now():
            try:
                messages = await subscription.fetch(_BATCH, timeout=_FETCH_SECONDS)
            except NatsTimeout:
                # nothing to do, or the stream was lost with the disk of the server
                await js.consumer_info(names.stream, names.consumer)
                continue
            await self._take(messages)
            await client.flush()

    async def _take(self, messages: Sequence[Msg]) -> None:
        slices: list[tuple[Msg, Slice]] = []
        for message in messages:
            try:
                slices.append((message, unpack_slice(message.data)))
            except BadBytes:
                _log.exception("a message on %s is not a slice of a spool", message.subject)
                await message.term()
        if not slices:
            return
        positions = await self._append([part for _, part in slices])
        for message, part in slices:
            if part.start > positions[part.spool]:
                await message.nak(delay=_AHEAD_SECONDS)
            else:
                await message.ack()

    async def _append(self, slices: Sequence[Slice]) -> dict[str, int]:
        while True:
            try:
                return await asyncio.to_thread(self._store.append, slices)
            except StoreUnavailable:
                if self._stopped.is_set():
                    raise
                await asyncio.sleep(_PAUSE_SECONDS)
