"""`afl db`, as far as it needs no database; the rest is in tests/kernel/postgres."""

from __future__ import annotations

import pytest

from afl.cli import exit_codes
from tests.cli.runner import process, run


@pytest.mark.parametrize("name", ["migrate", "status"])
def test_without_a_database_it_is_wrong_usage(name: str) -> None:
    result = process("db", name)
    assert result.returncode == exit_codes.USAGE
    assert b"There is no database: use --database or AFL_DATABASE_URL." in result.stderr


@pytest.mark.parametrize("name", ["migrate", "status"])
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
    assert "--color" in result.stdout
