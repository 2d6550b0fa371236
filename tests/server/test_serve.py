"""`afl serve` as a process, and `afl tokens`."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psycopg
import pytest

from afl.server.application import API
from tests.cli.runner import AFL, plain_environment, run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import empty_database, server_is_there

pytestmark = pytest.mark.skipif(not server_is_there(), reason="no PostgreSQL to test with")
SECONDS = 60


@contextmanager
def serving(url: str, *args: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server as a process, and where it is."""
    process = subprocess.Popen(
        [AFL, "serve", "--port", "0", *args],
        env={**plain_environment(), "AFL_DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"AgentFlow is at (http://\S+)\n", line)
        assert found, (line, process.stderr and process.stderr.read())
        yield found[1], process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=SECONDS)


def made_token(url: str, *args: str) -> str:
    result = run("tokens", "create", *args, "--database", url)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def test_it_serves_until_it_is_told_to_stop(empty_url: str) -> None:
    secret = made_token(empty_url, "ada", "--role", "viewer")
    with serving(empty_url) as (where, process):
        answer = httpx.get(f"{where}{API}/me", headers={"Authorization": f"Bearer {secret}"})
        assert answer.json()["subject"] == "ada"
        assert httpx.get(f"{where}{API}/me").status_code == 401
        assert httpx.get(f"{where}/readyz").status_code == 200
        assert "server" not in answer.headers
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, out, err) == (0, "", "")
    used = json.loads(run("tokens", "list", "--json", "--database", empty_url).stdout)
    assert used["tokens"][0]["last_used_at"] is not None


def test_without_a_token_it_says_so_and_serves_this_machine(empty_url: str) -> None:
    with serving(empty_url) as (where, process):
        assert httpx.get(f"{where}{API}/me").status_code == 401
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0
        assert "there is no token yet" in err
        assert "`afl tokens create admin --role admin`" in err


def test_it_may_ask_nobody_on_this_machine(empty_url: str) -> None:
    with serving(empty_url, "--no-auth") as (where, _):
        assert httpx.get(f"{where}{API}/me").json()["subject"] == "local"
        evil = {"Host": "evil.example"}
        assert httpx.get(f"{where}{API}/me", headers=evil).status_code == 421


def test_it_may_tell_where_it_is_in_json(empty_url: str) -> None:
    process = subprocess.Popen(
        [AFL, "serve", "--port", "0", "--json", "--database", empty_url],
        env=plain_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        validate(line, "server")
        assert httpx.get(f"{json.loads(line)['url']}/livez").status_code == 200
        process.terminate()
        out, err = process.communicate(timeout=SECONDS)
        validate(out, "server")
        assert (json.loads(out)["event"], err) == ("stopped", "")
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org"])
def test_it_asks_everybody_who_comes_from_elsewhere(empty_url: str, host: str) -> None:
    result = run("serve", "--no-auth", "--host", host, "--database", empty_url)
    assert result.exit_code == 1
    assert "--no-auth" in result.stderr
    assert "afl tokens create admin --role admin" in result.stderr


def test_it_does_not_open_a_door_for_which_there_is_no_key(empty_url: str) -> None:
    result = run("serve", "--host", "0.0.0.0", "--database", empty_url)
    assert result.exit_code == 1
    assert "There is no token yet" in result.stderr
    assert "afl tokens create admin --role admin" in result.stderr


def test_a_port_that_is_taken_is_named(empty_url: str) -> None:
    made_token(empty_url, "ada", "--role", "viewer")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "--port", str(port), "--database", empty_url)
    assert result.exit_code == 1
    assert f"127.0.0.1:{port}: address already in use" in result.stderr
    assert result.stdout == ""


def test_a_database_that_is_behind_is_refused() -> None:
    with empty_database() as conninfo:
        parts = psycopg.conninfo.conninfo_to_dict(conninfo)
        result = run("serve", "--database", f"postgresql://{parts['host']}/{parts['dbname']}")
    assert result.exit_code == 1
    assert "`afl db migrate`" in result.stderr


class TestTokens:
    def test_a_token_is_made_listed_and_revoked(self, empty_url: str) -> None:
        made = run(
            *("tokens", "create", "ci", "--role", "operator", "--tenant", "a"),
            *("--expires", "90d", "--json", "--database", empty_url),
        )
        validate(made.stdout, "token")
        told = json.loads(made.stdout)
        assert re.fullmatch(r"afl_[\w-]{43}", told["secret"])
        token = told["token"]
        assert (token["name"], token["role"], token["tenant"]) == ("ci", "operator", "a")
        shown = run("tokens", "list", "--database", empty_url).stdout.splitlines()
        assert shown[0].split() == ["ID", "NAME", "ROLE", "TENANT", "AGE", "EXPIRES", "USED"]
        assert shown[1].split()[:4] == [token["id"], "ci", "operator", "a"]
        assert told["secret"] not in "".join(shown)
        validate(run("tokens", "list", "--json", "--database", empty_url).stdout, "tokens")
        revoked = run("tokens", "revoke", token["id"], "--json", "--database", empty_url)
        validate(revoked.stdout, "token")
        assert json.loads(revoked.stdout) == {"version": 1, "revoked": token["id"]}
        again = run("tokens", "revoke", token["id"], "--database", empty_url)
        assert again.exit_code == 3
        assert "`afl tokens list`" in again.stderr

    def test_the_secret_alone_is_data(self, empty_url: str) -> None:
        result = run("tokens", "create", "ada", "--role", "admin", "--database", empty_url)
        assert re.fullmatch(r"afl_[\w-]{43}\n", result.stdout)
        assert "not shown again" in result.stderr

    def test_a_name_is_for_one_token(self, empty_url: str) -> None:
        made_token(empty_url, "ada", "--role", "admin")
        result = run("tokens", "create", "ada", "--role", "viewer", "--database", empty_url)
        assert result.exit_code == 1
        assert "there is a token ada already" in result.stderr

    @pytest.mark.parametrize(
        "args",
        [("x", "--role", "root"), ("x",), ("x", "--role", "viewer", "--expires", "soon")],
        ids=str,
    )
    def test_what_makes_no_sense_is_refused(self, empty_url: str, args: tuple[str, ...]) -> None:
        assert run("tokens", "create", *args, "--database", empty_url).exit_code == 2

    def test_without_tokens_it_says_how_to_make_one(self, empty_url: str) -> None:
        result = run("tokens", "list", "--database", empty_url)
        assert result.stdout == ""
        assert "`afl tokens create admin --role admin`" in result.stderr
