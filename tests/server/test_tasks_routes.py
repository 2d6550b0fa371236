"""Tasks, dead letters, workers and queues over the API."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from afl.kernel.errors import NotFound
from afl.kernel.model import (
    ClaimRequest,
    Close,
    Commit,
    Outcome,
    TaskSpec,
    WorkerId,
    WorkerSpec,
    WorkerState,
)
from afl.server.application import API, create_app
from afl.server.backend import Backend
from tests.server.calling import token_for
from tests.server.shop import Shop, pay

SHORT = timedelta(milliseconds=1)


@pytest.fixture
def shop(backend: Backend) -> Shop:
    return Shop(backend)


def get(client: TestClient, path: str, **params: str | int) -> Any:  # noqa: ANN401 - JSON
    answer = client.get(f"{API}{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


class TestTasks:
    def test_pages_follow_each_other(self, admin: TestClient, shop: Shop) -> None:
        shop.handlers = {"Pay": pay}
        for cents in range(3):
            shop.run(cents)
        seen: list[str] = []
        cursor = None
        while True:
            page = get(admin, "/tasks", limit=2, **({"cursor": cursor} if cursor else {}))
            seen += [task["id"] for task in page["items"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert seen == sorted(seen)
        assert len(set(seen)) == len(seen) == 9

    def test_a_task_says_its_run_and_step_and_why(self, admin: TestClient, shop: Shop) -> None:
        shop.handlers = {"Pay": pay}
        run = shop.run()
        (task,) = get(admin, "/tasks", run=run.id, state="ready")["items"]
        assert get(admin, "/tasks", state="ready") == {"items": [task], "next": None}
        assert (task["run"], task["step"], task["name"]) == (run.id, "0/packed", "shop.Pack")
        assert "No live worker serves `shop.Pack`" in get(admin, f"/tasks/{task['id']}")["reason"]
        done = get(admin, "/tasks", run=run.id, outcome="success")["items"]
        assert [each["name"] for each in done] == ["shop.Pay"]

    def test_words_that_are_none_are_refused(self, admin: TestClient, shop: Shop) -> None:
        for params in ({"state": "lost"}, {"outcome": "won"}, {"cursor": "x"}):
            refused = admin.get(f"{API}/tasks", params=params)
            assert (refused.status_code, refused.json()["code"]) == (422, "server.bad_form")
        assert admin.get(f"{API}/tasks/nothing").status_code == 404

    def test_a_tenant_does_not_see_the_queue(self, backend: Backend) -> None:
        client = TestClient(create_app(backend), headers=token_for(backend, "admin", "a"))
        for path in ("/tasks", "/dead-letters", "/workers", "/queues"):
            assert client.get(f"{API}{path}").status_code == 403


class TestDeadLetters:
    def test_they_are_driven_again_once(self, admin: TestClient, backend: Backend) -> None:
        kernel = backend.services.persistence.kernel
        (task,) = kernel.enqueue([TaskSpec("event", "shop.Pay", max_crashes=0)])
        kernel.register(WorkerSpec(WorkerId("w"), "w", lease=timedelta(milliseconds=50)))
        claimed = False
        while not kernel.dead_letters():
            with suppress(NotFound):  # its lease may be over before it claims
                if not claimed:
                    kernel.renew(WorkerId("w"))
                    claimed = bool(kernel.claim(ClaimRequest(WorkerId("w"), ("shop.Pay",))))
            kernel.sweep()
        (letter,) = get(admin, "/dead-letters")["items"]
        assert letter["id"] == task.id
        first = admin.post(f"{API}/dead-letters/{task.id}/redrive").json()
        again = admin.post(f"{API}/dead-letters/{task.id}/redrive").json()
        assert first["id"] == again["id"] != task.id
        assert get(admin, "/dead-letters")["items"] == []
        assert admin.post(f"{API}/dead-letters/{first['id']}/redrive").status_code == 422
        assert admin.post(f"{API}/dead-letters/nothing/redrive").status_code == 404


class TestWorkers:
    def test_each_state_has_a_word(self, admin: TestClient, backend: Backend) -> None:
        kernel = backend.services.persistence.kernel
        for name in ("busy", "draining", "failed", "gone", "idle", "stale", "starting"):
            lease = SHORT if name in ("gone", "stale", "failed") else timedelta(minutes=5)
            kernel.register(WorkerSpec(WorkerId(name), name, handlers=("Pay",), lease=lease))
        for name, state in (
            ("idle", WorkerState.RUNNING),
            ("busy", WorkerState.RUNNING),
            ("stale", WorkerState.RUNNING),
            ("draining", WorkerState.SHUTDOWN),
            ("gone", WorkerState.SHUTDOWN),
            ("failed", WorkerState.ERROR),
        ):
            kernel.set_worker_state(WorkerId(name), state)
        kernel.enqueue([TaskSpec("event", "shop.Pay")])
        (claim,) = kernel.claim(ClaimRequest(WorkerId("busy"), ("Pay",)))
        found = {each["id"]: each for each in get(admin, "/workers")}
        assert {name: each["state"] for name, each in found.items()} == {
            name: name for name in ("busy", "draining", "failed", "idle", "stale", "starting")
        }
        assert [task["id"] for task in found["busy"]["tasks"]] == [claim.task.id]
        kernel.commit([Commit(claim.fence, Close(Outcome.SUCCESS))])
        assert {each["id"]: each for each in get(admin, "/workers")}["busy"]["state"] == "idle"

    def test_one_is_drained(self, admin: TestClient, backend: Backend) -> None:
        kernel = backend.services.persistence.kernel
        kernel.register(WorkerSpec(WorkerId("w"), "w"))
        drained = admin.post(f"{API}/workers/w/drain")
        assert drained.json()["state"] == "draining"
        found = kernel.get_worker(WorkerId("w"))
        assert found is not None
        assert found.state is WorkerState.SHUTDOWN
        assert admin.post(f"{API}/workers/nobody/drain").status_code == 404


class TestQueues:
    def test_a_list_says_what_waits_and_who_is_missing(
        self, admin: TestClient, backend: Backend
    ) -> None:
        kernel = backend.services.persistence.kernel
        kernel.enqueue(
            [
                TaskSpec("event", "shop.Pay", list="money"),
                TaskSpec("event", "shop.Pay", list="money", priority=5),
                TaskSpec("event", "shop.Refund", list="money"),
                TaskSpec("event", "shop.Pay", list="money", delay=timedelta(hours=1)),
                TaskSpec("event", "shop.Lone", list="money", lane="one"),
                TaskSpec("event", "shop.Lone", list="money", lane="one"),
                TaskSpec("timer", "afl:nap", list="afl.timers"),
            ]
        )
        kernel.register(
            WorkerSpec(WorkerId("w"), "w", lists=("money", "idle"), handlers=("Pay", "Lone"))
        )
        kernel.claim(ClaimRequest(WorkerId("w"), ("Pay",), ("money",)))
        queues = {each["name"]: each for each in get(admin, "/queues")}
        assert set(queues) == {"money", "idle"}
        money = queues["money"]
        assert (money["ready"], money["running"], money["waiting"]) == (3, 1, 2)
        assert (money["workers"], money["unserved"]) == (1, ["shop.Refund"])
        assert money["oldest_ready_at"] is not None
        assert (queues["idle"]["ready"], queues["idle"]["oldest_ready_at"]) == (0, None)

    def test_a_queue_without_a_worker_is_told(self, admin: TestClient, shop: Shop) -> None:
        shop.run()
        (queue,) = get(admin, "/queues")
        assert (queue["ready"], queue["unserved"]) == (1, ["shop.Pay"])
