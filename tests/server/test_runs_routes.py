"""Lists of runs, a run on its own page, and who may see what."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from afl.bridges.turn_stores import turn_store
from afl.kernel.model import RunId, TaskId
from afl.runtime.step import WorkflowId
from afl.server.application import API
from afl.turns.model import Price, Usage, UsageEntry
from tests.server.run_stage import Stage


def _spend(stage: Stage, run: str, usd: str) -> None:
    now = datetime.now(UTC)
    entry = UsageEntry(
        task=TaskId(run),
        number=0,
        run=RunId(run),
        tenant="default",
        agent=None,
        facet=None,
        step=None,
        model="test:m",
        usage=Usage(10, 5),
        price=Price(Decimal(usd), "v1"),
        tool_calls=0,
        started_at=now,
        ended_at=now,
    )
    persistence = stage.backend.services.persistence
    store = turn_store(persistence)
    persistence.kernel.commit((), writes=lambda opened: store.record_usage(opened, entry))


def test_a_line_tells_what_a_run_came_to(stage: Stage) -> None:
    with stage.app.worker():
        done = stage.client.submit("shop.Hello", {"name": "A"}, labels={"a": "1"}, key="k")
        failed = stage.client.submit("shop.Broken", labels={"a": "1"})
        assert done.wait("30s") == "completed"
        assert failed.wait("30s") == "failed"
    _spend(stage, done.id, "0.25")
    page = stage.get("/runs", label="a=1")
    assert [line["id"] for line in page["items"]] == [failed.id, done.id]
    bad, good = page["items"]
    assert good["progress"] == {"total": 2, "done": 2, "failed": 0, "skipped": 0, "open": 0}
    assert (good["cost_usd"], bad["cost_usd"]) == (0.25, None)
    assert (good["trigger"], good["key"], good["error"]) == ("submit", "k", None)
    assert bad["progress"] == {"total": 3, "done": 1, "failed": 1, "skipped": 1, "open": 0}
    assert bad["error"] == "ValueError: no luck with 1"


def test_lists_are_filtered_and_read_page_by_page(stage: Stage) -> None:
    runs = [stage.client.submit("shop.Hello", {"name": str(n)}).id for n in range(5)]
    other = stage.client.submit("shop.Broken", labels={"team": "x"}).id
    first = stage.get("/runs", workflow="shop.Hello", limit=3)
    assert [line["id"] for line in first["items"]] == runs[:1:-1]
    second = stage.get("/runs", workflow="shop.Hello", limit=3, cursor=first["next"])
    assert [line["id"] for line in second["items"]] == runs[1::-1]
    assert second["next"] is None
    assert [each["id"] for each in stage.get("/runs", text="brok")["items"]] == [other]
    assert stage.get("/runs", state="failed")["items"] == []
    counts = stage.get("/runs/counts")
    assert {"state": "created", "count": 6} in counts["states"]
    assert (counts["total"], counts["exact"]) == (6, True)
    assert stage.get("/runs/counts", label="team=x")["total"] == 1
    late = stage.get("/runs", since="2100-01-01T00:00:00Z")
    assert late["items"] == []


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"label": "nonsense"}, "name=value"),
        ({"cursor": "nonsense"}, "no cursor"),
        ({"since": "2026-01-01T00:00:00"}, "time zone"),
        ({"state": "nonsense"}, "state"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(
    stage: Stage, params: dict[str, str], words: str
) -> None:
    refused = stage.http.get(f"{API}/runs", params=params)
    assert refused.status_code == 422
    told = refused.json()
    assert words in told["detail"] + (told["hint"] or "")


def test_runs_of_another_tenant_are_not_there(stage: Stage) -> None:
    run = stage.client.operations.submit("shop.Hello", {"name": "A"}, tenant="blue", key="k").id
    mine, other = stage.caller("admin", "blue"), stage.caller("admin", "red")
    assert [each["id"] for each in mine.get(f"{API}/runs").json()["items"]] == [run]
    assert other.get(f"{API}/runs").json()["items"] == []
    assert other.get(f"{API}/runs/counts").json()["total"] == 0
    for path in (
        "", "/why", "/lineage", "/superseded", "/export", "/summary", "/rows", "/graph", "/events",
        "/step?path=0", "/step/input?path=0", "/step/output?path=0",
    ):  # fmt: skip
        hidden = other.get(f"{API}/runs/{run}{path}")
        missing = other.get(f"{API}/runs/{run.replace(run[:8], '00000000')}{path}")
        assert (hidden.status_code, missing.status_code) == (404, 404), path
        assert hidden.json()["code"] == missing.json()["code"] == "runtime.unknown_run"
        assert hidden.json()["detail"].replace(run, "") == f"There is no run {''}."
    # the same key is another run for another tenant
    theirs = other.post(
        f"{API}/runs", json={"workflow": "shop.Hello", "inputs": {"name": "B"}, "key": "k"}
    )
    assert theirs.json()["run"]["id"] != run
    assert theirs.json()["run"]["tenant"] == "red"


def test_the_page_of_a_run_tells_why_and_what_can_be_done(stage: Stage) -> None:
    with stage.app.worker():
        run = stage.client.submit("shop.Stuck", {"name": "A"}, deadline="1h").id
        stage.row(run, "0/b", state="running")
        page = stage.get(f"/runs/{run}")
        assert page["inputs"] == {"name": "A"}
        assert (page["outputs"], page["failure"]) == (None, None)
        assert page["deadline"] is not None
        assert page["actions"] == ["cancel", "pause"]
        assert page["why"]["answers"][0]["code"] == "running"
        assert page["why"]["sentence"] == page["why"]["answers"][0]["sentence"]
        assert stage.caller("viewer").get(f"{API}/runs/{run}").json()["actions"] == []
        one = stage.get(f"/runs/{run}/why", step="0/then")
        assert one["answers"][0]["code"] == "upstream"
        stage.release.set()
        stage.client.run(run).wait("30s")
    after = stage.get(f"/runs/{run}")
    assert after["outputs"] == {"text": "Hello A"}
    assert after["mark"] != page["mark"]
    assert after["actions"] == ["rerun", "fork"]
    assert after["why"]["answers"][0]["code"] == "done"


def test_events_tell_what_happened_the_newest_first(stage: Stage) -> None:
    with stage.app.worker():
        run = stage.client.submit("shop.Broken").id
        stage.client.run(run).wait("30s")
    everything = stage.get(f"/runs/{run}/events")["items"]
    assert (everything[0]["kind"], everything[-1]["kind"]) == ("failed", "created")
    assert [each["at"] for each in everything] == sorted(
        (each["at"] for each in everything), reverse=True
    )
    told = {(each["kind"], each["step"]) for each in everything}
    assert {("started", "0/s"), ("failed", "0/s"), ("finished", "0/ok"), ("skipped", "0/t")} <= told
    paged: list[object] = []
    cursor = None
    while True:
        page = stage.get(f"/runs/{run}/events", limit=2, **({"cursor": cursor} if cursor else {}))
        paged += page["items"]
        cursor = page["next"]
        if cursor is None:
            break
    assert paged == everything
    assert stage.http.get(f"{API}/runs/{run}/events?cursor=x").status_code == 422


def test_everything_of_a_run_can_be_taken_along(stage: Stage) -> None:
    with stage.app.worker():
        run = stage.client.submit("shop.Hello", {"name": "A"}).id
        stage.client.run(run).wait("30s")
    told = stage.get(f"/runs/{run}/export")
    assert told["format"] == "afl-run"
    assert told["run"]["id"] == run
    assert stage.get(f"/runs/{run}/superseded") == []
    assert stage.backend.services.persistence.get_run(WorkflowId(run)) is not None
