"""`afl runs transcript`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import click

from afl.app.extras import agents_part
from afl.cli import exit_codes
from afl.cli.framework import Command
from afl.cli.running.agents import deliverable_json
from afl.cli.running.connection import connected
from afl.cli.running.money import money
from afl.cli.running.options import database_option, json_option
from afl.cli.running.tables import age, table
from afl.cli.running.texts import plain
from afl.cli.terminal import Terminal, count
from afl.kernel.model import Json

if TYPE_CHECKING:
    from afl.app.transcripts import Asked, Transcript, Transcripts, TurnLine

_UNPRICED = "unknown"


@click.command("transcript", cls=Command)
@click.argument("run", metavar="RUN")
@click.argument("step", metavar="[STEP|TURN]", required=False)
@click.option(
    "--request",
    "number",
    type=click.IntRange(min=0),
    metavar="N",
    help="Only what the model was asked by request N, from 0, made again from what is kept.",
)
@database_option
@json_option
@click.pass_context
def transcript(
    ctx: click.Context,
    run: str,
    step: str | None,
    number: int | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Show what a model was asked and said in a run, and what it cost.

    RUN may be the id of an agent's turn too. A run with several turns lists them.
    """
    terminal = ctx.ensure_object(Terminal)
    with connected(database) as services:
        part = agents_part("afl.app.transcripts")
        transcripts = cast("Transcripts", part.Transcripts(services))
        if step is None and number is None:
            known = transcripts.turns(run)
            if len(known) > 1:
                now = services.persistence.now()
                rows = [_row(line, age(line.created_at, now)) for line in known]
                _list(terminal, run, known, rows, as_json=as_json)
                return
        found = transcripts.get(run, step)
        if number is not None:
            ctx.exit(_print_request(terminal, found, number, as_json=as_json))
    if as_json:
        terminal.json(_json(found))
    else:
        _tell(terminal, found)


def _row(line: TurnLine, old: str) -> tuple[str, ...]:
    return line.turn, line.state, line.name, line.step or "", old


def _list(
    terminal: Terminal,
    run: str,
    known: Sequence[TurnLine],
    rows: Sequence[tuple[str, ...]],
    *,
    as_json: bool,
) -> None:
    if as_json:
        listed = [
            {
                "turn": line.turn,
                "name": line.name,
                "step": line.step,
                "state": line.state,
                "created_at": line.created_at.isoformat(),
            }
            for line in known
        ]
        terminal.json({"version": 1, "turns": listed})
        return
    terminal.data(table(("turn", "state", "name", "step", "age"), rows))
    terminal.help(f"`afl runs transcript {run} {known[0].step or known[0].turn}` shows one of them")


def _print_request(terminal: Terminal, found: Transcript, number: int, *, as_json: bool) -> int:
    content, same = found.request_json(number), found.is_as_it_was(number)
    asked = next(each for each in found.requests if each.number == number)
    if as_json:
        terminal.json(
            {
                "version": 1,
                "turn": found.turn,
                "number": number,
                "hash": asked.hash,
                "is_as_it_was": same,
                "request": content,
            }
        )
    else:
        terminal.json(content)
        if same:
            terminal.say(f"this is what {asked.model} was asked, by its hash {asked.hash}")
        else:
            terminal.error(f"the hash of what was asked is {asked.hash}, and this has another")
            terminal.help("a card that it was made of is not what it was, or comes from elsewhere")
    return exit_codes.OK if same else exit_codes.FAILED


def _tell(terminal: Terminal, found: Transcript) -> None:
    at = f"  {found.step}" if found.step else ""
    state = found.outcome or found.state
    terminal.data(f"{found.name}{at}  {state}\n")
    if found.system:
        _block(terminal, "system", found.system)
    asked = {each.number: each for each in found.requests}
    last: int | None = None
    for line in found.lines:
        if line.number is not None and line.number != last:
            last = line.number
            terminal.data(terminal.dim(f"#{last}  {_figures(asked[last])}") + "\n")
        _block(terminal, line.who, line.text)
    requests = count(len(found.requests), "request")
    terminal.say(f"{requests}, {count(found.tokens, 'token')}, {money(found.usd)} USD")
    if found.requests:
        number = found.requests[-1].number
        terminal.help(
            f"`afl runs transcript {found.turn} --request {number}` shows all of a request"
        )


def _block(terminal: Terminal, who: str, text: str) -> None:
    first, *rest = plain(text).splitlines() or [""]
    terminal.data(f"{who:<12}  {first}".rstrip() + "\n")
    for line in rest:
        terminal.data(f"{'':<12}  {line}".rstrip() + "\n")


def _figures(asked: Asked) -> str:
    usage = asked.usage
    cached = f" ({usage.cache_read} cached)" if usage.cache_read else ""
    price = "price unknown" if asked.price_version == _UNPRICED else f"{money(asked.usd)} USD"
    return f"{asked.model}  {usage.input}{cached} in, {usage.output} out  {price}"


def _json(found: Transcript) -> dict[str, Json]:
    end = found.deliverable
    return {
        "version": 1,
        "turn": found.turn,
        "name": found.name,
        "run": found.run,
        "step": found.step,
        "state": found.state,
        "outcome": found.outcome,
        "system": found.system,
        "lines": [
            {"who": line.who, "text": line.text, "request": line.number} for line in found.lines
        ],
        "requests": [_asked_json(asked) for asked in found.requests],
        "deliverable": None if end is None else deliverable_json(end),
    }


def _asked_json(asked: Asked) -> dict[str, Json]:
    return {
        "number": asked.number,
        "model": asked.model,
        "finish": asked.finish,
        "input": asked.usage.input,
        "output": asked.usage.output,
        "cache_read": asked.usage.cache_read,
        "cache_write": asked.usage.cache_write,
        "usd": f"{asked.usd:f}",
        "price_version": asked.price_version,
        "hash": asked.hash,
    }
