"""`afl cost`: what models have cost, and budgets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from decimal import Decimal, InvalidOperation

import click

from afl.app.costs import ROLLUPS, SCOPES, Costs
from afl.cli.errors import MissingError, RequestError
from afl.cli.framework import Command
from afl.cli.running.agents import tenant_option
from afl.cli.running.connection import connected
from afl.cli.running.groups import Group
from afl.cli.running.money import money, priced
from afl.cli.running.options import database_option, json_option, limit_option, span
from afl.cli.running.tables import table
from afl.cli.terminal import Terminal, count
from afl.kernel.model import Json
from afl.turns.model import Allowance, Budget, Spending, UsageSum

_NONE = "none"


@click.group("cost", cls=Group, invoke_without_command=True)
@click.option(
    "--by",
    type=click.Choice(ROLLUPS),
    default="run",
    show_default=True,
    help="By what requests are added up.",
)
@click.option("--run", metavar="RUN", help="Only of this run, and of all that it has called.")
@click.option("--since", type=span, metavar="AGE", help="Not longer ago than this, such as 7d.")
@limit_option
@tenant_option
@database_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    by: str,
    run: str | None,
    since: timedelta | None,
    limit: int,
    tenant: str,
    database: str | None,
    as_json: bool,
) -> None:
    """Show what models have cost, and set what may be spent.

    `afl cost budget` is about what may be spent.
    """
    if ctx.invoked_subcommand is not None:
        return
    terminal = ctx.ensure_object(Terminal)
    with _costs(database, tenant) as costs:
        found = costs.usage(by, run=run, since=since, limit=limit + 1)
    shown = found[:limit]
    if as_json:
        rows_json = [_sum_json(each) for each in shown]
        terminal.json(
            {"version": 1, "by": by, "rows": rows_json, "is_cut": len(found) > len(shown)}
        )
        return
    rows = [
        (
            each.key,
            str(each.requests),
            str(each.usage.input),
            str(each.usage.cache_read),
            str(each.usage.output),
            priced(each.usd, each.unpriced),
        )
        for each in shown
    ]
    terminal.data(table((by, "requests", "input", "cached", "output", "usd"), rows))
    if not shown:
        terminal.say("no model was asked")
        return
    _say_total(terminal, shown)
    if len(found) > len(shown):
        terminal.help("there are more; a greater `--limit` shows them")
    elif by == "run" and shown[0].key:
        terminal.help(f"`afl cost --run {shown[0].key} --by step` shows where it went")


def _say_total(terminal: Terminal, shown: list[UsageSum]) -> None:
    requests = sum(each.requests for each in shown)
    usd = sum((each.usd for each in shown), Decimal(0))
    unpriced = sum(each.unpriced for each in shown)
    terminal.say(f"{money(usd)} USD in {count(requests, 'request')}")
    if unpriced:
        terminal.say(f"{count(unpriced, 'request')} of unknown price, marked with +?")


@command.group("budget", cls=Group)
def budget() -> None:
    """Look at what may be spent, and change it.

    A budget is of a turn, a run with all that it calls, an agent, or a tenant. A request that has
    no room in all of those that cover it waits.
    """


@budget.command("list", cls=Command)
@limit_option
@tenant_option
@database_option
@json_option
@click.pass_obj
def list_budgets(
    terminal: Terminal, limit: int, tenant: str, database: str | None, as_json: bool
) -> None:
    """List budgets, with what was spent and what is reserved."""
    with _costs(database, tenant) as costs:
        found = costs.budgets(limit=limit + 1)
    if as_json:
        _print_json(terminal, found[:limit], is_cut=len(found) > limit)
        return
    rows = [row for each in found[:limit] for row in _rows(each)]
    terminal.data(table(("scope", "key", "unit", "limit", "spent", "reserved"), rows))
    if not found:
        terminal.say("there is no budget")
        terminal.help("`afl cost budget set agent NAME --usd 5` makes one")
    elif len(found) > limit:
        terminal.help("there are more; a greater `--limit` shows them")


scope_argument = click.argument("scope", type=click.Choice(SCOPES), metavar="SCOPE")
key_argument = click.argument("key", metavar="KEY")


@budget.command("get", cls=Command)
@scope_argument
@key_argument
@tenant_option
@database_option
@json_option
@click.pass_obj
def get(
    terminal: Terminal, scope: str, key: str, tenant: str, database: str | None, as_json: bool
) -> None:
    """Show one budget.

    SCOPE is turn, run, agent or tenant; KEY is the id or the name of one.
    """
    with _costs(database, tenant) as costs:
        found = costs.budget(scope, key)
    if found is None:
        raise MissingError(
            f"there is no budget of {scope} {key}",
            help=f"`afl cost budget set {scope} {key} --usd 5` makes one",
        )
    if as_json:
        _print_json(terminal, [found])
        return
    header = ("scope", "key", "unit", "limit", "spent", "reserved")
    terminal.data(table(header, list(_rows(found))))
    terminal.help(f"`afl cost budget set {scope} {key} --usd 5` changes it")


def dollars(text: str) -> Decimal | str:
    """The type of an amount of money, or `none` for no limit."""
    if text.lower() == _NONE:
        return _NONE
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or amount < 0:
        raise click.BadParameter(f"'{text}' is no amount; write it as in 2.50, or `none`")
    return amount


def number(text: str) -> int | str:
    """The type of a number of something, or `none` for no limit."""
    if text.lower() == _NONE:
        return _NONE
    if not text.isdecimal():
        raise click.BadParameter(f"'{text}' is no number of them; write it as in 500, or `none`")
    return int(text)


@budget.command("set", cls=Command)
@scope_argument
@key_argument
@click.option("--usd", type=dollars, metavar="AMOUNT", help="US dollars, such as 2.50.")
@click.option("--tokens", type=number, metavar="N", help="Tokens, read and written.")
@click.option("--model-calls", type=number, metavar="N", help="Requests to models.")
@click.option("--tool-calls", type=number, metavar="N", help="Calls of tools.")
@tenant_option
@database_option
@json_option
@click.pass_obj
def set_budget(
    terminal: Terminal,
    scope: str,
    key: str,
    usd: Decimal | str | None,
    tokens: int | str | None,
    model_calls: int | str | None,
    tool_calls: int | str | None,
    tenant: str,
    database: str | None,
    as_json: bool,
) -> None:
    """Set what may be spent. Turns that waited for it go on.

    What is not given stays as it is; `none` takes a limit away. What was spent still counts.
    """
    given = {
        "usd": usd,
        "tokens": tokens,
        "model_calls": model_calls,
        "tool_calls": tool_calls,
    }
    changes = {
        name: None if value == _NONE else value
        for name, value in given.items()
        if value is not None
    }
    if not changes:
        raise RequestError(
            "there is nothing to set", help="use --usd, --tokens, --model-calls or --tool-calls"
        )
    with _costs(database, tenant, rings=True) as costs:
        before = costs.budget(scope, key)
        limit = Allowance() if before is None else before.limit
        saved, woken = costs.set_budget(scope, key, replace(limit, **changes))  # type: ignore[arg-type]
    if as_json:
        _print_json(terminal, [saved], woken=woken)
        return
    header = ("scope", "key", "unit", "limit", "spent", "reserved")
    terminal.data(table(header, list(_rows(saved))))
    if woken:
        terminal.say(
            f"{count(woken, 'turn')} that waited for room {'go' if woken > 1 else 'goes'} on"
        )


@contextmanager
def _costs(database: str | None, tenant: str, *, rings: bool = False) -> Iterator[Costs]:
    with connected(database, rings=rings) as services:
        yield Costs(services, tenant)


def _rows(budget: Budget) -> Iterator[tuple[str, str, str, str, str, str]]:
    """A row for each unit that is limited, or used."""
    limit, spent, reserved = (
        _figures(part) for part in (budget.limit, budget.spent, budget.reserved)
    )
    for unit in ("usd", "tokens", "model_calls", "tool_calls"):
        if limit[unit] != "" or spent[unit] not in ("0", "0.00"):
            yield (
                budget.key.scope,
                budget.key.key,
                unit.replace("_", " "),
                limit[unit] or _NONE,
                spent[unit],
                reserved[unit],
            )


def _figures(part: Allowance | Spending) -> dict[str, str]:
    return {
        name: "" if value is None else money(value) if isinstance(value, Decimal) else str(value)
        for name, value in asdict(part).items()
    }


def _print_json(
    terminal: Terminal, budgets: list[Budget], *, woken: int = 0, is_cut: bool = False
) -> None:
    listed = [_budget_json(each) for each in budgets]
    terminal.json({"version": 1, "budgets": listed, "woken": woken, "is_cut": is_cut})


def _budget_json(budget: Budget) -> dict[str, Json]:
    key = budget.key
    return {
        "scope": key.scope,
        "key": key.key,
        "tenant": key.tenant,
        "limit": _plain(budget.limit),
        "spent": _plain(budget.spent),
        "reserved": _plain(budget.reserved),
    }


def _plain(part: Allowance | Spending) -> dict[str, Json]:
    """Money as text: it is exact."""
    return {
        name: f"{value:f}" if isinstance(value, Decimal) else value
        for name, value in asdict(part).items()
    }


def _sum_json(each: UsageSum) -> dict[str, Json]:
    return {
        "key": each.key,
        "requests": each.requests,
        "input": each.usage.input,
        "output": each.usage.output,
        "cache_read": each.usage.cache_read,
        "cache_write": each.usage.cache_write,
        "usd": f"{each.usd:f}",
        "unpriced": each.unpriced,
    }
