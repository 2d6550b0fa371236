"""Actions on runs over the API: what they say, what they do, once, and for whom."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from starlette.testclient import TestClient

from afl.server.application import API, create_app
from afl.server.backend import Backend
from tests.server.calling import token_for
from tests.server.shop import Shop, pack, pay

#: What dry runs on a run say whose first step is done and whose second is open.
SAID: list[tuple[str, dict[str, Any], str]] = [
    ("cancel", {}, "1 open step is given up, and 1 finished step keeps its result"),
    ("cancel", {"force": True}, "loses it at once"),
    ("pause", {}, "Lets nothing more start"),
    ("resume", {}, "not paused, so nothing changes"),
    ("rerun", {}, "Nothing is taken over"),
    ("skip", {"step": "0/packed"}, "its results (`label`) are their defaults or null"),
    ("continue", {"step": "0/packed", "values": {"label": "x"}}, "with the result"),
    ("fail", {"step": "0/packed"}, "without another attempt"),
    ("skip", {"step": "0/paid"}, "has its answer already, so nothing changes"),
]


@pytest.fixture
def shop(backend: Backend) -> Shop:
    return Shop(backend)


@pytest.fixture
def operator(backend: Backend) -> TestClient:
    return TestClient(create_app(backend), headers=token_for(backend, "operator"))


def act(
    client: TestClient, run: str, verb: str, *, dry_run: bool = False, key: str = "", **form: object
) -> Any:  # noqa: ANN401 - a response
    headers = {"Idempotency-Key": key} if key else {}
    path = f"{API}/runs/{run}/actions/{verb}"
    return client.post(path, json=form, params={"dry_run": dry_run}, headers=headers)


def runs_of(shop: Shop) -> int:
    return len(shop.backend.client.operations.list(limit=100))


class TestDryRun:
    def test_a_retry_says_how_much_it_takes_over(self, operator: TestClient, shop: Shop) -> None:
        run = shop.failed()
        said = act(operator, run.id, "retry", dry_run=True).json()
        assert said["sentence"] == (
            "Starts a new run that takes over 1 finished step and does 1 failed step again. "
            "The old run stays as it is."
        )
        assert said["reused"] == 1
        assert (said["done"], said["dry_run"]) == (False, True)
        assert said["run"]["id"] == run.id
        assert said["command"] == f"afl runs retry {run.id}"
        assert runs_of(shop) == 1

    def test_nothing_is_done_to_a_run_that_goes_on(self, operator: TestClient, shop: Shop) -> None:
        shop.handlers = {"Pay": pay}
        run = shop.run()
        before = shop.backend.client.operations.export(run.id)
        for verb, form, expected in SAID:
            said = act(operator, run.id, verb, dry_run=True, **form)
            assert said.status_code == 200, said.text
            assert expected in said.json()["sentence"]
            assert shop.backend.client.operations.export(run.id) == before
        assert runs_of(shop) == 1

    def test_a_fork_says_what_is_edited(self, operator: TestClient, shop: Shop) -> None:
        run = shop.failed()
        said = act(operator, run.id, "fork", dry_run=True, values={"cents": 7}).json()
        assert "with other values for `cents`" in said["sentence"]
        assert said["command"] == f"afl runs fork {run.id} --input cents=7"

    def test_what_would_be_refused_is_refused(self, operator: TestClient, shop: Shop) -> None:
        shop.handlers = {"Pay": pay}
        run = shop.run()
        refused = act(operator, run.id, "retry", dry_run=True)
        assert (refused.status_code, refused.json()["code"]) == (409, "runtime.still_running")
        bad = act(operator, run.id, "continue", dry_run=True, step="0/packed", values={"label": 3})
        assert (bad.status_code, bad.json()["code"]) == (422, "runtime.bad_inputs")
        assert act(operator, run.id, "skip", dry_run=True).json()["code"] == "server.bad_form"


class TestDoing:
    def test_a_retry_makes_a_run_that_takes_over(self, operator: TestClient, shop: Shop) -> None:
        old = shop.failed()
        done = act(operator, old.id, "retry").json()
        shop.handlers["Pack"] = pack
        shop.done.clear()
        shop.drive()
        new = shop.backend.client.operations.get(done["run"]["id"])
        assert done["done"] is True
        assert done["run"]["forked_from"] == old.id
        assert new.state == "completed"
        assert shop.done == ["Pack"]

    def test_rerun_and_fork_make_runs(self, operator: TestClient, shop: Shop) -> None:
        old = shop.failed()
        again = act(operator, old.id, "rerun").json()["run"]
        other = act(operator, old.id, "fork", values={"cents": 5}).json()["run"]
        get = shop.backend.client.operations.get
        assert get(again["id"]).inputs == {"cents": 1}
        assert get(other["id"]).inputs == {"cents": 5}

    def test_pause_resume_and_cancel(self, operator: TestClient, shop: Shop) -> None:
        shop.handlers = {"Pay": pay}
        run = shop.run()
        states = [
            act(operator, run.id, verb).json()["run"]["state"]
            for verb in ("pause", "resume", "cancel")
        ]
        assert states == ["paused", "running", "canceled"]
        again = act(operator, run.id, "cancel").json()
        assert (again["done"], again["sentence"]) == (
            False,
            "The run is canceled already, so nothing changes.",
        )
        assert act(operator, run.id, "pause").status_code == 409

    def test_a_step_is_answered(self, operator: TestClient, shop: Shop) -> None:
        shop.handlers = {"Pay": pay}
        given: dict[str, dict[str, Any]] = {
            "skip": {},
            "continue": {"values": {"label": "x"}},
            "fail": {"reason": "not today"},
        }
        for verb, form in given.items():
            run = shop.run()
            done = act(operator, run.id, verb, step="0/packed", **form).json()
            assert done["done"] is True
            assert "/actions/" in done["command"]
            shop.drive()
            after = shop.backend.client.operations.get(run.id)
            assert after.state == ("failed" if verb == "fail" else "completed")
            late = act(operator, run.id, verb, step="0/packed", **form).json()
            assert late["done"] is False

    def test_what_cannot_stand_in_is_not_skipped(self, operator: TestClient, shop: Shop) -> None:
        run = shop.run()
        refused = act(operator, run.id, "skip", step="0/paid")
        assert (refused.status_code, refused.json()["code"]) == (409, "runtime.not_skippable")
        unknown = act(operator, run.id, "skip", step="nowhere")
        assert unknown.status_code == 404


class TestOnce:
    def test_the_same_key_does_it_once(self, operator: TestClient, shop: Shop) -> None:
        run = shop.failed()
        first = act(operator, run.id, "retry", key="k1")
        again = act(operator, run.id, "retry", key="k1")
        assert first.json() == again.json()
        assert runs_of(shop) == 2
        assert act(operator, run.id, "retry", key="k2").json()["run"] != first.json()["run"]

    def test_a_key_is_of_its_caller(
        self, operator: TestClient, shop: Shop, backend: Backend
    ) -> None:
        run = shop.failed()
        other = TestClient(create_app(backend), headers=token_for(backend, "operator", name="b"))
        one = act(operator, run.id, "rerun", key="k").json()
        two = act(other, run.id, "rerun", key="k").json()
        assert one["run"]["id"] != two["run"]["id"]

    def test_a_key_is_for_one_request(self, operator: TestClient, shop: Shop) -> None:
        run = shop.failed()
        act(operator, run.id, "rerun", key="k")
        other = act(operator, run.id, "retry", key="k")
        assert (other.status_code, other.json()["code"]) == (422, "server.bad_form")

    def test_a_refusal_is_not_kept(self, operator: TestClient, shop: Shop) -> None:
        run = shop.run()
        assert act(operator, run.id, "retry", key="k").status_code == 409
        act(operator, run.id, "cancel")
        assert act(operator, run.id, "retry", key="k").status_code == 200

    def test_at_the_same_time_too(self, operator: TestClient, shop: Shop) -> None:
        run = shop.failed()
        answers: list[Any] = []
        threads = [
            threading.Thread(
                target=lambda: answers.append(act(operator, run.id, "rerun", key="k").json())
            )
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({answer["run"]["id"] for answer in answers}) == 1
        assert runs_of(shop) == 2


class TestAccess:
    def test_a_viewer_does_nothing(self, backend: Backend, shop: Shop) -> None:
        run = shop.run()
        viewer = TestClient(create_app(backend), headers=token_for(backend, "viewer"))
        for dry_run in (True, False):
            assert act(viewer, run.id, "cancel", dry_run=dry_run).status_code == 403
        assert backend.client.operations.get(run.id).state == "running"

    def test_a_run_of_another_tenant_is_not_there(self, backend: Backend, shop: Shop) -> None:
        run = shop.run(tenant="a")
        for tenant, status in (("b", 404), ("a", 200)):
            headers = token_for(backend, "operator", tenant)
            client = TestClient(create_app(backend), headers=headers)
            answered = act(client, run.id, "cancel")
            assert answered.status_code == status
        missing = act(client, "nothing", "cancel")
        assert (missing.status_code, missing.json()["code"]) == (404, "runtime.unknown_run")
