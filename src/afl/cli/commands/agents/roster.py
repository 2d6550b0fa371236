"""`afl agents list`, `get`, `set` and `delete`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from afl.cli.errors import RequestError, cannot
from afl.cli.framework import Command
from afl.cli.running.agents import agent_argument, agents_on, tenant_option
from afl.cli.running.bulk import Change
from afl.cli.running.options import database_option, json_option, limit_option
from afl.cli.running.tables import local, table
from afl.cli.terminal import Terminal
from afl.kernel.model import Json
from afl.turns.model import Agent

if TYPE_CHECKING:
    from afl.app.agents import AgentHead


@click.command("list", cls=Command)
@click.option("--after", metavar="AGENT", help="Only agents from after this one: the next page.")
@limit_option
@tenant_option
@database_option
@json_option
@click.pass_obj
def list_agents(
    terminal: Terminal,
    after: str | None,
    limit: int,
    tenant: str,
    database: str | None,
    as_json: bool,
) -> None:
    """List agents, and what each is doing."""
    with agents_on(database, tenant) as agents:
        found = agents.list(after=after, limit=limit + 1)
        shown = [(agent, agents.head(agent.id)) for agent in found[:limit]]
    following = found[limit - 1].id if len(found) > limit else None
    if as_json:
        listed = [_json(agent, head) for agent, head in shown]
        terminal.json({"version": 1, "agents": listed, "next": following})
        return
    rows = [
        (agent.id, head.status, ", ".join(agent.models) or _kind(agent), ", ".join(agent.tools))
        for agent, head in shown
    ]
    terminal.data(table(("agent", "status", "model", "tools"), rows))
    if not shown:
        terminal.say("there is no agent")
        terminal.help("`afl agents set NAME --system TEXT --model MODEL` makes one")
    elif following is not None:
        terminal.help(f"there are more; `--after {following}` shows the next page")
    else:
        terminal.help(f"`afl agents get {shown[0][0].id}` shows all of one")


@click.command("get", cls=Command)
@agent_argument
@tenant_option
@database_option
@json_option
@click.pass_obj
def get(terminal: Terminal, agent: str, tenant: str, database: str | None, as_json: bool) -> None:
    """Show an agent, what it is doing, and what it waits for."""
    with agents_on(database, tenant) as agents:
        found = agents.get(agent)
        head = agents.head(agent)
    if as_json:
        terminal.json({"version": 1, "agents": [_json(found, head)], "next": None})
        return
    facts = [
        ("agent", found.id),
        ("kind", found.kind),
        ("status", head.status),
        ("turn", head.turn or ""),
        ("waits for", ", ".join(head.waits_for)),
        ("models", ", ".join(found.models)),
        ("tools", ", ".join(found.tools)),
        ("tags", ", ".join(found.tags)),
        ("target", found.target),
        ("max tokens", str(found.max_tokens)),
        ("created", local(found.created_at)),
    ]
    for name, text in facts:
        if text:
            terminal.data(f"{name:<12}{text}\n")
    for line in found.system.splitlines():
        terminal.data(f"  {line}\n")
    if head.turn is None:
        terminal.help(f"`afl agents send {found.id} TEXT --wait` gives it a turn")
    else:
        terminal.help(f"`afl runs transcript {head.turn}` shows the turn")


@click.command("set", cls=Command)
@agent_argument
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="The model to ask, such as anthropic:claude-sonnet-5; of several, each is asked when "
    "those before do not answer. Without one, the setting AFL_MODEL.",
)
@click.option("--system", metavar="TEXT", help="Who it is, and how it works.")
@click.option("--system-file", metavar="FILE", help="The same, from a file.")
@click.option(
    "--tool",
    "tools",
    multiple=True,
    metavar="NAME",
    help="What it may call: an event facet, server/tool of an MCP server, or agent:NAME.",
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="What it is known for.")
@click.option("--target", metavar="NAME", help="Which turn workers serve it.  [default: default]")
@click.option(
    "--max-tokens", type=click.IntRange(min=1), metavar="N", help="Of one answer.  [default: 8192]"
)
@click.option("--person", is_flag=True, help="A person takes its turns; no model is asked.")
@tenant_option
@database_option
@json_option
@click.pass_obj
def set_agent(
    terminal: Terminal,
    agent: str,
    models: tuple[str, ...],
    system: str | None,
    system_file: str | None,
    tools: tuple[str, ...],
    tags: tuple[str, ...],
    target: str | None,
    max_tokens: int | None,
    person: bool,
    tenant: str,
    database: str | None,
    as_json: bool,
) -> None:
    """Put an agent on the roster, or change what is given.

    Turns that have begun go on as they began.
    """
    if system is not None and system_file is not None:
        raise RequestError("use --system or --system-file, not both")
    if person and (models or tools):
        raise RequestError("a person is asked no model and calls no tools: leave them out")
    if system_file is not None:
        system = _text(system_file)
    with agents_on(database, tenant) as agents:
        saved = agents.set(
            agent,
            person=person or None,
            target=target,
            system=system,
            models=models or None,
            tools=tools or None,
            tags=tags or None,
            max_tokens=max_tokens,
        )
        head = agents.head(agent)
    if as_json:
        terminal.json({"version": 1, "agents": [_json(saved, head)], "next": None})
        return
    terminal.say(f"agent {saved.id} is on the roster")
    terminal.help(f"`afl agents send {saved.id} TEXT --wait` gives it a turn")


@click.command("delete", cls=Command)
@agent_argument
@tenant_option
@database_option
@json_option
@click.pass_obj
def delete(
    terminal: Terminal, agent: str, tenant: str, database: str | None, as_json: bool
) -> None:
    """Take an agent off the roster.

    Turns that it has not begun will fail; what it did stays.
    """
    with agents_on(database, tenant) as agents:
        agents.delete(agent)
    if as_json:
        change = Change(agent, "deleted")
        terminal.json({"version": 1, "dry_run": False, "changes": [change.as_json()]})
        return
    terminal.say(f"agent {agent} is off the roster")
    terminal.help(f"`afl agents turns {agent}` shows what it did")


def _kind(agent: Agent) -> str:
    return "a person" if agent.kind == "person" else ""


def _json(agent: Agent, head: AgentHead) -> dict[str, Json]:
    return {
        "id": agent.id,
        "tenant": agent.tenant,
        "kind": agent.kind,
        "target": agent.target,
        "system": agent.system,
        "models": list(agent.models),
        "tools": list(agent.tools),
        "tags": list(agent.tags),
        "limits": asdict(agent.limits),
        "max_tokens": agent.max_tokens,
        "temperature": agent.temperature,
        "created_at": None if agent.created_at is None else agent.created_at.isoformat(),
        "head": {"status": head.status, "turn": head.turn, "waits_for": list(head.waits_for)},
    }


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise cannot("read", path, error) from error
    except UnicodeDecodeError as error:
        raise RequestError(f"{path} is not UTF-8", help="save it as UTF-8") from error
