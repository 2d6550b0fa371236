"""`afl agents turns`, `send` and `stop`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from afl.cli import exit_codes
from afl.cli.errors import RequestError
from afl.cli.framework import Command
from afl.cli.running.agents import (
    agent_argument,
    agents_on,
    deliverable_json,
    tenant_option,
)
from afl.cli.running.bulk import Change
from afl.cli.running.money import priced
from afl.cli.running.options import database_option, json_option, limit_option, timeout_option
from afl.cli.running.tables import age, table
from afl.cli.running.texts import plain, shortened
from afl.cli.running.workflows import read_object
from afl.cli.terminal import Terminal
from afl.kernel.model import Json
from afl.turns.model import Deliverable, Ending

if TYPE_CHECKING:
    from afl.app.agents import TurnSummary

_LONGEST = 60
_SAID = {
    "closed": "stopped",
    "requested": "asked to stop: it ends when its worker hears",
    "already_closed": "had ended already",
}


@click.command("turns", cls=Command)
@agent_argument
@click.option("--before", metavar="TURN", help="Only turns from before this one: the next page.")
@limit_option
@tenant_option
@database_option
@json_option
@click.pass_obj
def turns(
    terminal: Terminal,
    agent: str,
    before: str | None,
    limit: int,
    tenant: str,
    database: str | None,
    as_json: bool,
) -> None:
    """List the turns of an agent, the newest first."""
    with agents_on(database, tenant) as agents:
        found = agents.turns(agent, before=before, limit=limit + 1)
    following = found[limit - 1].id if len(found) > limit else None
    shown = found[:limit]
    if as_json:
        listed = [_turn_json(turn) for turn in shown]
        terminal.json({"version": 1, "turns": listed, "next": following})
        return
    now = datetime.now(UTC)
    rows = [
        (
            turn.id,
            turn.state,
            turn.outcome or "",
            age(turn.created_at, now),
            str(turn.requests),
            str(turn.tokens),
            priced(turn.usd, turn.unpriced),
            shortened(turn.instruction, _LONGEST),
        )
        for turn in shown
    ]
    header = ("turn", "state", "outcome", "age", "requests", "tokens", "usd", "instruction")
    terminal.data(table(header, rows))
    if not shown:
        terminal.say(f"agent {agent} has had no turn")
        terminal.help(f"`afl agents send {agent} TEXT --wait` gives it one")
        return
    if following is not None:
        terminal.help(f"there are more; `--before {following}` shows the next page")
    terminal.help(f"`afl runs transcript {shown[0].id}` shows what was said")


@click.command("send", cls=Command)
@agent_argument
@click.argument("text", metavar="TEXT")
@click.option(
    "--context",
    multiple=True,
    metavar="BOX",
    help="A box that it reads first; the id of a turn is the box with all that the turn did.",
)
@click.option(
    "--returns",
    metavar="FILE",
    help="A JSON Schema of what it is to deliver, an object; without it, text.",
)
@click.option("--key", metavar="KEY", help="Makes it repeatable: sending again finds the turn.")
@click.option("--wait", is_flag=True, help="Wait until it has ended, and print what it delivers.")
@timeout_option
@tenant_option
@database_option
@json_option
@click.pass_context
def send(
    ctx: click.Context,
    agent: str,
    text: str,
    context: tuple[str, ...],
    returns: str | None,
    key: str | None,
    wait: bool,
    timeout: timedelta | None,
    tenant: str,
    database: str | None,
    as_json: bool,
) -> None:
    """Give an agent a turn: now, or after those that it has.

    With --wait, the exit code says how it ended.
    """
    terminal = ctx.ensure_object(Terminal)
    if timeout is not None and not wait:
        raise RequestError("--timeout is how long to wait: it needs --wait")
    schema = None if returns is None else dict(read_object(returns))
    delivered: Deliverable | None = None
    with agents_on(database, tenant, rings=True) as agents:
        turn = agents.send(agent, text, context=context, returns=schema, key=key)
        if wait:
            delivered = agents.wait(turn, timeout)
    if as_json:
        told = None if delivered is None else deliverable_json(delivered)
        terminal.json({"version": 1, "agent": agent, "turn": turn, "deliverable": told})
    elif delivered is None:
        terminal.data(f"{turn}\n")
        terminal.help(f"`afl runs transcript {turn}` shows how it goes on")
    else:
        _say(delivered, turn, terminal)
    ctx.exit(exit_codes.OK if delivered is None else _code(delivered))


@click.command("stop", cls=Command)
@click.argument("target", metavar="AGENT|TURN")
@click.option("--force", is_flag=True, help="At once, whatever a worker is doing with it.")
@click.option("--reason", default="", metavar="TEXT", help="Why, for whoever looks at it later.")
@tenant_option
@database_option
@json_option
@click.pass_obj
def stop(
    terminal: Terminal,
    target: str,
    force: bool,
    reason: str,
    tenant: str,
    database: str | None,
    as_json: bool,
) -> None:
    """End the turn that an agent has in hand, or one turn.

    What it knows so far is delivered, marked as partial. The agent's next turn begins.
    """
    with agents_on(database, tenant, rings=True) as agents:
        turn, became = agents.stop(target, force=force, reason=reason)
    if as_json:
        change = Change(turn, became)
        terminal.json({"version": 1, "dry_run": False, "changes": [change.as_json()]})
        return
    terminal.data(f"{turn}\n")
    terminal.say(f"turn {turn} {'was ' if became == 'requested' else ''}{_SAID[became]}")
    terminal.help(f"`afl runs transcript {turn}` shows how far it came")


def _say(delivered: Deliverable, turn: str, terminal: Terminal) -> None:
    text = delivered.fields.get("text")
    if delivered.fields.keys() == {"text"} and isinstance(text, str):
        terminal.data(f"{plain(text)}\n")
    elif delivered.fields or delivered.ending is Ending.DONE:
        terminal.json(delivered.fields)
    if delivered.ending is not Ending.DONE:
        terminal.error(f"turn {turn} is not done ({delivered.ending.value}): {delivered.message}")
        terminal.help(f"`afl runs transcript {turn}` shows what happened")


def _code(delivered: Deliverable) -> int:
    match delivered.ending:
        case Ending.DONE:
            return exit_codes.OK
        case Ending.STOPPED:
            return exit_codes.RUN_CANCELED
    return exit_codes.RUN_FAILED


def _turn_json(turn: TurnSummary) -> dict[str, Json]:
    return {
        "id": turn.id,
        "agent": turn.agent,
        "state": turn.state,
        "outcome": turn.outcome,
        "instruction": turn.instruction,
        "requests": turn.requests,
        "tokens": turn.tokens,
        "usd": f"{turn.usd:f}",
        "unpriced": turn.unpriced,
        "created_at": turn.created_at.isoformat(),
        "closed_at": None if turn.closed_at is None else turn.closed_at.isoformat(),
    }
