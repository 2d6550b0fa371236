"""Verbs that are done to the dead letters of a mailbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from afl.cli.errors import RequestError
from afl.cli.running.bulk import Change, report
from afl.cli.running.mail import agent_argument, ask
from afl.cli.running.options import database_option, json_option

if TYPE_CHECKING:
    from afl.messaging.coordinator import MessageCoordinator
    from afl.messaging.models import AgentId


@dataclass(frozen=True, slots=True)
class Letters:
    """The dead letters that a command is about."""

    agent: AgentId
    messages: tuple[str, ...]
    is_all: bool
    dry_run: bool
    database: str | None
    as_json: bool


def of_letters(work: Callable[[click.Context, Letters], None]) -> Callable[..., None]:
    """What a command takes that is done to dead letters."""

    @wraps(work)
    def command(ctx: click.Context, **given: Any) -> None:  # noqa: ANN401 - as click has read them
        letters = Letters(**given)
        if bool(letters.messages) == letters.is_all:
            raise RequestError(
                "name the messages, or use --all",
                help=f"`afl mail dlq {letters.agent}` shows what there is",
            )
        work(ctx, letters)

    taken: Callable[..., None] = click.pass_context(command)
    for option in (
        json_option,
        database_option,
        click.option("--dry-run", is_flag=True, help="Only list what would be done."),
        click.option("--all", "is_all", is_flag=True, help="All of them, not named ones."),
        click.argument("messages", metavar="[MESSAGE]...", nargs=-1),
        agent_argument,
    ):
        taken = option(taken)
    return taken


def act_on(
    ctx: click.Context,
    letters: Letters,
    act: Callable[[MessageCoordinator, str], Awaitable[Change]],
    *,
    done: str,
    then: str = "",
    rings: bool = False,
) -> None:
    """Does it to the dead letters that are meant, and tells what became of them."""
    changes = ask(letters.database, lambda mailboxes: _each(mailboxes, letters, act), rings=rings)
    report(
        ctx,
        changes,
        done=done,
        what="message",
        then=then,
        dry_run=letters.dry_run,
        as_json=letters.as_json,
    )


async def _each(
    mailboxes: MessageCoordinator,
    letters: Letters,
    act: Callable[[MessageCoordinator, str], Awaitable[Change]],
) -> list[Change]:
    """Does it to the dead letters that are meant, or to all. One that is not there does not keep
    the others from being done."""
    agent = letters.agent
    await mailboxes.recover_pending(agent)
    counts = await mailboxes.counts(agent)
    found = await mailboxes.dead_letters(agent, counts.dead)
    ids = {letter.queue_message.message.message_id: None for letter in found}
    changes = []
    for message in dict.fromkeys(letters.messages) or ids:
        if message not in ids:
            changes.append(Change(message, "dead", error=no_letter(agent, message)))
        elif letters.dry_run:
            changes.append(Change(message, "dead"))
        else:
            changes.append(await act(mailboxes, message))
    return changes


def no_letter(agent: AgentId, message: str) -> str:
    """What is said of a dead letter that is not there."""
    return (
        f"there is no dead letter {message} in the mailbox of {agent}; "
        f"`afl mail dlq {agent}` shows those that there are"
    )
