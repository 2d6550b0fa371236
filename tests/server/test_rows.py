"""Windows of rows, and the summary: what every step is at, and why."""

from __future__ import annotations

from typing import Any

from afl.kernel.model import Json
from afl.server.application import API
from tests.server.run_stage import Stage


def _by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {str(row["name"]): row for row in rows}


def test_every_step_that_has_not_ended_says_why(stage: Stage) -> None:
    with stage.app.worker():
        run = stage.client.submit("shop.Waits").id
        stage.row(run, "0/busy", state="running")
        stage.row(run, "0/later", why_code="retry")
        page = stage.get(f"/runs/{run}/rows", parent="0")
        rows = _by_name(page["items"])
        assert {name: (row["state"], row["why_code"]) for name, row in rows.items()} == {
            "nap": ("waiting", "timer"),
            "signal": ("waiting", "event"),
            "person": ("needs_you", "person"),
            "nobody": ("queued", "no_worker"),
            "later": ("waiting", "retry"),
            "busy": ("running", "running"),
            "last": ("waiting", "upstream"),
        }
        assert list(rows) == ["nap", "signal", "person", "nobody", "later", "busy", "last"]
        assert all(row["why"] for row in rows.values())
        assert "`0/busy`" in str(rows["last"]["why"])
        assert page["total"] == 7
        assert page["next"] is None
        assert rows["later"]["attempts"] == 1
        parts = {name: [part["part"] for part in row["parts"]] for name, row in rows.items()}
        assert parts == {
            "nap": ["waiting"],
            "signal": ["waiting"],
            "person": ["waiting"],
            "nobody": ["queued"],
            "later": ["earlier", "retry"],
            "busy": ["running"],
            "last": [],
        }
        tried, waits = rows["later"]["parts"]
        assert (tried["start"], waits["end"]) == (rows["later"]["created_at"], None)
        assert tried["start"] < tried["end"] == waits["start"]

        summary = stage.get(f"/runs/{run}/summary")
        assert summary["states"] == {"waiting": 3, "needs_you": 1, "queued": 1, "running": 1}
        assert summary["progress"] == {
            "total": 6, "done": 0, "failed": 0, "skipped": 0, "open": 6,
        }  # fmt: skip
        graph = stage.get(f"/runs/{run}/graph")
        states = {node["name"]: node["states"] for node in graph["nodes"]}
        assert states["person"] == {"needs_you": 1}
        assert states["last"] == {}
        stage.release.set()


def test_iterations_are_read_by_their_numbers(stage: Stage) -> None:
    names: list[Json] = [f"n{number}" for number in range(12)]
    with stage.app.worker():
        run = stage.client.submit("shop.Each", {"names": names}).id
        stage.row(run, "0/1/g", state="running")
        (loop,) = stage.get(f"/runs/{run}/rows")["items"]
        assert (loop["kind"], loop["has_children"]) == ("AndMap", True)
        assert loop["tally"] == {"running": 2, "queued": 10}
        assert loop["why_code"] == "limit"
        page = stage.get(f"/runs/{run}/rows", parent="0", offset=1, limit=3)
        assert [row["path"] for row in page["items"]] == ["0/1", "0/2", "0/3"]
        assert [row["state"] for row in page["items"]] == ["running", "waiting", "waiting"]
        assert page["items"][1]["why_code"] == "limit"
        assert (page["total"], page["next"]) == (12, "4")
        stage.release.set()
        stage.client.run(run).wait("30s")
    page = stage.get(f"/runs/{run}/rows", parent="0", cursor="10", limit=5)
    assert [row["path"] for row in page["items"]] == ["0/10", "0/11"]
    assert all(row["state"] == "done" for row in page["items"])
    assert page["next"] is None
    (loop,) = stage.get(f"/runs/{run}/rows")["items"]
    assert loop["tally"] == {"done": 12}
    refused = stage.http.get(f"{API}/runs/{run}/rows", params={"parent": "0", "cursor": "x"})
    assert refused.status_code == 422


def test_rows_that_match_are_found_anywhere(stage: Stage) -> None:
    with stage.app.worker():
        run = stage.client.submit("shop.Broken").id
        stage.client.run(run).wait("30s")
    failed = stage.get(f"/runs/{run}/rows", state=["failed", "dead_letter"])
    (row,) = failed["items"]
    assert (row["path"], row["state"], row["attempts"]) == ("0/s", "dead_letter", 2)
    assert row["error"] == "ValueError: no luck with 1"
    # the first attempt and the wait after it, and then the last one
    assert [part["part"] for part in row["parts"]] == ["earlier", "failed"]
    assert row["parts"][0]["end"] == row["parts"][1]["start"]
    assert row["parts"][1]["end"] == row["ended_at"]
    summary = stage.get(f"/runs/{run}/summary")
    assert summary["states"] == {"done": 1, "dead_letter": 1, "skipped": 1}
    assert summary["progress"]["failed"] == 1
    (skipped,) = stage.get(f"/runs/{run}/rows", state="skipped")["items"]
    assert (skipped["path"], skipped["skipped_because"]) == ("0/t", "0/s")
    assert skipped["attempts"] == 0
    told = stage.get(f"/runs/{run}/events")["items"]
    # what was skipped has never started
    assert [event["kind"] for event in told if event["step"] == "0/t"] == ["skipped"]
    by_facet = stage.get(f"/runs/{run}/rows", facet="shop.Shaky")["items"]
    assert [row["path"] for row in by_facet] == ["0/s", "0/t"]
    (found,) = stage.get(f"/runs/{run}/rows", text="OK")["items"]
    assert (found["path"], found["state"]) == ("0/ok", "done")
    (first,) = stage.get(f"/runs/{run}/rows", facet="shop.Shaky", limit=1)["items"]
    assert first["path"] == "0/s"
    assert stage.get(f"/runs/{run}/rows", state="running")["items"] == []


def test_the_rows_of_one_statement(stage: Stage) -> None:
    names: list[Json] = [f"n{number}" for number in range(12)]
    stage.release.set()
    with stage.app.worker():
        run = stage.client.submit("shop.Each", {"names": names}).id
        stage.client.run(run).wait("30s")
    (loop,) = stage.get(f"/runs/{run}/rows")["items"]
    inside = _by_name(stage.get(f"/runs/{run}/rows", parent="0/3")["items"])
    statement = inside["g"]["statement"]
    assert inside["yield-0"]["statement"] != statement
    wanted = sorted(f"0/{number}/g" for number in range(12))
    for limit in (1, 5, 12, 200):
        paths: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = stage.get(f"/runs/{run}/rows", statement=statement, limit=limit, **cursor)
            assert len(page["items"]) <= limit
            assert {row["statement"] for row in page["items"]} <= {statement}
            paths += [row["path"] for row in page["items"]]
            if page["next"] is None:
                break
            cursor = {"cursor": page["next"]}
        assert paths == wanted
    both = stage.get(f"/runs/{run}/rows", statement=statement, text="0/1", state="done")
    assert [row["path"] for row in both["items"]] == ["0/1/g", "0/10/g", "0/11/g"]
    # a foreach has its own row and those of its iterations
    own = stage.get(f"/runs/{run}/rows", statement=loop["statement"])["items"]
    assert {row["path"] for row in own} == {"0", *(f"0/{number}" for number in range(12))}
    assert stage.get(f"/runs/{run}/rows", statement="nothing")["items"] == []
    assert stage.get(f"/runs/{run}/rows", statement=statement, state="failed")["items"] == []


def test_pages_go_on_where_they_ended(stage: Stage) -> None:
    with stage.app.worker():
        run = stage.client.submit("shop.Broken").id
        stage.client.run(run).wait("30s")
    paths, cursor = [], None
    while True:
        asked: dict[str, object] = {"parent": "0", "limit": 2} | (
            {} if cursor is None else {"cursor": cursor}
        )
        page = stage.get(f"/runs/{run}/rows", **asked)
        paths += [row["path"] for row in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert paths == sorted(["0/ok", "0/s", "0/t", "0/yield-0"])[: len(paths)]
    assert len(paths) == 4


def test_steps_of_a_canceled_run_are_canceled(stage: Stage) -> None:
    with stage.app.worker():
        run = stage.client.submit("shop.Waits").id
        stage.row(run, "0/busy", state="running")
        stage.client.run(run).cancel(force=True)
        rows = _by_name(stage.get(f"/runs/{run}/rows", parent="0")["items"])
        assert rows["busy"]["state"] == "canceled"
        assert "last" not in rows
        stage.release.set()


def test_a_path_that_is_not_there_is_refused(stage: Stage) -> None:
    run = stage.client.submit("shop.Hello", {"name": "A"}).id
    assert stage.get(f"/runs/{run}/rows")["items"] == []
    refused = stage.http.get(f"{API}/runs/{run}/rows", params={"parent": "0/nothing"})
    assert refused.status_code == 404
    assert refused.json()["code"] == "runtime.unknown_step"
