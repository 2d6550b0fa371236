"""`afl schedules`, the schedules of `afl deploy`, and workers that fire them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import Result

from afl import Client
from afl.cli import exit_codes
from afl.runtime.schedule import Outcome
from tests.cli.deployed import FLOW, deployed_database, fresh_database, id_in, worker
from tests.cli.runner import run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import server_is_there
from tests.runtime.serving import eventually

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")

DECLARED = """
namespace nightly {
  workflow Tidy(days: Int = 30, at: Duration = 1h) => () andThen { sys.log(days = $.days) }

  schedule late = Tidy(days = 6 + 1) cron "30 2 * * mon-fri" zone "Europe/Berlin"
  schedule often = Tidy(at = 15m) every 15m
}
"""


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with deployed_database() as url:
        yield url


@pytest.fixture
def url(database: str) -> Iterator[str]:
    yield database
    with Client(database) as client:
        for schedule in client.schedules.list():
            client.schedules.delete(schedule.name)


def schedules(url: str, *args: str) -> Result:
    return run("schedules", *args, "--database", url)


def create(url: str, name: str, *args: str) -> Result:
    made = schedules(url, "create", name, "Hello", *args)
    assert made.exit_code == 0, made.stderr
    return made


def test_create_list_and_next(url: str) -> None:
    made = create(url, "nightly", "--cron", "30 2 * * *", "--zone", "Europe/Berlin", "-i", "name=x")
    assert made.stdout == "nightly\n"
    assert re.search(r"it fires first at \S+ 02:30:00 \+0[12]00 \(Europe/Berlin\)", made.stderr)
    create(url, "often", "--every", "15m", "--overlap", "allow", "--jitter", "1m")
    listed = schedules(url, "list")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["NAME", "nightly", "often"]
    assert "cron 30 2 * * *" in listed.stdout
    assert "every 15m" in listed.stdout
    page = json.loads(schedules(url, "list", "--limit", "1", "--json").stdout)
    assert page["next"] == "nightly"
    data = schedules(url, "list", "--after", "nightly", "--json")
    validate(data.stdout, "schedules")
    (often,) = json.loads(data.stdout)["schedules"]
    assert (often["name"], often["every_ms"], often["overlap"]) == ("often", 900_000, "allow")
    coming = schedules(url, "next", "nightly", "-n", "3")
    lines = coming.stdout.splitlines()
    assert lines[0].split() == ["EUROPE/BERLIN", "UTC"]
    assert all(" 02:30:00 +0" in line or " 03:00:00 +0200" in line for line in lines[1:])
    assert len(lines) == 4
    times = schedules(url, "next", "often", "--json")
    validate(times.stdout, "fire-times")
    assert len(json.loads(times.stdout)["times"]) == 5


def test_show_trigger_pause_resume_and_delete(url: str) -> None:
    create(url, "often", "--every", "15m", "-i", "name=Ada", "--label", "team=books")
    paused = schedules(url, "pause", "often", "--json")
    validate(paused.stdout, "schedules")
    assert json.loads(paused.stdout)["schedules"][0]["state"] == "paused"
    assert "it is paused" in schedules(url, "next", "often").stderr
    started = id_in(schedules(url, "trigger", "often"))
    validate(schedules(url, "trigger", "often", "--json").stdout, "firings")
    shown = schedules(url, "show", "often")
    assert "state     paused" in shown.stdout
    assert '  name = "Ada"' in shown.stdout
    assert "labels    team=books" in shown.stdout
    assert started in shown.stdout
    data = schedules(url, "show", "often", "--json")
    validate(data.stdout, "schedules")
    (schedule,) = json.loads(data.stdout)["schedules"]
    assert [each["note"] for each in schedule["firings"]] == ["triggered", "triggered"]
    assert schedule["last_run"]["state"] == "created"
    assert schedule["labels"] == {"team": "books"}
    for label in ("label.afl.schedule=often", "label.team=books"):
        assert started in run("runs", "list", "--filter", label, "--database", url).stdout
    resumed = schedules(url, "resume", "often")
    assert "resumed often: it fires next at" in resumed.stderr
    gone = schedules(url, "delete", "often", "--json")
    validate(gone.stdout, "changes")
    assert "there are no schedules" in schedules(url, "list").stderr


def test_backfill(url: str) -> None:
    create(url, "hourly", "--every", "1h", "--zone", "Europe/Berlin")
    to = datetime.now(UTC).replace(minute=1, second=0, microsecond=0) - timedelta(hours=1)
    stretch = ("--from", (to - timedelta(hours=2)).isoformat(), "--to", to.isoformat())
    plan = schedules(url, "backfill", "hourly", *stretch, "--dry-run", "--json")
    validate(plan.stdout, "firings")
    assert len(json.loads(plan.stdout)["missing"]) == 2
    assert (
        "2 runs would be started"
        in schedules(url, "backfill", "hourly", *stretch, "--dry-run").stderr
    )
    done = schedules(url, "backfill", "hourly", *stretch, "--json")
    validate(done.stdout, "firings")
    assert [each["outcome"] for each in json.loads(done.stdout)["firings"]] == ["started"] * 2
    again = schedules(url, "backfill", "hourly", *stretch)
    assert "0 runs started; 2 fire times had one" in again.stderr
    assert again.stdout == ""


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ([], exit_codes.USAGE, "give one of --cron, --every and --at"),
        (["--cron", "0 25 * * *"], exit_codes.USAGE, "in the hour, `25` is not 0 to 23"),
        (["--cron", "0 2 * * *", "--zone", "Berlin"], exit_codes.USAGE, "`Europe/Berlin`?"),
        (["--every", "10ms"], exit_codes.USAGE, "at most once a second"),
        (["--at", "2020-01-01T00:00"], exit_codes.USAGE, "would never fire"),
        (["--at", "tomorrow"], exit_codes.USAGE, "`tomorrow` is not a time"),
        (["--every", "1h", "-i", "nmae=x"], exit_codes.USAGE, "takes no input `nmae`"),
        (["--every", "1h", "--program", "x"], exit_codes.UNREADABLE, "No program is deployed as"),
    ],
    ids=str,
)
def test_what_is_wrong_says_what_to_do(url: str, args: list[str], code: int, message: str) -> None:
    result = schedules(url, "create", "s", "Hello", *args)
    assert result.exit_code == code
    assert message in result.stderr


def test_names_that_are_not_there_or_taken(url: str) -> None:
    create(url, "nightly", "--every", "1d")
    result = schedules(url, "pause", "nigthly")
    assert result.exit_code == exit_codes.UNREADABLE
    assert "Did you mean `nightly`?" in result.stderr
    taken = schedules(url, "create", "nightly", "Hello", "--every", "1h")
    assert taken.exit_code == exit_codes.USAGE
    assert "`--replace`" in taken.stderr
    create(url, "nightly", "--every", "1h", "--replace")
    unknown = schedules(url, "create", "x", "Helo", "--every", "1h")
    assert unknown.exit_code == exit_codes.UNREADABLE
    assert "did you mean" in unknown.stderr


def test_a_worker_fires_what_is_due(url: str) -> None:
    with worker(url):
        # made while the worker sleeps: it is rung for
        create(url, "fast", "--every", "1s", "--overlap", "allow")
        with Client(url) as client:

            def fired() -> bool:
                return sum(bool(each.run) for each in client.schedules.history("fast")) >= 2

            eventually(fired, "two fire times")
            history = client.schedules.history("fast")
            assert {each.outcome for each in history} == {Outcome.STARTED}
            first = history[-1].run
            assert first is not None
            assert client.run(first).result("30s") == {"text": "Hello, world!"}
            (listed,) = json.loads(schedules(url, "list", "--json").stdout)["schedules"]
            assert listed["last_run"]["state"] in ("created", "running", "completed")
            client.schedules.delete("fast")


def test_deploy_makes_the_schedules_those_of_the_program(tmp_path: Path) -> None:
    file = tmp_path / "flow.afl"

    def deploy(url: str, text: str, *args: str) -> Result:
        file.write_text(text, encoding="utf-8")
        return run("deploy", file, "--database", url, *args)

    with fresh_database() as url, Client(url) as client:
        first = deploy(url, DECLARED)
        assert "schedules created: nightly.late, nightly.often" in first.stderr
        late = client.schedules.get("nightly.late")
        assert (late.inputs, late.owner) == ({"days": 7}, "default")
        assert late.times.zone == "Europe/Berlin"
        often = client.schedules.get("nightly.often")
        assert often.inputs == {"at": 900_000}
        client.schedules.pause("nightly.often")

        again = deploy(url, DECLARED, "--json")
        validate(again.stdout, "deploy")
        assert json.loads(again.stdout)["schedules"] == {
            "created": [],
            "updated": [],
            "removed": [],
        }
        changed = DECLARED.replace("6 + 1", "8").replace("every 15m", "every 1h")
        moved = json.loads(deploy(url, changed, "--json").stdout)["schedules"]
        assert moved["updated"] == ["nightly.late", "nightly.often"]
        assert client.schedules.get("nightly.late").inputs == {"days": 8}
        assert client.schedules.get("nightly.late").next_fire == late.next_fire
        assert client.schedules.get("nightly.often").paused, "a pause outlives a deployment"

        refused = schedules(url, "delete", "nightly.late")
        assert refused.exit_code == exit_codes.USAGE
        assert "edit the source and deploy again" in refused.stderr
        listed = json.loads(schedules(url, "list", "--json").stdout)["schedules"]
        assert [each["declared_by"] for each in listed] == ["default", "default"]

        other = json.loads(deploy(url, DECLARED, "--name", "test", "--json").stdout)["schedules"]
        assert other["created"] == ["test/nightly.late", "test/nightly.often"]
        assert client.schedules.get("test/nightly.late").program == "test"

        gone = json.loads(deploy(url, FLOW, "--json").stdout)["schedules"]
        assert gone["removed"] == ["nightly.late", "nightly.often"]
        assert len(client.schedules.list()) == 2


def test_a_program_whose_schedules_are_not_possible_is_not_deployed(tmp_path: Path) -> None:
    file = tmp_path / "flow.afl"
    with fresh_database() as url, Client(url) as client:
        client.deploy(DECLARED)
        before = client.operations.program()
        file.write_text(DECLARED.replace("Europe/Berlin", "Europe/Belrin"), encoding="utf-8")
        result = run("deploy", file, "--database", url)
        assert result.exit_code == exit_codes.USAGE
        assert "Did you mean `Europe/Berlin`?" in result.stderr
        client.deploy(FLOW)
        client.schedules.create("nightly.late", "demo.Hello", every="1h")
        assert client.operations.program() != before
        file.write_text(DECLARED, encoding="utf-8")
        taken = run("deploy", file, "--database", url)
        assert "afl schedules delete nightly.late" in taken.stderr
        assert client.operations.program() != before
