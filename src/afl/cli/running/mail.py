"""What the commands on mailboxes and on the registry of agents share.

They need the extra `redis`, so what they work with is imported when one of them is called.
"""

from __future__ import annotations

import asyncio
import getpass
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar

import click

from afl.app.extras import mail_part
from afl.base.settings import MailPlace, Settings
from afl.cli.errors import RequestError
from afl.cli.running.connection import connected, refusals
from afl.cli.running.texts import shortened
from afl.kernel.model import Json

if TYPE_CHECKING:
    from afl.messaging.coordinator import MessageCoordinator
    from afl.messaging.models import AgentId, AgentMessage, DeadLetter

T = TypeVar("T")
_LONGEST = 60
#: By which options people give what pydantic may refuse.
_OPTIONS = {"message_id": "--id", "ttl_seconds": "--ttl"}


def address(text: str) -> AgentId:
    """The type of an address, `TYPE` or `TYPE:INSTANCE`."""
    mail_part("afl.messaging.models")
    from pydantic import ValidationError

    from afl.messaging.models import AgentId

    try:
        return AgentId.parse(text)
    except ValidationError as error:
        raise click.BadParameter(
            f"'{text}' is not an address; write TYPE or TYPE:INSTANCE, such as reviewer:2, without "
            "blanks, braces and further colons"
        ) from error


agent_argument = click.argument("agent", metavar="AGENT", type=address)


def ask(
    database: str | None,
    work: Callable[[MessageCoordinator], Awaitable[T]],
    *,
    rings: bool = False,
) -> T:
    """Has work done with the mailboxes that the settings name, which are closed afterwards.

    Mailboxes in Redis need no database.

    Args:
        rings: tell who waits at once that there is something. It costs a moment.
    """
    mail_part("afl.app.mailing")
    from afl.app.mailing import mailboxes, redis_mailboxes

    settings = Settings.load()
    with ExitStack() as stack:
        stack.enter_context(refusals())
        if settings.mail is MailPlace.REDIS:
            place = redis_mailboxes(settings)
        elif database is None and settings.database_url is None:
            raise RequestError(
                "there is no place for mail: set AFL_REDIS_URL, or use --database or "
                "AFL_DATABASE_URL",
                help="`export AFL_REDIS_URL=redis://host` has mailboxes in Redis",
            )
        else:
            services = stack.enter_context(connected(database, rings=rings))
            place = mailboxes(services, settings)

        async def do() -> T:
            async with place as coordinator:
                return await work(coordinator)

        return asyncio.run(do())


def user_address() -> AgentId:
    """Whoever runs the command."""
    name = re.sub(r"[:{}\s]", "-", getpass.getuser())
    return address(f"person:{name}")


def field_value(text: str) -> Json:
    """What a text on the command line means in a payload, which has no types."""
    try:
        value: Json = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value


def composed(*, priority: str, **fields: object) -> AgentMessage:
    """A message of these fields."""
    from pydantic import ValidationError

    from afl.messaging.models import AgentMessage, MessagePriority

    try:
        return AgentMessage.model_validate(
            {**fields, "priority": MessagePriority[priority.upper()]}
        )
    except ValidationError as error:
        wrong = "; ".join(f"{_option(each['loc'][0])}: {each['msg']}" for each in error.errors())
        raise RequestError(f"this is no message: {wrong}") from error


def _option(field: int | str) -> str:
    return _OPTIONS.get(str(field), str(field))


def short_payload(message: AgentMessage) -> str:
    """What a message says, cut if it is long."""
    return shortened(json.dumps(message.payload, ensure_ascii=False), _LONGEST)


def message_json(message: AgentMessage) -> dict[str, Json]:
    """A message as JSON, with addresses as people write them."""
    written: dict[str, Json] = message.model_dump(mode="json")
    addresses: dict[str, Json] = {
        "sender": str(message.sender),
        "recipient": str(message.recipient),
        "reply_to": None if message.reply_to is None else str(message.reply_to),
    }
    return {**written, **addresses, "priority": message.priority.name.lower()}


def letter_json(letter: DeadLetter) -> dict[str, Json]:
    """A dead letter as JSON."""
    queued = letter.queue_message
    return {
        "message": message_json(queued.message),
        "reason": letter.reason,
        "at": letter.at,
        "enqueued_at": queued.enqueued_at,
        "attempts": queued.delivery_attempts,
        "last_error": queued.last_error,
    }
