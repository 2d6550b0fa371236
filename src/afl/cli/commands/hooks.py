"""`afl hooks`: web hooks that start runs."""

from __future__ import annotations

import click

from afl.app.extras import extra_part
from afl.cli.errors import CommandError, MissingError
from afl.cli.framework import Command
from afl.cli.running.groups import Group
from afl.cli.running.kept_things import say_gone, show_all
from afl.cli.running.options import database_option, json_option
from afl.cli.running.server_store import server_store
from afl.cli.terminal import Terminal
from afl.server.store import WebHook

_NEEDS = "Web hooks need"


@click.group("hooks", cls=Group)
def command() -> None:
    """Let other systems start runs by signed web hooks.

    Each command takes --json.
    """


@command.command("create", cls=Command)
@click.argument("name")
@click.argument("workflow")
@click.option(
    "--program",
    default="default",
    show_default=True,
    metavar="NAME",
    help="The deployment that has the workflow.",
)
@database_option
@json_option
@click.pass_obj
def create(
    terminal: Terminal,
    name: str,
    workflow: str,
    program: str,
    database: str | None,
    as_json: bool,
) -> None:
    """Make a web hook that starts runs of WORKFLOW. Its secret is shown once."""
    secret: str = extra_part("afl.server.hooking", "server", _NEEDS).new_secret()
    hook = WebHook(name, workflow, program, secret)
    with server_store(database) as store:
        if not store.add_hook(hook):
            raise CommandError(
                f"there is a web hook {name} already",
                help=f"choose another name, or `afl hooks delete {name}` first",
            )
    if as_json:
        terminal.json({"version": 1, "hook": _json(hook), "secret": secret})
        return
    terminal.data(f"{secret}\n")
    terminal.say(f"calls of {_path(hook)} that are signed with it start runs of {workflow}")
    terminal.help("`afl serve` takes the calls; `afl hooks list` shows all hooks")


@command.command("list", cls=Command)
@database_option
@json_option
@click.pass_obj
def list_hooks(terminal: Terminal, database: str | None, as_json: bool) -> None:
    """List the web hooks, without their secrets."""
    with server_store(database) as store:
        hooks = store.hooks()
    show_all(
        terminal,
        "hooks",
        [_json(hook) for hook in hooks],
        ("name", "workflow", "program", "path"),
        [(hook.name, hook.workflow, hook.program, _path(hook)) for hook in hooks],
        none="there is no web hook",
        help="`afl hooks create NAME WORKFLOW` makes one",
        as_json=as_json,
    )


@command.command("delete", cls=Command)
@click.argument("name")
@database_option
@json_option
@click.pass_obj
def delete(terminal: Terminal, name: str, database: str | None, as_json: bool) -> None:
    """Remove a web hook: calls of it start nothing any more."""
    with server_store(database) as store:
        if not store.delete_hook(name):
            raise MissingError(
                f"there is no web hook {name}", help="`afl hooks list` shows those there are"
            )
    left = "`afl hooks list` shows those that are left"
    say_gone(terminal, "deleted", name, help=left, as_json=as_json)


def _path(hook: WebHook) -> str:
    return f"/api/v1/hooks/{hook.name}/call"


def _json(hook: WebHook) -> dict[str, str]:
    return {
        "name": hook.name,
        "workflow": hook.workflow,
        "program": hook.program,
        "path": _path(hook),
    }
