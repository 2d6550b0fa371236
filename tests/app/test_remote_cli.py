"""The same commands on a database and on a server that works on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from afl import Client
from afl.app.log_reading import stored_logs
from afl.cli import exit_codes
from afl.logs.model import StreamKey
from afl.logs.shipping import DirectRoad, Shipment
from tests.app.api_server import api_server
from tests.cli.deployed import FLOW, deployed_database, id_in, worker
from tests.cli.runner import run
from tests.kernel.postgres.databases import server_is_there
from tests.logs.records import spool_in

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")

MORE = FLOW.replace(
    "workflow Wait(",
    """event facet Approve(title: String) => (ok: Boolean) with Human(group = "staff")
  workflow Ask(title: String) => (ok: Boolean) andThen {
    asked = Approve(title = $.title)
    yield Ask(ok = asked.ok)
  }

  workflow Wait(""",
)


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with deployed_database(MORE) as url, worker(url):
        yield url


@pytest.fixture(scope="module")
def server(database: str) -> Iterator[str]:
    with api_server(database) as served:
        yield served.url


@pytest.fixture(params=["database", "server"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def _afl(url: str, *args: str) -> Result:
    return run(*args, "--database", url)


def _json(url: str, *args: str) -> dict[str, object]:
    result = _afl(url, *args, "--json")
    assert result.exit_code == exit_codes.OK, (result.stdout, result.stderr)
    return dict(json.loads(result.stdout))


def _ended(url: str, *args: str) -> str:
    made = id_in(_afl(url, "submit", *args))
    with Client(url) as client:
        client.run(made).wait("30s")
    return made


def test_submit_and_wait(url: str) -> None:
    done = _afl(url, "submit", "Hello", "--input", "name=ada", "--wait", "--timeout", "30s")
    assert (done.exit_code, json.loads(done.stdout)) == (0, {"text": "Hello, ada!"})
    followed = _afl(url, "submit", "Hello", "--follow", "--timeout", "30s")
    assert "hello" in followed.stderr
    keyed = [id_in(_afl(url, "submit", "Hello", "--key", f"k {url}")) for _ in range(2)]
    assert keyed[0] == keyed[1]
    missing = _afl(url, "submit", "Helo")
    assert missing.exit_code == exit_codes.UNREADABLE
    assert "did you mean" in missing.stderr


def test_looking_at_runs(url: str) -> None:
    made = _ended(url, "Outer", "--input", "name=bob", "--label", f"at={url[:4]}")
    listed = _json(url, "runs", "list", "--filter", f"label.at={url[:4]}")["runs"]
    assert isinstance(listed, list)
    assert (listed[0]["id"], listed[0]["outputs"]) == (made, {"text": "Hello, bob!"})
    assert f"inputs    {json.dumps({'name': 'bob'})}" in _afl(url, "runs", "get", made).stdout
    tree = _afl(url, "runs", "tree", made).stdout
    assert "inner" in tree
    assert "flow.afl" not in tree
    assert json.loads(_afl(url, "runs", "result", made).stdout) == {"text": "Hello, bob!"}
    assert "completed" in _afl(url, "runs", "why", made).stdout
    export = json.loads(_afl(url, "runs", "export", made).stdout)
    assert export["run"]["id"] == made
    assert {step["path"] for step in export["steps"]} >= {"", "0", "0/inner"}


def test_what_a_database_shows_a_server_shows_too(database: str, server: str) -> None:
    made = _ended(database, "Total", "--input", 'names=["a", "bc"]')
    for args in (["get"], ["tree"], ["why"], ["result"]):
        shown = [_json(url, "runs", *args, made) for url in (database, server)]
        assert shown[0] == shown[1]
    tasks = [_json(url, "tasks", "list", "--run", made) for url in (database, server)]
    assert tasks[0] == tasks[1]


def test_a_run_that_fails_and_is_done_again(url: str) -> None:
    made = _ended(url, "Hello", "--input", "name=bad")
    told = _afl(url, "runs", "result", made)
    assert told.exit_code == exit_codes.RUN_FAILED
    assert "there is no such name" in told.stderr
    assert "flow.afl:" in told.stderr
    again = _afl(url, "runs", "retry", made)
    assert again.exit_code == exit_codes.OK, again.stderr
    rerun = _afl(url, "runs", "rerun", made)
    assert rerun.exit_code == exit_codes.OK, rerun.stderr
    forked = _afl(url, "runs", "fork", made, "--input", "name=eve")
    assert forked.exit_code == exit_codes.OK, forked.stderr
    with Client(url) as client:
        assert client.run(id_in(forked)).result("30s") == {"text": "Hello, eve!"}


def test_cancel_pause_and_resume(url: str) -> None:
    made = id_in(_afl(url, "submit", "Wait", "--input", f"key=c {url}"))
    assert _afl(url, "runs", "pause", made).stdout == f"{made}  paused\n"
    assert _afl(url, "runs", "resume", made).exit_code == exit_codes.OK
    assert _afl(url, "runs", "cancel", made, "--force").stdout == f"{made}  canceled\n"
    refused = _afl(url, "runs", "resume", made)
    assert refused.exit_code != exit_codes.OK
    assert "has canceled already" in refused.stdout + refused.stderr


def test_events(url: str) -> None:
    made = id_in(_afl(url, "submit", "Wait", "--input", f"key=e {url}"))
    told = _afl(url, "emit", "answer", "--key", f"e {url}", "--payload", '{"n": 3}')
    assert told.exit_code == exit_codes.OK, told.stderr
    with Client(url) as client:
        assert client.run(made).result("30s") == {"answer": {"n": 3}}


def test_the_inbox(url: str) -> None:
    made = id_in(_afl(url, "submit", "Ask", "--input", f"title=for {url}"))
    with Client(url) as client:
        item = _eventually_asked(client, made)
    assert f"for {url}" in _afl(url, "inbox", "show", item).stdout
    done = _afl(url, "inbox", "answer", item, "--input", "ok=true")
    assert done.exit_code == exit_codes.OK, done.stderr
    with Client(url) as client:
        assert client.run(made).result("30s") == {"ok": True}
    late = _afl(url, "inbox", "answer", item, "--input", "ok=true")
    assert "already answered" in late.stderr


def _eventually_asked(client: Client, made: str) -> str:
    while True:
        found = [item.task for item in client.inbox().list() if item.run == made]
        if found:
            return found[0]
        client.run(made).why()


def test_schedules(url: str) -> None:
    name = f"at-{url[:4]}"
    args = ("schedules", "create", name, "Hello", "--every", "30d", "--catch-up", "all")
    assert _afl(url, *args).exit_code == exit_codes.OK
    taken = _afl(url, *args)
    assert "already" in taken.stderr
    assert _afl(url, *args, "--replace").exit_code == exit_codes.OK
    shown = _json(url, "schedules", "list")["schedules"]
    assert isinstance(shown, list)
    assert name in [each["name"] for each in shown]
    assert _afl(url, "schedules", "pause", name).exit_code == exit_codes.OK
    assert _afl(url, "schedules", "resume", name).exit_code == exit_codes.OK
    started = _afl(url, "schedules", "trigger", name)
    assert id_in(started)
    filled = _afl(url, "schedules", "backfill", name, "--from", "2026-01-01", "--to", "2026-03-01")
    assert filled.exit_code == exit_codes.OK, filled.stderr
    assert _afl(url, "schedules", "delete", name).exit_code == exit_codes.OK
    assert _afl(url, "schedules", "show", name).exit_code == exit_codes.UNREADABLE


def test_tasks_workers_and_dead_letters(url: str) -> None:
    made = _ended(url, "Hello", "--input", "name=bad")
    tasks = _json(url, "tasks", "list", "--run", made)["tasks"]
    assert isinstance(tasks, list)
    assert _afl(url, "tasks", "get", tasks[0]["id"]).exit_code == exit_codes.OK
    assert _afl(url, "tasks", "get", made[:-4] + "ffff").exit_code == exit_codes.UNREADABLE
    workers = _json(url, "workers", "list")["workers"]
    assert isinstance(workers, list)
    assert "demo.Greet" in workers[0]["handlers"]
    dead = _json(url, "dlq", "list")["tasks"]
    assert isinstance(dead, list)
    letter = next(each["id"] for each in dead if each["run"] == made)
    assert _afl(url, "dlq", "redrive", letter).exit_code == exit_codes.OK


def test_logs(database: str, server: str, tmp_path: Path) -> None:
    made = _ended(database, "Outer", "--input", "name=bob")
    spool = spool_in(tmp_path)
    # more streams than one request asks for
    for number in range(120):
        out = spool.open(StreamKey(made, f"0/a/{number}", 1, "stdout"))
        out.line(b"line of %d" % number)
        out.line(b"\xff")
        out.close()
    with stored_logs(database) as store:
        Shipment(spool.id, "w", spool.reader, DirectRoad(store), store).step(spool.end)
    spool.close()
    spool.release()
    shown = [_afl(url, "runs", "logs", made) for url in (database, server)]
    assert shown[0].stdout == shown[1].stdout
    assert len(shown[1].stdout.splitlines()) == 241, "and one of sys.log"
    picked = ("runs", "logs", made, "--step", "0/a/7", "--grep", "line")
    assert _json(database, *picked) == _json(server, *picked)
    assert _afl(server, "runs", "logs", made[:-4] + "ffff").exit_code == exit_codes.UNREADABLE


def test_deploy(url: str, tmp_path: Path) -> None:
    flow = tmp_path / "flows" / "more.afl"
    flow.parent.mkdir()
    flow.write_text("namespace more { event facet F(n: Int) => () }\n", encoding="utf-8")
    (tmp_path / "flows" / "jobs").mkdir()
    pipeline = "name: Job\ntasks:\n  one:\n    name: One\n    config: !Subprocess\n      cmd: ls\n"
    (tmp_path / "flows" / "jobs" / "job.yaml").write_text(pipeline, encoding="utf-8")
    first = _json(url, "deploy", str(flow), "--name", url)
    assert first["before"] is None
    both = _json(url, "deploy", str(tmp_path / "flows"), "--name", url)
    assert (both["before"], both["workflows"]) == (first["hash"], ["jobs.job"])
    flow.write_text("namespace more { event facet", encoding="utf-8")
    assert _afl(url, "deploy", str(flow), "--name", url).exit_code == exit_codes.FAILED


@pytest.mark.parametrize(
    "args",
    [
        ("db", "migrate"),
        ("worker",),
        ("agents", "list"),
        ("cost",),
        ("tokens", "list"),
        ("doctor",),
    ],
)
def test_what_needs_the_database_itself_says_so(server: str, args: tuple[str, ...]) -> None:
    result = run(*args, "--database", server)
    assert result.exit_code != exit_codes.OK
    assert "needs the database itself" in result.stdout + result.stderr
    assert "Traceback" not in result.stderr
