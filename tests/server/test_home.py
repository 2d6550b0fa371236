"""The first page: what is wrong, what waits, what was spent."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from starlette.testclient import TestClient

from afl.bridges.turn_stores import turn_store
from afl.kernel.model import (
    ClaimRequest,
    RunId,
    TaskId,
    TaskSpec,
    WorkerId,
    WorkerSpec,
    WorkerState,
)
from afl.server.application import API, create_app
from afl.server.backend import Backend
from afl.turns.model import Price, Usage, UsageEntry
from tests.server.calling import token_for
from tests.server.shop import Shop, pack, pay

ASKING = """
namespace shop {
  event facet Approve(title: String) => (approved: Boolean) with Human(group = "shop")
  workflow Ask() => (approved: Boolean) andThen {
    sure = Approve(title = "sell")
    yield Ask(approved = sure.approved)
  }
}
"""


@pytest.fixture
def shop(backend: Backend) -> Shop:
    return Shop(backend)


def home(client: TestClient) -> dict[str, Any]:
    answer = client.get(f"{API}/home")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ids(lines: list[dict[str, Any]]) -> list[str]:
    return [line["id"] for line in lines]


class TestHome:
    def test_it_is_new_until_something_is_deployed(
        self, admin: TestClient, backend: Backend
    ) -> None:
        found = home(admin)
        assert found["is_new"] is True
        assert found["recent"] == found["stuck"] == found["failing"] == []
        Shop(backend)
        assert home(admin)["is_new"] is False

    def test_runs_are_counted_and_the_last_ones_told(self, admin: TestClient, shop: Shop) -> None:
        failed = shop.failed()
        shop.handlers["Pack"] = pack
        done = shop.run()
        before = home(admin)
        assert before["counts"] == {"completed": 1, "failed": 1}
        assert ids(before["failing"]) == [failed.id]
        assert ids(before["recent"]) == [done.id, failed.id]
        assert home(admin)["mark"] == before["mark"]
        shop.run()
        assert home(admin)["mark"] != before["mark"]

    def test_a_run_that_nobody_serves_is_stuck(self, admin: TestClient, shop: Shop) -> None:
        shop.handlers = {"Pay": pay}
        run, paused = shop.run(), shop.run()
        shop.backend.client.operations.pause(paused.id)
        found = home(admin)
        assert ids(found["stuck"]) == [run.id]
        assert found["unserved"] == ["shop.Pack"]
        assert found["queue_depth"] == 2
        assert found["oldest_ready_at"] is not None
        kernel = shop.backend.services.persistence.kernel
        kernel.register(WorkerSpec(WorkerId("w"), "w", handlers=("Pack",)))
        after = home(admin)
        assert (after["stuck"], after["unserved"]) == ([], [])
        assert after["workers_live"] == 2  # and the one that advances runs

    def test_a_run_whose_worker_is_lost_is_stuck(self, admin: TestClient, shop: Shop) -> None:
        shop.handlers = {"Pay": pay}
        run = shop.run()
        kernel = shop.backend.services.persistence.kernel
        spec = WorkerSpec(WorkerId("w"), "w", handlers=("Pack",), lease=timedelta(minutes=5))
        kernel.register(spec)
        kernel.claim(ClaimRequest(WorkerId("w"), ("Pack",)))
        assert home(admin)["stuck"] == []
        # as its lease has run out, and no sweep has come by yet
        kernel.set_worker_state(WorkerId("w"), WorkerState.ERROR)
        found = home(admin)
        assert ids(found["stuck"]) == [run.id]
        assert (found["workers_live"], found["workers_stale"]) == (1, 1)

    def test_a_spent_budget_and_an_open_breaker_keep_runs_waiting(
        self, admin: TestClient, shop: Shop
    ) -> None:
        kernel = shop.backend.services.persistence.kernel
        kernel.register(WorkerSpec(WorkerId("w"), "w", handlers=("Pay",)))
        held, broken = shop.run(), shop.run()
        kernel.enqueue(
            [
                TaskSpec("budget", "afl:budget", list="afl.budgets", input={"run": held.id}),
                TaskSpec("timer", "afl:breaker", list="afl.timers", input={"run": broken.id}),
            ]
        )
        assert set(ids(home(admin)["stuck"])) == {held.id, broken.id}

    def test_what_waits_for_people_is_counted(self, admin: TestClient, shop: Shop) -> None:
        shop.backend.client.deploy(ASKING, "asking")
        shop.backend.client.submit("shop.Ask", program="asking")
        shop.drive()
        assert home(admin)["needs_you"] == 1

    def test_dead_letters_are_counted(self, admin: TestClient, shop: Shop) -> None:
        shop.failed()
        assert home(admin)["dead_letters"] == len(
            shop.backend.services.persistence.kernel.dead_letters()
        )

    def test_a_tenant_sees_its_own(self, backend: Backend, shop: Shop) -> None:
        shop.handlers = {"Pay": pay}
        own, _other = shop.run(tenant="a"), shop.run(tenant="b")
        headers = token_for(backend, "viewer", "a")
        found = home(TestClient(create_app(backend), headers=headers))
        assert found["counts"] == {"running": 1}
        assert ids(found["recent"]) == ids(found["stuck"]) == [own.id]
        assert found["queue_depth"] == found["dead_letters"] == 0
        assert found["unserved"] == ["shop.Pack"]


def test_spend_is_that_of_the_tenants_that_a_caller_sees(
    admin: TestClient, backend: Backend
) -> None:
    for number, (tenant, usd) in enumerate((("default", "0.25"), ("a", "0.5"), ("b", "1"))):
        spend(backend, number, tenant, usd)
    app = create_app(backend)
    narrow = TestClient(app, headers=token_for(backend, "viewer", "a"))
    other = TestClient(app, headers=token_for(backend, "viewer", "c"))
    for client, spent in ((admin, 1.75), (narrow, 0.5), (other, 0.0)):
        told = home(client)["spend"]
        assert (told["today_usd"], told["week_usd"]) == (spent, spent)
        lines = client.get(f"{API}/cost", params={"by": "day"}).json()
        assert sum(line["cost_usd"] for line in lines) == spent
    by_model = admin.get(f"{API}/cost", params={"by": "model", "since": "1d"}).json()
    assert [(line["key"], line["cost_usd"]) for line in by_model] == [("test:m", 1.75)]


def spend(backend: Backend, number: int, tenant: str, usd: str) -> None:
    persistence = backend.services.persistence
    now = persistence.now()
    entry = UsageEntry(
        task=TaskId(f"00000000-0000-7000-8000-{number:012}"),
        number=0,
        run=RunId(f"r{number}"),
        tenant=tenant,
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
    store = turn_store(persistence)
    persistence.kernel.commit((), writes=lambda opened: store.record_usage(opened, entry))
