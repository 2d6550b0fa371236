"""`afl mcp tools`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from afl.app.services import connect
from afl.bridges.turn_stores import turn_store
from afl.cli import exit_codes
from tests.architecture.repository import ROOT
from tests.cli.deployed import fresh_database
from tests.cli.runner import run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import server_is_there

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")

SERVER = ROOT / "tests" / "turns" / "mcp" / "mcp_server.py"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with fresh_database() as url:
        yield url


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "mcp.toml"
    file.write_text(
        f"[mcp.t]\ncommand = {json.dumps(sys.executable)}\n"
        f'args = [{json.dumps(str(SERVER))}, "stdio"]\n'
        'effects = { add = "pure" }\n'
        '[mcp.gone]\ncommand = "no-such-program-anywhere"\n',
        encoding="utf-8",
    )
    return file


def tools(url: str, config: Path, *args: str) -> Result:
    return run("mcp", "tools", *args, "--config", config, "--database", url)


def pins(result: Result) -> dict[str, str]:
    return {each["name"]: each["pin"] for each in json.loads(result.stdout)["tools"]}


def test_tools_are_listed_with_their_effects_and_pins(url: str, config: Path) -> None:
    result = tools(url, config, "t")
    assert result.exit_code == exit_codes.OK, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["TOOL", "EFFECT", "PIN", "DESCRIPTION"]
    assert ["t/add", "pure", "new"] in [row[:3] for row in rows]
    assert "`afl agents set NAME --tool t/" in result.stderr


def test_a_server_that_does_not_answer_keeps_nobody_else_quiet(url: str, config: Path) -> None:
    result = tools(url, config, "--json")
    validate(result.stdout, "mcp")
    told = json.loads(result.stdout)
    assert result.exit_code == exit_codes.FAILED
    assert list(told["problems"]) == ["gone"]
    assert {each["server"] for each in told["tools"]} == {"t"}


def test_a_tool_that_has_changed_is_trusted_again(url: str, config: Path) -> None:
    with connect(url) as services:
        turn_store(services.persistence).set_pin("t", "add", "as it was")
    changed = tools(url, config, "t")
    assert "`afl mcp tools --trust t/add` agrees to what it is now" in changed.stderr
    assert pins(tools(url, config, "t", "--json"))["add"] == "changed"
    trusted = tools(url, config, "--trust", "t/add", "--json")
    validate(trusted.stdout, "mcp")
    assert pins(trusted) == {"add": "pinned"}
    assert pins(tools(url, config, "t", "--json"))["add"] == "pinned"


def test_what_is_not_there_is_said(url: str, config: Path) -> None:
    for args, code, message in (
        (("nobody",), exit_codes.UNREADABLE, "There is no MCP server nobody here"),
        (("--trust", "t/none"), exit_codes.UNREADABLE, "has no tool `none`"),
        (("--trust", "add"), exit_codes.USAGE, "write it as SERVER/TOOL"),
    ):
        result = tools(url, config, *args)
        assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
    none = run("mcp", "tools", "--database", url)
    assert none.exit_code == exit_codes.USAGE
    assert "use --config or AFL_MCP" in none.stderr
    config.write_text("[mcp.x]\n", encoding="utf-8")
    wrong = tools(url, config)
    assert wrong.exit_code == exit_codes.USAGE
    assert "needs `command` or `url`" in wrong.stderr
