"""`afl breakers`: what is left alone for a while, since it failed too often."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from afl.app.extras import mail_part
from afl.base.settings import Settings
from afl.cli.errors import MissingError, RequestError
from afl.cli.framework import Command
from afl.cli.running.bulk import Change, report
from afl.cli.running.connection import refusals
from afl.cli.running.groups import Group
from afl.cli.running.options import json_option
from afl.cli.running.tables import age, local, table
from afl.cli.terminal import Terminal
from afl.kernel.model import Json

if TYPE_CHECKING:
    from afl.messaging.breaker_list import ListedBreaker


@click.group("breakers", cls=Group)
def command() -> None:
    """Look at the circuit breakers that processes share.

    Each command takes --json.
    """


@command.command("list", cls=Command)
@click.option("--open", "only_open", is_flag=True, help="Leave out those that are closed.")
@json_option
@click.pass_obj
def list_breakers(terminal: Terminal, only_open: bool, as_json: bool) -> None:
    """List the breakers in Redis: their state, and who uses them."""
    found = [each for each in _all() if not only_open or each.state.value != "closed"]
    if as_json:
        terminal.json({"version": 1, "breakers": [_json(each) for each in found]})
        return
    now = datetime.now(UTC)
    rows = [
        (
            _shown(each.name),
            each.state.value,
            age(each.since, now),
            f"{each.failures}/{each.config.failure_threshold}",
            local(each.until),
            ", ".join(each.users),
        )
        for each in found
    ]
    terminal.data(table(("breaker", "state", "since", "failures", "until", "used by"), rows))
    if not found:
        terminal.say("there is no such breaker" if only_open else "no breaker was used yet")
        return
    is_open = [name for name, state, *_ in rows if state != "closed"]
    if is_open:
        terminal.help(f"`afl breakers reset {is_open[0]}` closes it at once, for everybody")


@command.command("reset", cls=Command)
@click.argument("names", metavar="BREAKER...", nargs=-1, required=True)
@json_option
@click.pass_context
def reset(ctx: click.Context, names: tuple[str, ...], as_json: bool) -> None:
    """Close breakers, for all processes.

    What waits for one goes on at its time, or when it is next tried.
    """
    known = [_shown(each.name) for each in _all()]
    for name in names:
        if name not in known:
            raise MissingError(f"there is no breaker {name}{_near(name, known)}")
    part = mail_part("afl.app.redis_breakers")
    with refusals():
        for name in names:
            asyncio.run(part.reset(Settings.load(), name))
    changes = [Change(name, "closed") for name in names]
    report(ctx, changes, done="closed", what="breaker", dry_run=False, as_json=as_json)


def _all() -> list[ListedBreaker]:
    settings = Settings.load()
    if settings.redis_url is None:
        raise RequestError(
            "there is no Redis, so each process has breakers of its own: set AFL_REDIS_URL",
            help="`export AFL_REDIS_URL=redis://host`, for workers too, has them share theirs; "
            "`afl runs why RUN` tells what waits for one either way",
        )
    with refusals():
        part = mail_part("afl.app.redis_breakers")
        found: list[ListedBreaker] = asyncio.run(part.list_all(settings))
    return found


def _near(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else "; `afl breakers list` shows those there are"


def _shown(name: str) -> str:
    shown: str = mail_part("afl.bridges.breakers").shown_name(name)
    return shown


def _json(breaker: ListedBreaker) -> dict[str, Json]:
    config = breaker.config
    return {
        "name": _shown(breaker.name),
        "state": breaker.state.value,
        "since": breaker.since.isoformat(),
        "until": None if breaker.until is None else breaker.until.isoformat(),
        "failures": breaker.failures,
        "successes": breaker.successes,
        "probing": breaker.probing,
        "config": {
            "failures": config.failure_threshold,
            "window_seconds": config.failure_window_seconds,
            "cooldown_seconds": config.timeout_seconds,
            "probes": config.half_open_max_calls,
            "successes": config.success_threshold,
            "slow_seconds": config.slow_call_seconds,
        },
        "totals": dict(breaker.totals),
        "used_by": [
            {"name": user, "seen_at": seen.isoformat()} for user, seen in breaker.users.items()
        ],
    }
