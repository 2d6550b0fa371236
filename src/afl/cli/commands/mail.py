"""`afl mail`: the mailboxes of agents."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from afl.base.system import SystemIds
from afl.cli.errors import CommandError
from afl.cli.framework import Command
from afl.cli.running.bulk import Change
from afl.cli.running.dead_letters import Letters, act_on, no_letter, of_letters
from afl.cli.running.groups import Group
from afl.cli.running.mail import (
    address,
    agent_argument,
    ask,
    composed,
    field_value,
    letter_json,
    message_json,
    short_payload,
    user_address,
)
from afl.cli.running.options import database_option, json_option, limit_option, pair, span
from afl.cli.running.tables import age, table
from afl.cli.running.texts import shortened
from afl.cli.running.workflows import read_object
from afl.cli.terminal import Terminal

if TYPE_CHECKING:
    from afl.messaging.coordinator import MessageCoordinator
    from afl.messaging.models import AgentId, AgentMessage, DeadLetter, MessageResult

_LONGEST = 60
_TYPES = ("event", "request", "response")
_PRIORITIES = ("low", "normal", "high")


@click.group("mail", cls=Group)
def command() -> None:
    """Send messages to agents, and look after their mailboxes.

    An agent is TYPE or TYPE:INSTANCE. Each command takes --json.
    """


@command.command("send", cls=Command)
@click.argument("agent", metavar="TO", type=address)
@click.option(
    "-i",
    "--input",
    "pairs",
    type=pair,
    metavar="NAME=VALUE",
    multiple=True,
    help="One field of the payload; JSON if it is, else a text.",
)
@click.option(
    "--inputs",
    "inputs_file",
    metavar="FILE",
    help="The payload as a JSON object, or - for standard input; --input wins over it.",
)
@click.option(
    "--from",
    "sender",
    type=address,
    metavar="AGENT",
    help="Who sends it.  [default: person:USER]",
)
@click.option(
    "--type",
    "kind",
    type=click.Choice(_TYPES),
    default="event",
    show_default=True,
    help="Its kind.",
)
@click.option(
    "--priority",
    type=click.Choice(_PRIORITIES),
    default="normal",
    show_default=True,
    help="What is received first.",
)
@click.option("--id", "message_id", metavar="ID", help="Makes it repeatable: one id is sent once.")
@click.option("--reply-to", type=address, metavar="AGENT", help="Where a response is wanted.")
@click.option("--correlation", metavar="ID", help="The id of the message that this answers.")
@click.option("--ttl", type=span, metavar="DURATION", help="It is dead if nobody has it by then.")
@click.option("--delay", type=span, metavar="DURATION", help="It is not received before.")
@database_option
@json_option
@click.pass_obj
def send(
    terminal: Terminal,
    agent: AgentId,
    pairs: tuple[tuple[str, str], ...],
    inputs_file: str | None,
    sender: AgentId | None,
    kind: str,
    priority: str,
    message_id: str | None,
    reply_to: AgentId | None,
    correlation: str | None,
    ttl: timedelta | None,
    delay: timedelta | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Put a message into the mailbox of an agent."""
    payload = {} if inputs_file is None else dict(read_object(inputs_file))
    payload |= {name: field_value(text) for name, text in pairs}
    message = composed(
        message_id=message_id or SystemIds().new_id(),
        sender=sender or user_address(),
        recipient=agent,
        message_type=kind,
        payload=payload,
        priority=priority,
        timestamp=datetime.now(UTC).isoformat(),
        correlation_id=correlation,
        reply_to=reply_to,
        ttl_seconds=None if ttl is None else ttl.total_seconds(),
        delay_seconds=0.0 if delay is None else delay.total_seconds(),
    )

    async def work(mailboxes: MessageCoordinator) -> MessageResult:
        return await mailboxes.send_message(message.sender, agent, message)

    result = ask(database, work, rings=True)
    if not result.delivered:
        raise CommandError(
            f"the mailbox of {agent} is full", help=f"`afl mail peek {agent}` shows what is in it"
        )
    if as_json:
        terminal.json({"version": 1, "message": message_json(message)})
        return
    terminal.data(f"{message.message_id}\n")
    terminal.help(f"`afl mail peek {agent}` shows what waits there")


@command.command("peek", cls=Command)
@agent_argument
@limit_option
@database_option
@json_option
@click.pass_obj
def peek(
    terminal: Terminal, agent: AgentId, limit: int, database: str | None, as_json: bool
) -> None:
    """Show what is in a mailbox, and what is received next.

    Nothing is received by it.
    """

    async def work(mailboxes: MessageCoordinator) -> tuple[dict[str, int], list[AgentMessage]]:
        counts = await mailboxes.counts(agent)
        return counts.model_dump(), await mailboxes.peek(agent, limit)

    counts, messages = ask(database, work)
    if as_json:
        listed = [message_json(each) for each in messages]
        terminal.json({"version": 1, "agent": str(agent), "counts": counts, "messages": listed})
        return
    for name, number in counts.items():
        terminal.data(f"{name:<10}{number}\n")
    rows = [
        (
            each.message_id,
            each.message_type.value,
            each.priority.name.lower(),
            str(each.sender),
            short_payload(each),
        )
        for each in messages
    ]
    terminal.data(table(("message", "type", "priority", "from", "payload"), rows))
    if counts["dead"]:
        terminal.help(f"`afl mail dlq {agent}` shows the dead letters")


@command.command("dlq", cls=Command)
@agent_argument
@limit_option
@database_option
@json_option
@click.pass_obj
def dlq(
    terminal: Terminal, agent: AgentId, limit: int, database: str | None, as_json: bool
) -> None:
    """List the dead letters of a mailbox, the oldest first.

    What was held or has waited too long is looked at first, as by whoever receives.
    """

    async def work(mailboxes: MessageCoordinator) -> list[DeadLetter]:
        await mailboxes.recover_pending(agent)
        return await mailboxes.dead_letters(agent, limit + 1)

    found = ask(database, work)
    letters = found[:limit]
    if as_json:
        listed = [letter_json(each) for each in letters]
        is_cut = len(found) > limit
        terminal.json({"version": 1, "agent": str(agent), "letters": listed, "is_cut": is_cut})
        return
    now = datetime.now(UTC)
    rows = [
        (
            each.queue_message.message.message_id,
            each.reason,
            str(each.queue_message.delivery_attempts),
            age(datetime.fromisoformat(each.at), now),
            str(each.queue_message.message.sender),
            shortened(each.queue_message.last_error or "", _LONGEST),
            short_payload(each.queue_message.message),
        )
        for each in letters
    ]
    header = ("message", "reason", "attempts", "age", "from", "error", "payload")
    terminal.data(table(header, rows))
    if not letters:
        terminal.say(f"the mailbox of {agent} has no dead letters")
        return
    if len(found) > limit:
        terminal.help(f"there are more; `--limit {limit * 2}` shows more of them")
    first = letters[0].queue_message.message.message_id
    terminal.help(f"`afl mail redrive {agent} {first}` puts it into the mailbox again")


@command.command("redrive", cls=Command)
@of_letters
def redrive(ctx: click.Context, letters: Letters) -> None:
    """Put dead letters into the mailbox again, with no attempts counted."""
    agent = letters.agent

    async def act(mailboxes: MessageCoordinator, message: str) -> Change:
        if await mailboxes.redrive(agent, message):
            return Change(message, "ready")
        return Change(message, "dead", error=_full(agent, message))

    then = f"`afl mail peek {agent}` shows what waits there"
    act_on(ctx, letters, act, done="driven again", then=then, rings=True)


@command.command("purge", cls=Command)
@of_letters
def purge(ctx: click.Context, letters: Letters) -> None:
    """Remove dead letters for good."""
    agent = letters.agent

    async def act(mailboxes: MessageCoordinator, message: str) -> Change:
        if await mailboxes.purge(agent, message):
            return Change(message, "purged")
        return Change(message, "dead", error=no_letter(agent, message))

    act_on(ctx, letters, act, done="removed")


def _full(agent: AgentId, message: str) -> str:
    return (
        f"{message} was not moved: the mailbox of {agent} is full, or somebody else was faster; "
        f"`afl mail peek {agent}` shows what is in it"
    )
