"""Every command that a message suggests is there, with its options."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator

import click
import pytest

from afl.cli.main import cli
from tests.architecture.repository import ROOT

SOURCES = ROOT / "src" / "afl"
_QUOTED = re.compile(r"`(afl [^`]+)`")


def texts(tree: ast.AST) -> Iterator[str]:
    """The texts of a module, with a word in the place of each value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "VALUE"
                for part in node.values
            )


def suggested() -> list[str]:
    """The commands in the sources: in quotes, or all of a text."""
    found: set[str] = set()
    for path in sorted(SOURCES.rglob("*.py")):
        for text in texts(ast.parse(path.read_text(encoding="utf-8"))):
            found.update(_QUOTED.findall(text))
            if path.parent.name == "runtime" and text.startswith("afl ") and "\n" not in text:
                found.add(text)
    return sorted(found)


def problem(line: str) -> str | None:
    """What is wrong with a command line; None if it could be typed."""
    command: click.Command = cli
    # click remembers the names of the help option from the first context that asks for them
    ctx = click.Context(cli, info_name="afl", help_option_names=["-h", "--help"])
    for word in shlex.split(line)[1:]:
        if isinstance(command, click.Group) and not word.startswith("-"):
            if word.isupper():
                return None
            below = command.get_command(ctx, word)
            if below is None:
                return f"there is no {word}"
            command = below
        elif word.startswith("--"):
            known = {name for each in command.get_params(ctx) for name in each.opts}
            if word.partition("=")[0] not in known:
                return f"there is no {word}"
    return None


@pytest.mark.parametrize("line", suggested())
def test_a_suggested_command_is_there(line: str) -> None:
    assert problem(line) is None


def test_enough_is_looked_at() -> None:
    found = set(suggested())
    assert {"afl worker --list VALUE", "afl workers list", "afl runs why VALUE"} <= found
    assert problem("afl worker --queue x") == "there is no --queue"
    assert problem("afl outbox list") == "there is no outbox"
