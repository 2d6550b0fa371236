"""Mail in this process, on an event loop of its own: what flows and turns send, what they are
answered, and messages that start turns.

Needs the extra `redis`; `serving` loads it when somebody wants it. Mailboxes that do not answer
stop nobody but those who send: they are tried again and again.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from datetime import timedelta

from afl.app.mailing import mailboxes
from afl.app.services import Services
from afl.base.errors import AflError
from afl.base.settings import Settings
from afl.bridges.mail_desk import MailDesk
from afl.bridges.mail_messages import MailFailure
from afl.bridges.mail_room import MailRoom, Outage, answers_address
from afl.bridges.turn_stores import turn_store
from afl.messaging.coordinator import MessageCoordinator
from afl.messaging.errors import MessageRefused
from afl.messaging.models import AgentId, AgentMessage
from afl.turns.worker import TurnWorker, TurnWorkerConfig

#: How long who sends waits for mailboxes, and how long one message may take.
_CONNECT_SECONDS, _SEND_SECONDS = 5.0, 20.0
_SLOTS = 50


@dataclass(frozen=True, slots=True)
class MailOptions:
    """What is received, and how a worker that serves nothing else is known."""

    #: the agents whose messages start turns here; None: turns are not served in this process
    targets: tuple[str, ...] | None
    lists: tuple[str, ...] = ("default",)
    lease: timedelta = timedelta(seconds=30)
    name: str = "afl"


class Mailroom:
    """`mail_desk.Post`, and all that is done with mail, from `start` to `stop`."""

    def __init__(self, services: Services, settings: Settings, options: MailOptions) -> None:
        """Connects to nothing."""
        self._services = services
        self._settings = settings
        self._targets = options.targets or ()
        self._store = turn_store(services.persistence)
        self._answers: AgentId | None = None
        #: for the turn worker of this process
        self.desk = MailDesk(self._store, self, services.doorbell.ring)
        self.worker = None if options.targets is not None else self._own_worker(options)
        self._outage = Outage("the mailboxes do not answer")
        self._mail: MessageCoordinator | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serving: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="afl-mailroom", daemon=True)

    def _own_worker(self, options: MailOptions) -> TurnWorker:
        seconds = options.lease.total_seconds()
        config = TurnWorkerConfig(
            slots=_SLOTS,
            targets=(),
            lists=options.lists,
            lease_seconds=seconds,
            renew_seconds=seconds / 3,
            group=options.name,
            service=f"{options.name}-mail",
        )
        return TurnWorker(self.desk, config, self._services.doorbell)

    # Its life

    def start(self) -> None:
        """Begins to receive, and to serve if no turn worker does."""
        self._thread.start()
        self._is_up.wait()
        if self.worker is not None:
            self.worker.start()

    def stop(self, timeout: timedelta) -> bool:
        """Ends; tells whether nothing had to be cut short. Whoever uses the desk ends before."""
        finished = self.worker is None or self.worker.drain(timeout.total_seconds())
        if self._loop is not None and self._serving is not None:
            self._loop.call_soon_threadsafe(self._serving.cancel)
            self._thread.join()
        return finished

    # For other threads and loops

    async def send(self, message: AgentMessage) -> str:
        assert self._loop is not None, "it has not been started"
        # cancelling this cancels what the other loop does
        return await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(self._send(message), self._loop)
        )

    def answers(self) -> AgentId:
        if self._answers is None:
            self._answers = answers_address(self._store.kernel)
        return self._answers

    # In its own thread

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            self._serving = self._loop.create_task(self._serve())
            self._is_up.set()
            runner.run(self._until_ended(self._serving))

    async def _until_ended(self, serving: asyncio.Task[None]) -> None:
        await asyncio.wait([serving])

    async def _serve(self) -> None:
        while True:
            try:
                await self._receive()
            except Exception as error:  # noqa: BLE001 - whatever it is, mail is received again
                wait_seconds = self._outage.failed(error)
            await asyncio.sleep(wait_seconds)

    async def _receive(self) -> None:
        """Until something is wrong that the mailroom itself cannot wait for."""
        async with mailboxes(self._services, self._settings) as mail:
            answers = await asyncio.to_thread(self.answers)
            doorbell = self._services.doorbell
            room = MailRoom(mail, self._store, doorbell, answers, self._targets, self._outage)
            self._mail = mail
            self._connected.set()
            try:
                await room.run()
            finally:
                self._connected.clear()
                self._mail = None

    async def _send(self, message: AgentMessage) -> str:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self._connected.wait()
            assert self._mail is not None
            async with asyncio.timeout(_SEND_SECONDS):
                result = await self._mail.send_message(message.sender, message.recipient, message)
        except MessageRefused as error:
            raise MailFailure("BadMessage", error.message) from error
        except (AflError, TimeoutError) as error:
            raise MailFailure(
                "MailUnavailable",
                f"The mailboxes do not answer{_because(error)}. Start the Redis of AFL_REDIS_URL "
                "or the database, and look at `afl doctor`.",
                permanent=False,
            ) from error
        if not result.delivered:
            raise MailFailure(
                "MailboxFull",
                f"The mailbox of {message.recipient} is full. Let somebody receive there, then "
                f"try again; `afl mail peek {message.recipient}` shows what is in it.",
                permanent=False,
            )
        return result.message_id


def _because(error: Exception) -> str:
    return f": {str(error).rstrip('.')}" if str(error) else ""
