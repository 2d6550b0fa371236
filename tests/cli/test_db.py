"""`afl db`, as far as it needs no database; see also test_db_rotate and tests/kernel/postgres."""

from __future__ import annotations

import pytest

from afl.cli import exit_codes
from tests.cli.runner import process, run


@pytest.mark.parametrize("name", ["migrate", "status", "rotate"])
def test_without_a_database_it_is_wrong_usage(name: str) -> None:
    result = process("db", name)
    assert result.returncode == exit_codes.USAGE
    assert b"There is no database: use --database or AFL_DATABASE_URL." in result.stderr


@pytest.mark.parametrize("name", ["migrate", "status", "rotate"])
def test_a_database_that_cannot_be_reached(name: str) -> None:
    result = process("db", name, "--database", "postgresql://127.0.0.1:1/nothing")
    assert result.returncode == exit_codes.FAILED
    assert result.stderr.startswith(b"error: cannot connect to the database: ")
    assert b"Traceback" not in result.stderr


def test_help_lists_the_commands() -> None:
    result = run("db", "--help")
    assert result.exit_code == exit_codes.OK
    assert "migrate" in result.stdout
    assert "status" in result.stdout
    assert "rotate" in result.stdout
    assert "--color" in result.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--older-than", "30"], b"Invalid value for '--older-than': '30' is not a duration: "),
        (["--older-than", "-1d"], b"a duration is never negative"),
        (["--limit", "0"], b"Invalid value for '--limit'"),
    ],
)
def test_wrong_options_of_rotate_are_wrong_usage(args: list[str], message: bytes) -> None:
    result = process("db", "rotate", *args, "--database", "postgresql://127.0.0.1:1/nothing")
    assert result.returncode == exit_codes.USAGE
    assert message in result.stderr


def test_a_wrong_retention_is_named() -> None:
    wrong = {"AFL_RETENTION": "soon", "AFL_DATABASE_URL": "postgresql://127.0.0.1:1/nothing"}
    result = process("db", "rotate", variables=wrong)
    assert result.returncode == exit_codes.USAGE
    assert b"error: AFL_RETENTION: 'soon' is not a duration: " in result.stderr
