"""Runs started over the API, and what may keep them from going on."""

from __future__ import annotations

import pytest

from afl.server.application import API
from tests.server.run_stage import Stage


def test_a_run_is_started_once_for_a_key(stage: Stage) -> None:
    form = {"workflow": "shop.Hello", "inputs": {"name": "A"}, "key": "k", "labels": {"a": "b"}}
    first = stage.http.post(f"{API}/runs", json=form)
    assert first.status_code == 201
    run = first.json()["run"]
    assert (run["state"], run["labels"], run["tenant"]) == ("created", {"a": "b"}, "default")
    again = stage.http.post(f"{API}/runs", json=form)
    assert again.json()["run"]["id"] == run["id"]
    refused = stage.http.post(f"{API}/runs", json=form | {"conflict": "reject"})
    assert (refused.status_code, refused.json()["code"]) == (409, "runtime.run_conflict")
    other = stage.http.post(f"{API}/runs", json=form | {"conflict": "replace", "deadline": "2h"})
    assert other.json()["run"]["id"] != run["id"]
    assert stage.get(f"/runs/{run['id']}")["state"] == "canceled"


def test_what_no_worker_serves_is_told_at_once(stage: Stage) -> None:
    form = {"workflow": "shop.Waits"}
    told = stage.http.post(f"{API}/runs", json=form).json()["warnings"]
    assert len(told) == 2
    assert "`afl worker`" in told[0]
    with stage.app.worker():
        (warning,) = stage.http.post(f"{API}/runs", json=form).json()["warnings"]
        # people need no worker, and neither do timers and events
        assert warning.startswith("No live worker serves `shop.Nobody`: ")
        assert "afl worker --handlers MODULE" in warning
        fine = stage.http.post(
            f"{API}/runs", json={"workflow": "shop.Parent", "inputs": {"name": "A"}}
        )
        assert fine.json()["warnings"] == []
        stage.release.set()


@pytest.mark.parametrize(
    ("form", "status", "code"),
    [
        ({"workflow": "shop.Helo"}, 404, "runtime.unknown_facet"),
        ({"workflow": "shop.Hello"}, 422, "runtime.bad_inputs"),
        ({"workflow": "shop.Hello", "program": "other"}, 404, "runtime.unknown_program"),
        ({"workflow": "shop.Hello", "inputs": {"name": "A"}, "deadline": "soon"}, 422, "duration"),
        ({"workflow": "shop.Hello", "imputs": {}}, 422, "server.invalid"),
    ],
)
def test_what_cannot_be_started_is_refused(
    stage: Stage, form: dict[str, object], status: int, code: str
) -> None:
    refused = stage.http.post(f"{API}/runs", json=form)
    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert stage.get("/runs")["items"] == []


def test_viewers_start_nothing(stage: Stage) -> None:
    refused = stage.caller("viewer").post(f"{API}/runs", json={"workflow": "shop.Broken"})
    assert refused.status_code == 403
    assert stage.get("/runs")["items"] == []
