"""What runs came from, and what came from them."""

from __future__ import annotations

from tests.server.run_stage import Stage


def test_callers_and_called_runs_know_each_other(stage: Stage) -> None:
    with stage.app.worker():
        parent = stage.client.submit("shop.Parent", {"name": "A"}).id
        stage.client.run(parent).wait("30s")
    told = stage.get(f"/runs/{parent}/lineage")
    (child,) = told["children"]
    assert (child["workflow"], child["trigger"]) == ("shop.Hello", f"run:{parent}")
    assert (child["parent"], child["parent_path"]) == (parent, "0/child")
    assert told["parent"] is None
    around = stage.get(f"/runs/{child['id']}/lineage")
    assert around["parent"]["id"] == parent
    assert around["children"] == []
    step = stage.get(f"/runs/{parent}/step", path="0/child")
    assert step["child_run"] == child["id"]
    assert [each["id"] for each in stage.get("/runs", parent=parent)["items"]] == [child["id"]]
    assert [each["id"] for each in stage.get("/runs", parent="none")["items"]] == [parent]


def test_forks_are_found_when_they_have_ended_too(stage: Stage) -> None:
    with stage.app.worker():
        first = stage.client.submit("shop.Broken")
        first.wait("30s")
        retried = first.retry()
        retried.wait("30s")
        again = first.rerun()
        again.wait("30s")
    told = stage.get(f"/runs/{first.id}/lineage")
    (fork,) = told["forks"]
    assert (fork["id"], fork["forked_from"]) == (retried.id, first.id)
    assert stage.get(f"/runs/{retried.id}/lineage")["origin"]["id"] == first.id
    taken = stage.get(f"/runs/{retried.id}/step", path="0/ok")
    assert (taken["row"]["reused"], taken["row"]["attempts"]) == (first.id, 0)
    assert stage.get(f"/runs/{again.id}/lineage")["origin"] is None
