"""`afl runs logs`: what handlers of a worker process say, read while they say it and afterwards."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from afl.app.log_reading import stored_logs
from afl.cli import exit_codes
from afl.logs.model import StreamKey
from afl.logs.shipping import DirectRoad, Shipment
from afl.logs.spool import Spool, WhenFull
from tests.cli.deployed import (
    HANDLERS,
    deployed_database,
    looks_into_postgres,
    submit,
    write_project,
)
from tests.cli.runner import AFL, plain_environment, run
from tests.cli.test_json_shapes import validate
from tests.cli.test_worker import serving, told
from tests.kernel.postgres.databases import server_is_there
from tests.logs.records import spool_in

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")

TALKING = HANDLERS.replace(
    "def fetch(name: str) -> int:\n",
    """\
def fetch(name: str, ctx: afl.Context) -> int:
    import pathlib, time
    ctx.log.info("the password is %s", "swordfish-and-chips")
    ctx.log.warning("two\\nlines")
    if name == "slow":
        while not pathlib.Path("go").exists():
            time.sleep(0.02)
    try:
        1 / 0
    except ZeroDivisionError:
        ctx.log.exception("oops")
""",
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with deployed_database() as url:
        yield url


def logs(url: str, name: str, *options: str) -> str:
    result = run("runs", "logs", name, *options, "--database", url)
    assert result.exit_code == exit_codes.OK, result.stderr
    return result.stdout


def test_what_handlers_say_is_read_live_and_afterwards(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path, handlers=TALKING)
    monkeypatch.setenv("DEMO_PASSWORD", "swordfish-and-chips")
    spools = tmp_path / "spools"
    with serving(tmp_path, url, "--spool", str(spools)) as running:
        told(running.stdout)
        started = submit(url, "Hello", "-i", "name=slow")
        with subprocess.Popen(
            [AFL, "runs", "logs", started, "-f"],
            env={**plain_environment(), "AFL_DATABASE_URL": url},
            stdout=subprocess.PIPE,
            text=True,
        ) as following:
            assert following.stdout is not None
            first = [following.stdout.readline() for _ in range(3)]
            # the handler has not ended
            assert [line.split("log  ")[1] for line in first] == [
                "the password is [redacted]\n",
                "two\n",
                "lines\n",
            ]
            (tmp_path / "go").touch()
            rest = following.stdout.read()
            assert following.wait(timeout=60) == exit_codes.OK
        assert "ZeroDivisionError" in rest
        assert rest.count("oops") == 1
        assert "missing" not in rest
        running.terminate()
        running.wait(timeout=30)
    text = logs(url, started)
    assert text.startswith("".join(first))
    assert text == "".join(first) + rest
    assert list(spools.glob("*/*")) == []
    data = json.loads(logs(url, started, "--json", "--level", "warning", "--limit", "3"))
    assert [(each["seq"], each["text"]) for each in data["output"]] == [
        (2, "two"),
        (3, "lines"),
        (4, "oops"),
    ]
    assert data["is_cut"] is True


@pytest.fixture(scope="module")
def talkative(url: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run with lines of commands, of which some are missing."""
    started = submit(url, "Hello")
    run("runs", "cancel", started, "--database", url)
    root = tmp_path_factory.mktemp("spools")
    spool = spool_in(root, most_bytes=3_000)
    out = spool.open(StreamKey(started, "0/a", 1, "stdout"))
    out.line(b"\x1b[31mred\x1b[0m \x07bell", time_us=spool.now_us())
    out.line(b"a long ", partial=True)
    out.line(b"line")
    again = spool.open(StreamKey(started, "0/a", 2, "stderr"), WhenFull.DROP)
    for number in range(60):
        again.line(b"%d" % number + b"x" * 100)
    again.close()
    lost = spool.open(StreamKey(started, "0/b", 1, "stdout"))
    spool.declare_lost([lost.opened])
    ship(url, spool)
    spool.close()
    spool.release()
    return started


def ship(url: str, spool: Spool) -> None:
    with stored_logs(url) as store:
        Shipment(spool.id, "w", spool.reader, DirectRoad(store), store).step(spool.end)


def test_lines_of_commands_and_gaps(url: str, talkative: str) -> None:
    lines = logs(url, talkative, "--step", "0/a", "--stream", "stdout").splitlines()
    assert [line.partition("stdout  ")[2] for line in lines] == ["red �bell", "a long …", "line"]
    gaps = [line for line in logs(url, talkative).splitlines() if "~" in line]
    assert [gap.partition("~ ")[2] for gap in gaps] == [
        gaps[0].partition("~ ")[2],
        "the end is missing: the worker died",
    ]
    assert "0/a #2  stderr  ~ lines " in gaps[0]
    assert gaps[0].endswith(" to 60 are missing: the spool of the worker was full")


def test_what_is_wanted(url: str, talkative: str) -> None:
    assert logs(url, talkative, "--grep", "^l.ne$").count("\n") == 1 + 2  # gaps are always shown
    assert "line" not in logs(url, talkative, "--level", "debug").replace("lines", "")
    assert logs(url, talkative, "--since", "1h") == logs(url, talkative)
    assert logs(url, talkative, "--since", "2100-01-01T00:00:00Z") == ""
    assert logs(url, talkative, "--limit", "2").count("\n") == 2
    wrong = run("runs", "logs", talkative, "--grep", "(", "--database", url)
    assert wrong.exit_code == exit_codes.USAGE
    assert "is no regular expression" in wrong.stderr


def test_json_has_its_shape(url: str, talkative: str) -> None:
    whole = logs(url, talkative, "--json")
    validate(whole, "logs")
    data = json.loads(whole)
    assert {"first": 1, "last": None, "reason": "the worker died"} in [
        each.get("gap") for each in data["output"]
    ]
    partial = [each["text"] for each in data["output"] if each.get("is_partial")]
    assert partial == ["a long "]


def test_following_a_run_that_has_ended_ends(url: str, talkative: str) -> None:
    # the stream of a worker that is silent for long counts as cut off; this one is not yet
    with stored_logs(url) as store:
        assert any(stream.closed_us is None for stream in store.streams(talkative))
    ended = submit(url, "Hello")
    run("runs", "cancel", ended, "--database", url)
    followed = run("runs", "logs", ended, "-f", "--json", "--database", url)
    assert (followed.exit_code, followed.stdout) == (exit_codes.OK, "")


def test_followed_lines_are_json_objects(url: str, talkative: str) -> None:
    followed = run("runs", "logs", talkative, "-f", "--json", "--limit", "4", "--database", url)
    lines = followed.stdout.splitlines()
    assert len(lines) == 4
    for line in lines:
        validate(line, "logs")


@looks_into_postgres
def test_old_lines_are_rotated_away(url: str, talkative: str) -> None:
    with stored_logs(url) as store, psycopg.connect(url) as connection:
        assert store.streams(talkative)
        run("db", "rotate", "--database", url)
        assert store.streams(talkative)
        connection.execute("update afl.log_stream set last_us = 0 where run = %s", [talkative])
        connection.commit()
        run("db", "rotate", "--database", url)
        assert store.streams(talkative) == []
