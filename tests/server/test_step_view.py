"""One step with everything about it: values, attempts, lost workers, what can be done."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from afl.kernel.model import (
    CallStatus,
    ClaimRequest,
    Close,
    Commit,
    Outcome,
    TaskId,
    WorkerId,
    WorkerSpec,
)
from afl.runtime.step import WorkflowId
from afl.runtime.superseded import Superseded
from afl.server.application import API
from tests.server.run_stage import Stage


def test_a_step_tells_what_it_was_given_and_gave(stage: Stage) -> None:
    with stage.app.worker():
        run = stage.client.submit("shop.Stuck", {"name": "A"}).id
        stage.row(run, "0/b", state="running")
        live = stage.get(f"/runs/{run}/step", path="0/b")
        assert live["input"] == {"value": {"name": "A"}, "bytes": 12, "truncated": False}
        assert live["output"] is None
        assert live["idempotency_key"] == f"{run}:0/b"
        assert live["worker"] is not None
        assert live["lease_until"] is not None
        assert live["why"]["answers"][0]["code"] == "running"
        assert live["actions"] == ["skip", "continue", "fail"]
        (attempt,) = live["attempts"]
        assert (attempt["state"], attempt["worker"]) == ("running", live["worker"])
        assert live["source_line"] == 16
        assert live["source_file"]
        waits = stage.get(f"/runs/{run}/step", path="0/then")
        assert (waits["row"]["state"], waits["row"]["why_code"]) == ("waiting", "upstream")
        assert waits["attempts"] == []
        stage.release.set()
        stage.client.run(run).wait("30s")
    done = stage.get(f"/runs/{run}/step", path="0/b")
    assert done["output"]["value"] == {"text": "A"}
    assert done["row"]["ended_at"] is not None
    assert (done["why"]["answers"][0]["code"], done["actions"]) == ("done", ["fork"])
    root = stage.get(f"/runs/{run}/step", path="")
    assert (root["row"]["kind"], root["row"]["state"]) == ("Workflow", "done")


def test_work_that_was_done_at_hand_has_its_attempt_too(stage: Stage) -> None:
    """Quick work gets no task of its own, but nobody who looks at it should have to know that."""
    with stage.app.worker():
        run = stage.client.submit("shop.Hello", {"name": "A"}).id
        stage.client.run(run).wait("30s")
    for path in ("0/greeting", "0/again"):
        told = stage.get(f"/runs/{run}/step", path=path)
        (attempt,) = told["attempts"]
        assert (attempt["number"], attempt["state"]) == (1, "done")
        assert told["idempotency_key"] == f"{run}:{path}"
    given = stage.get(f"/runs/{run}/step", path="0/yield-0")
    assert (given["attempts"], given["idempotency_key"]) == ([], None)


def test_attempts_that_failed_are_told(stage: Stage) -> None:
    with stage.app.worker():
        run = stage.client.submit("shop.Broken").id
        stage.client.run(run).wait("30s")
    told = stage.get(f"/runs/{run}/step", path="0/s")
    assert [each["state"] for each in told["attempts"]] == ["failed", "failed"]
    assert told["attempts"][-1]["error"]["message"].startswith("no luck")
    assert told["error"]["type"] == "ValueError"
    assert told["actions"] == ["retry", "fork"]
    assert stage.caller("viewer").get(
        f"{API}/runs/{run}/step", params={"path": "0/s"}
    ).json()["actions"] == []  # fmt: skip


def test_a_lost_attempt_and_the_next_are_both_there(stage: Stage) -> None:
    """A worker takes the work of a step and is never heard of again; another one does it."""
    persistence = stage.backend.services.persistence
    kernel, path = persistence.kernel, "0/a"
    with stage.app.worker():
        run = stage.client.submit("shop.Lonely").id
        stage.row(run, path, state="queued")
    # nobody sweeps now but this test
    lost, other = WorkerId("lost"), WorkerId("other")
    spec = WorkerSpec(lost, "lost", handlers=("shop.Nobody",))
    kernel.register(spec)
    (claim,) = kernel.claim(ClaimRequest(lost, ("shop.Nobody",)))
    kernel.register(replace(spec, lease=timedelta(microseconds=1)))
    row = stage.row(run, path, state="lost")
    assert row["why_code"] == "worker_lost"
    assert stage.get(f"/runs/{run}/summary")["states"] == {"lost": 1}
    stage.until(lambda: kernel.sweep().tasks_recovered)
    waits = stage.row(run, path, state="queued")
    assert waits["attempts"] == 1
    assert [part["part"] for part in waits["parts"]] == ["earlier", "queued"]
    kernel.register(WorkerSpec(other, "other", handlers=("shop.Nobody",)))
    (again,) = kernel.claim(ClaimRequest(other, ("shop.Nobody",)))
    live = stage.get(f"/runs/{run}/step", path=path)
    assert [(each["state"], each["worker"]) for each in live["attempts"]] == [
        ("lost", "lost"),
        ("running", "other"),
    ]
    kernel.commit([Commit(again.fence, Close(Outcome.SUCCESS, {"n": 2}))])
    late = Superseded(WorkflowId(run), path, "lost", CallStatus.OK, {"n": 3})
    persistence.note_superseded([late])
    with stage.app.worker():
        stage.client.run(run).wait("30s")
    done = stage.get(f"/runs/{run}/step", path=path)
    assert [each["state"] for each in done["attempts"]] == ["lost", "done"]
    assert (done["row"]["attempts"], done["output"]["value"]) == (2, {"n": 2})
    lost_part, last_part = done["row"]["parts"]
    assert (lost_part["part"], last_part["part"]) == ("lost", "running")
    assert lost_part["end"] == last_part["start"] == done["attempts"][0]["ended_at"]
    events = stage.get(f"/runs/{run}/events")["items"]
    told = {(each["kind"], each["worker"]) for each in events if each["step"] == path}
    assert {("lost", "lost"), ("superseded", "lost"), ("finished", None)} <= told
    (kept,) = stage.get(f"/runs/{run}/superseded")
    assert (kept["worker"], kept["outcome"], kept["result"]) == ("lost", "ok", {"n": 3})
    assert claim.task.id == again.task.id == TaskId(done["attempts"][0]["task"])


def test_large_values_are_cut_and_can_be_read_whole(stage: Stage) -> None:
    name = "ü" * 40_000
    with stage.app.worker():
        run = stage.client.submit("shop.Hello", {"name": name}).id
        stage.client.run(run).wait("30s")
    told = stage.get(f"/runs/{run}/step", path="0/greeting")
    assert told["input"]["truncated"]
    assert told["input"]["bytes"] == len(f'{{"name":"{name}"}}'.encode())
    assert told["input"]["value"].startswith('{"name":"üü')
    assert len(told["input"]["value"].encode()) <= 32 * 1024
    whole = stage.get(f"/runs/{run}/step/input", path="0/greeting")
    assert (whole["value"], whole["truncated"]) == ({"name": name}, False)
    given = stage.get(f"/runs/{run}/step/output", path="0/greeting")
    assert given["value"] == {"text": f"Hello {name}"}


def test_a_step_that_is_not_there_is_refused(stage: Stage) -> None:
    with stage.app.worker():
        run = stage.client.submit("shop.Hello", {"name": "A"}).id
        stage.client.run(run).wait("30s")
    for path in ("/step?path=0/nothing", "/step/input?path=0/nothing", "/step/output?path=9"):
        refused = stage.http.get(f"{API}/runs/{run}{path}")
        assert (refused.status_code, refused.json()["code"]) == (404, "runtime.unknown_step")
