"""What all commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import click
import pytest

from afl import __version__
from afl.base.errors import AflError
from afl.cli import exit_codes
from afl.cli.commands import version
from afl.cli.main import ENTRIES, cli
from tests.cli.programs import UNKNOWN_TYPE
from tests.cli.runner import process, run


def test_help_lists_every_command() -> None:
    result = run("--help")
    assert result.exit_code == exit_codes.OK
    for name, entry in ENTRIES.items():
        assert f"{name} " in result.stdout
        assert entry.help in result.stdout


@pytest.mark.parametrize("name", ENTRIES)
def test_the_table_says_what_the_command_says(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").split("\n")[0] == ENTRIES[name].help


@pytest.mark.parametrize("name", ENTRIES)
def test_every_command_has_help_with_the_global_options(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == exit_codes.OK
    assert result.stdout.startswith(f"Usage: afl {name}")
    assert "--color" in result.stdout
    assert "--debug" in result.stdout
    assert run(name, "-h").stdout == result.stdout


@pytest.mark.parametrize("name", ENTRIES)
def test_every_command_has_json(name: str) -> None:
    assert "--json" in run(name, "--help").stdout


def test_the_version() -> None:
    result = run("--version")
    assert (result.stdout, result.exit_code) == (f"afl {__version__}\n", exit_codes.OK)


@pytest.mark.parametrize("group", [(), ("workers",)])
def test_no_command_shows_the_help_and_blames_nobody(group: tuple[str, ...]) -> None:
    result = run(*group)
    assert result.exit_code == exit_codes.USAGE
    assert "Commands:" in result.stderr
    assert "error" not in result.stderr.partition("Commands:")[0].replace("an error", "")


def test_an_unknown_command_gets_the_nearest() -> None:
    result = run("chek")
    assert result.exit_code == exit_codes.USAGE
    assert result.stdout == ""
    assert result.stderr == (
        "error: There is no command 'chek'. Did you mean `afl check`?\n"
        "help: `afl --help` shows how it is used\n"
    )
    assert run("zzz").stderr.startswith("error: There is no command 'zzz'.\n")


def test_an_unknown_option_gets_the_nearest() -> None:
    result = run("check", "--jsn")
    assert result.exit_code == exit_codes.USAGE
    assert "--jsn" in result.stderr
    assert "--json" in result.stderr
    assert "help: `afl check --help` shows how it is used" in result.stderr


def _fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_args: object, **_options: object) -> NoReturn:
        raise error

    monkeypatch.setattr(version.command, "callback", fail)


def test_a_mistake_of_ours_is_told_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_with(monkeypatch, KeyError("nothing"))
    result = run("version")
    assert result.exit_code == exit_codes.INTERNAL
    assert result.stderr.startswith("error: AgentFlow made a mistake: KeyError: 'nothing'\nhelp: ")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("args", [("--debug", "version"), ("version", "--debug")])
def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, args: tuple[str, str]) -> None:
    _fail_with(monkeypatch, KeyError("nothing"))
    result = run(*args)
    assert result.exit_code == exit_codes.INTERNAL
    assert "Traceback (most recent call last)" in result.stderr


def test_the_setting_for_debug_works_too(tmp_path: Path) -> None:
    missing = tmp_path / "missing.afl"
    assert b"Traceback" in process("check", missing, variables={"AFL_DEBUG": "1"}).stderr
    assert b"Traceback" not in process("check", missing).stderr


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (AflError("the moon is full"), exit_codes.FAILED, "error: the moon is full\n"),
        (
            PermissionError(13, "Permission denied", "a.afl"),
            exit_codes.UNREADABLE,
            "error: a.afl: permission denied\n",
        ),
        (KeyboardInterrupt(), exit_codes.INTERRUPTED, "\nerror: interrupted\n"),
        (click.FileError("a", "gone"), exit_codes.USAGE, "error: Could not open file 'a': gone\n"),
    ],
    ids=["ours", "system", "interrupt", "click"],
)
def test_errors_become_words_and_codes(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, said: str
) -> None:
    _fail_with(monkeypatch, error)
    result = run("version")
    assert (result.exit_code, result.stderr, result.stdout) == (status, said, "")


def test_a_wrong_setting_is_wrong_usage_but_help_answers() -> None:
    wrong = {"AFL_COLOUR": "always"}
    result = process("version", variables=wrong)
    assert result.returncode == exit_codes.USAGE
    assert b"There is no setting AFL_COLOUR. Did you mean AFL_COLOR?" in result.stderr
    assert process("--help", variables=wrong).returncode == exit_codes.OK


@pytest.mark.parametrize("before", [True, False])
def test_colour_can_be_forced(tmp_path: Path, before: bool) -> None:
    file = tmp_path / "a.afl"
    file.write_text(UNKNOWN_TYPE, encoding="utf-8")
    force = ("--color", "always")
    forced = run(*force, "check", file) if before else run("check", file, *force)
    assert "\x1b[1;31merror[AFL1007]" in forced.stdout
    assert "\x1b[" not in run("check", file).stdout


@pytest.mark.parametrize(
    ("args", "variables", "coloured"),
    [
        ((), {"AFL_COLOR": "always"}, True),
        (("--color", "never"), {"AFL_COLOR": "always"}, False),
        (("--color", "auto"), {"AFL_COLOR": "always"}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        ((), {}, False),
    ],
)
def test_options_win_over_settings(
    tmp_path: Path, args: tuple[str, ...], variables: dict[str, str], coloured: bool
) -> None:
    file = tmp_path / "a.afl"
    file.write_text(UNKNOWN_TYPE, encoding="utf-8")
    result = process(*args, "check", file, variables=variables)
    assert (b"\x1b[" in result.stdout) is coloured
