"""`afl deploy`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from afl import Client
from afl.cli import exit_codes
from tests.cli.deployed import FLOW, fresh_database
from tests.cli.programs import GOOD, UNKNOWN_TYPE
from tests.cli.runner import process, run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import empty_database, server_is_there

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with fresh_database() as url:
        yield url


def test_the_hash_is_data_and_the_next_command_is_talk(url: str, tmp_path: Path) -> None:
    (tmp_path / "flow.afl").write_text(FLOW, encoding="utf-8")
    result = run("deploy", tmp_path, "--name", "first", "--database", url)
    assert result.exit_code == exit_codes.OK
    digest = result.stdout.strip()
    assert digest.startswith("sha256:")
    assert result.stderr == (
        "deployed as `first`: 4 workflows\n"
        "help: `afl submit demo.Hello --program first` starts a run\n"
    )
    with Client(url) as client:
        assert client.operations.program("first") == digest
    again = run("deploy", tmp_path, "--name", "first", "--database", url)
    assert again.stdout == result.stdout
    assert "this is what is deployed as `first` already" in again.stderr


def test_another_program_takes_the_place_of_the_first(url: str) -> None:
    before = run("deploy", "-", "--name", "two", "--database", url, input=GOOD).stdout.strip()
    result = run("deploy", "-", "--name", "two", "--database", url, input=FLOW)
    assert f"deployed as `two` instead of {before}: 4 workflows" in result.stderr


def test_needed_inputs_are_part_of_the_next_command(url: str) -> None:
    flow = "namespace a {\n  workflow Do(x: Int, y: Int = 1, z: Int?) andThen {}\n}\n"
    result = run("deploy", "-", "--name", "in", "--database", url, input=flow)
    assert "`afl submit a.Do --input x=... --program in` starts a run" in result.stderr


def test_json_has_its_shape(url: str) -> None:
    result = run("deploy", "-", "--name", "j", "--database", url, "--json", input=GOOD)
    validate(result.stdout, "deploy")
    assert json.loads(result.stdout)["workflows"] == ["demo.Hello"]
    assert result.stderr == ""


def test_what_does_not_check_is_not_deployed(url: str) -> None:
    result = run("deploy", "-", "--name", "bad", "--database", url, input=UNKNOWN_TYPE)
    assert (result.exit_code, result.stdout) == (exit_codes.FAILED, "")
    assert "error[AFL1007]" in result.stderr
    with Client(url) as client:
        assert "bad" not in client.operations.persistence.deployments()
    told = run("deploy", "-", "--name", "bad", "--database", url, "--json", input=UNKNOWN_TYPE)
    validate(told.stdout, "diagnostics")


def test_without_a_database_it_says_what_to_type() -> None:
    result = process("deploy", "-", input=GOOD.encode())
    assert result.returncode == exit_codes.USAGE
    assert b"error: there is no database: use --database or AFL_DATABASE_URL\n" in result.stderr
    assert b"help: `export AFL_DATABASE_URL=postgresql://host/name`" in result.stderr


def test_a_database_that_is_none_of_ours() -> None:
    result = run("deploy", "-", "--database", "mysql://x/y", input=GOOD)
    assert result.exit_code == exit_codes.USAGE
    assert "has to be a URL of PostgreSQL, of MongoDB or of a server" in result.stderr
    assert "help: it looks like postgresql://host/name, mongodb://host/name or https://host" in (
        result.stderr
    )
    itself = run("worker", "--database", "mysql://x/y")
    assert itself.exit_code == exit_codes.USAGE
    assert "has to be a URL of PostgreSQL or of MongoDB\n" in itself.stderr
    away = run("deploy", "-", "--database", "postgresql://127.0.0.1:1/x", input=GOOD)
    assert away.exit_code == exit_codes.FAILED
    assert "error: cannot connect to the database: " in away.stderr
    assert "help: `afl doctor` shows what is wrong" in away.stderr


def test_a_database_without_the_schema_says_what_to_do() -> None:
    with empty_database() as conninfo:
        name = conninfo.partition("dbname=")[2].split()[0]
        result = run("deploy", "-", "--database", f"postgresql://127.0.0.1/{name}", input=GOOD)
    assert result.exit_code == exit_codes.FAILED
    assert "help: `afl db migrate` applies what is pending" in result.stderr
