"""The other end of a live feed through NATS. Needs the extra `nats`.

One background thread runs the client. It hears the subjects of agents in whose turns somebody
listens, and no others.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import suppress

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from afl.turns.chunks import read_chunk
from afl.turns.feed import Hearers, chunk_subject
from afl.turns.nats_feed import RECAP, connected
from afl.turns.ports import Hear

_CLOSE_SECONDS = 5.0
_CANCEL_SECONDS = 1.0


class NatsEar:
    """Hears what models say in other processes, from feeds with the same prefix."""

    def __init__(self, url: str, prefix: str = "") -> None:
        self._prefix = prefix
        self._hearers = Hearers()
        self._loop = asyncio.new_event_loop()
        self._client = Client()
        self._thread = threading.Thread(target=self._run, args=(url,), name="afl-ear", daemon=True)
        self._thread.start()

    def listen(self, agent: str, turn: str, hear: Hear) -> Callable[[], None]:
        forget = self._hearers.add(turn, hear)
        attending = asyncio.run_coroutine_threadsafe(self._attend(agent, turn), self._loop)

        def stop() -> None:
            forget()
            attending.cancel()

        return stop

    def close(self) -> None:
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._disconnect(), self._loop).result(_CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    def _run(self, url: str) -> None:
        asyncio.set_event_loop(self._loop)
        self._connecting = self._loop.create_task(connected(self._client, url))
        self._loop.run_forever()

    async def _attend(self, agent: str, turn: str) -> None:
        """Hears a turn until it is canceled."""
        id_ = turn.encode()

        async def heard(message: Msg) -> None:
            # a facet may have many turns at once: those of others are not even parsed
            if id_ in message.data and (chunk := read_chunk(json.loads(message.data))) is not None:
                self._hearers.tell(chunk)

        await asyncio.shield(self._connecting)
        inbox = self._client.new_inbox()
        subjects = (self._prefix + chunk_subject(agent), inbox)
        heard_on = [await self._client.subscribe(subject, cb=heard) for subject in subjects]
        try:
            await self._client.publish(self._prefix + RECAP, id_, reply=inbox)
            await self._loop.create_future()
        finally:
            with suppress(NatsError):
                for each in heard_on:
                    await each.unsubscribe()

    async def _disconnect(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=_CANCEL_SECONDS)
        await self._client.close()
