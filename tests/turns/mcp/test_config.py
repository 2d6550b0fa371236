from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from afl.base.errors import ConfigError
from afl.turns.mcp.config import McpServer, read_servers, resolve, servers_in

FULL = """
[mcp.files]
command = "mcp-files"
args = ["--root", "."]
env = { FILES_TOKEN = "${FILES_TOKEN}" }

[mcp.tickets]
url = "https://tickets.example/mcp"
headers = { Authorization = "Bearer ${TICKETS_TOKEN}" }
tools = ["find", "close"]
effects = { close = "irreversible" }
timeout = "30s"
"""


def _write(folder: Path, text: str) -> Path:
    path = folder / "mcp.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_servers_are_read_as_they_are_written(tmp_path: Path) -> None:
    assert read_servers(_write(tmp_path, FULL)) == (
        McpServer(
            "files",
            command="mcp-files",
            args=("--root", "."),
            env={"FILES_TOKEN": "${FILES_TOKEN}"},
        ),
        McpServer(
            "tickets",
            url="https://tickets.example/mcp",
            headers={"Authorization": "Bearer ${TICKETS_TOKEN}"},
            tools=frozenset({"find", "close"}),
            effects={"close": "irreversible"},
            timeout=timedelta(seconds=30),
        ),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[mcp.a]\ncomand = "x"', "mcp.a has `comand`, which means nothing. Did you mean `comm"),
        ('[mcp.a]\ncommand = "x"\nzzz = 1', "The keys are command, args, env"),
        ("[mpc.a]", "has `mpc`, which means nothing. Did you mean `mcp`?"),
        ("", "names no MCP server; add a table such as [mcp.files]"),
        ("[mcp", "is not TOML"),
        ("mcp = 1", "`mcp` is not a table"),
        ("[mcp]\na = 1", "mcp.a is not a table"),
        ("[mcp.a]", "mcp.a needs `command` or `url`, and not both"),
        ('[mcp.a]\ncommand = "x"\nurl = "http://h"', "needs `command` or `url`, and not both"),
        ('[mcp.a]\ncommand = "x"\nheaders = {}', "with which `headers` has no use"),
        ('[mcp.a]\nurl = "http://h"\nargs = []', "with which `args` has no use"),
        ('[mcp.a]\nurl = "ftp://h"', "mcp.a.url is not a URL of http or https"),
        ('[mcp.a]\nurl = "http://h:x"', "mcp.a.url is not a URL"),
        ('[mcp.a]\nurl = "http://me:pass@h"', "mcp.a.url has a user in it"),
        ("[mcp.a]\ncommand = 1", 'mcp.a.command is not a text; write command = "..."'),
        ('[mcp.a]\ncommand = "x"\nargs = "y"', "mcp.a.args is not a list of texts"),
        ('[mcp.a]\ncommand = "x"\nenv = { A = 1 }', "mcp.a.env is not a table of texts"),
        ('[mcp.a]\ncommand = "x"\ntimeout = "fast"', "mcp.a.timeout: 'fast' is not a duration"),
        ('[mcp.a]\ncommand = "x"\ntimeout = "0s"', "mcp.a.timeout is '0s'; it can be up to 1d"),
        (
            '[mcp.a]\ncommand = "x"\neffects = { t = "pur" }',
            "mcp.a.effects.t is 'pur'. It can be pure, idempotent, keyed, irreversible. "
            "Did you mean `pure`?",
        ),
        (
            '[mcp.a]\ncommand = "x"\ntools = ["find"]\neffects = { fnd = "pure" }',
            "names `fnd`, which is not in `tools`. Did you mean `find`?",
        ),
        (
            '[mcp.a]\nurl = "http://h"\nheaders = { authorization = "Bearer abc" }',
            "mcp.a.headers.authorization is a secret written into a file",
        ),
        ('[mcp."a.b"]\ncommand = "x"', "a server's name has up to 32 letters"),
        ('[mcp.a__b]\ncommand = "x"', "single `_`"),
        ('[mcp.a_]\ncommand = "x"', "ends with no `_`"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_servers(_write(tmp_path, text))
    assert complaint in caught.value.message


def test_a_secret_in_a_file_is_not_repeated_in_the_message(tmp_path: Path) -> None:
    text = '[mcp.a]\nurl = "http://h"\nheaders = { Authorization = "Bearer abc" }'
    with pytest.raises(ConfigError) as caught:
        read_servers(_write(tmp_path, text))
    assert "abc" not in caught.value.message


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_servers(tmp_path / "none.toml")


def test_a_file_with_other_tables_is_read_too() -> None:
    document: dict[str, object] = {"worker": {"slots": 4}, "mcp": {"a": {"command": "x"}}}
    assert servers_in(document, "afl.toml") == (McpServer("a", command="x"),)
    assert servers_in({"worker": {}}, "afl.toml") == ()


def test_references_are_filled_from_the_environment() -> None:
    values = {"A": "Bearer ${T}", "B": "plain $T", "C": "${T}-${U_1}"}
    assert resolve(values, {"T": "1", "U_1": "2"}, "it") == {
        "A": "Bearer 1",
        "B": "plain $T",
        "C": "1-2",
    }
    with pytest.raises(ConfigError, match="it needs the environment variable T, which is not set"):
        resolve({"A": "${T}"}, {"T": ""}, "it")
