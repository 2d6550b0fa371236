"""`afl tokens`: who may use the server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from afl.cli.errors import CommandError, MissingError
from afl.cli.framework import Command
from afl.cli.running.groups import Group
from afl.cli.running.kept_things import say_gone, show_all
from afl.cli.running.options import database_option, json_option, span
from afl.cli.running.server_store import server_store
from afl.cli.running.tables import age, local
from afl.cli.terminal import Terminal
from afl.server.store import Token
from afl.server.tokens import new_token

_ROLES = ("viewer", "operator", "developer", "admin")


@click.group("tokens", cls=Group)
def command() -> None:
    """Make and revoke the tokens with which the server is used.

    Each command takes --json.
    """


@command.command("create", cls=Command)
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(_ROLES),
    required=True,
    help="What it may do: each role may do what those before it may.",
)
@click.option(
    "--tenant",
    default="*",
    show_default=True,
    metavar="TENANT",
    help="Whose runs it sees; * is all.",
)
@click.option("--expires", type=span, metavar="DURATION", help="How long it is good, such as 90d.")
@database_option
@json_option
@click.pass_obj
def create(
    terminal: Terminal,
    name: str,
    role: str,
    tenant: str,
    expires: timedelta | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Make a token. Its secret is shown once, and kept nowhere."""
    with server_store(database) as store:
        token, secret = new_token(name, role, tenant, datetime.now(UTC), expires)
        if not store.add_token(token):
            raise CommandError(
                f"there is a token {name} already",
                help="`afl tokens list` shows the tokens; `afl tokens revoke ID` frees the name",
            )
    if as_json:
        terminal.json({"version": 1, "token": _json(token), "secret": secret})
        return
    terminal.data(f"{secret}\n")
    terminal.say(f"made the token {name} with the role {role}; keep it, it is not shown again")
    terminal.help("programs send it as `Authorization: Bearer TOKEN`; the dashboard asks for it")


@command.command("list", cls=Command)
@database_option
@json_option
@click.pass_obj
def list_tokens(terminal: Terminal, database: str | None, as_json: bool) -> None:
    """List the tokens, without their secrets."""
    with server_store(database) as store:
        tokens = store.tokens()
    now = datetime.now(UTC)
    rows = [
        (
            token.id,
            token.name,
            token.role,
            token.tenant,
            age(token.created_at, now),
            local(token.expires_at),
            age(token.last_used_at, now),
        )
        for token in tokens
    ]
    show_all(
        terminal,
        "tokens",
        [_json(token) for token in tokens],
        ("id", "name", "role", "tenant", "age", "expires", "used"),
        rows,
        none="there is no token",
        help="`afl tokens create admin --role admin` makes one",
        as_json=as_json,
    )


@command.command("revoke", cls=Command)
@click.argument("id")
@database_option
@json_option
@click.pass_obj
def revoke(terminal: Terminal, id: str, database: str | None, as_json: bool) -> None:
    """Make a token worthless, at once and for ever."""
    with server_store(database) as store:
        if not store.revoke_token(id):
            raise MissingError(
                f"there is no token {id}", help="`afl tokens list` shows the tokens and their ids"
            )
    left = "`afl tokens list` shows who is left"
    say_gone(terminal, "revoked", id, help=left, as_json=as_json)


def _json(token: Token) -> dict[str, str | None]:
    def told(moment: datetime | None) -> str | None:
        return None if moment is None else moment.isoformat()

    return {
        "id": token.id,
        "name": token.name,
        "role": token.role,
        "tenant": token.tenant,
        "created_at": told(token.created_at),
        "expires_at": told(token.expires_at),
        "last_used_at": told(token.last_used_at),
    }
