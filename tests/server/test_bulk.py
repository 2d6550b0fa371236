"""Actions on many runs: what they would do, and jobs that outlive their server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from afl.base.settings import Settings
from afl.server.application import API, create_app
from afl.server.backend import Backend
from afl.server.bulk.jobs import MOST_FAILURES, job_view
from afl.server.bulk.runner import BulkRunner
from afl.server.serving import open_backend
from afl.server.store import Job
from tests.server.calling import token_for
from tests.server.processes import server_process
from tests.server.shop import Shop

#: Much longer than anything here takes.
PATIENCE = 120


@pytest.fixture
def shop(backend: Backend) -> Shop:
    return Shop(backend)


@pytest.fixture
def runner(backend: Backend) -> Iterator[BulkRunner]:
    runner = BulkRunner(backend)
    yield runner
    runner.stop()


def finished(client: TestClient | httpx.Client, job: str) -> dict[str, Any]:
    """A job once it has ended."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found: dict[str, Any] = client.get(f"{API}/bulk/{job}").json()
        if found["state"] != "running":
            return found
        time.sleep(0.02)
    raise AssertionError(f"the job is at {found}")


def states(shop: Shop, *runs: str) -> list[str]:
    return [shop.backend.client.operations.get(run).state for run in runs]


class TestPreview:
    def test_it_counts_what_would_change(self, admin: TestClient, shop: Shop) -> None:
        failed = shop.failed()
        shop.handlers.clear()
        going = [shop.run(drive=False).id for _ in range(7)]
        seen = admin.post(f"{API}/bulk/preview", json={"verb": "cancel"}).json()
        assert (seen["matching"], seen["exact"]) == (7, True)
        assert [line["id"] for line in seen["sample"]] == going[:1:-1]
        assert seen["sentence"].startswith("Cancels 7 runs. ")
        retried = admin.post(f"{API}/bulk/preview", json={"verb": "retry"}).json()
        assert [line["id"] for line in retried["sample"]] == [failed.id]
        none = admin.post(f"{API}/bulk/preview", json={"verb": "retry", "state": "running"}).json()
        assert (none["matching"], none["sample"]) == (0, [])
        assert states(shop, *going) == ["created"] * 7

    def test_runs_or_a_filter(self, admin: TestClient, shop: Shop) -> None:
        run = shop.run(drive=False).id
        form = {"verb": "cancel", "runs": [run]}
        assert admin.post(f"{API}/bulk/preview", json=form).json()["matching"] == 1
        for wrong in ({**form, "workflow": "x"}, {**form, "runs": ["nothing"]}):
            assert admin.post(f"{API}/bulk/preview", json=wrong).status_code == 422


class TestJobs:
    def test_it_is_done_in_the_background(
        self, admin: TestClient, shop: Shop, runner: BulkRunner
    ) -> None:
        runs = [shop.run(drive=False).id for _ in range(5)]
        headers = {"Idempotency-Key": "k"}
        form = {"verb": "pause", "workflow": "shop.Sell"}
        started = admin.post(f"{API}/bulk", json=form, headers=headers)
        assert started.status_code == 202
        job = started.json()
        assert (job["state"], job["total"], job["done"]) == ("running", 5, 0)
        assert admin.post(f"{API}/bulk", json=form, headers=headers).json()["id"] == job["id"]
        later = shop.run(drive=False).id  # made after the job began
        runner.start()
        done = finished(admin, job["id"])
        assert (done["state"], done["done"], done["failed"]) == ("done", 5, 0)
        assert done["finished_at"] is not None
        lines = admin.get(f"{API}/runs", params={"state": "paused"}).json()["items"]
        assert {line["id"] for line in lines} == set(runs)
        assert states(shop, later) == ["created"]
        (line,) = admin.get(f"{API}/bulk").json()["items"]
        assert (line["id"], line["filter"]["workflow"], line["named"]) == (
            job["id"],
            "shop.Sell",
            0,
        )
        assert "failures" not in line

    def test_what_is_refused_is_noted(
        self, admin: TestClient, shop: Shop, runner: BulkRunner
    ) -> None:
        ended = shop.failed().id
        shop.handlers.clear()
        going = shop.run(drive=False).id
        unknown = "00000000-0000-7000-8000-000000000000"
        form = {"verb": "cancel", "runs": [ended, going, unknown], "reason": "not needed"}
        job = admin.post(f"{API}/bulk", json=form).json()
        runner.start()
        done = finished(admin, job["id"])
        assert (done["done"], done["failed"]) == (1, 2)
        assert (done["filter"], done["named"], done["reason"]) == (None, 3, "not needed")
        assert done["runs"] == form["runs"]
        assert {(each["run"], each["code"]) for each in done["failures"]} == {
            (ended, "runtime.run_ended"),
            (unknown, "runtime.unknown_run"),
        }
        assert states(shop, going) == ["canceled"]

    def test_the_list_is_read_page_by_page(self, admin: TestClient, shop: Shop) -> None:
        forms = [{"verb": "pause", "text": f"t{number}"} for number in range(7)]
        made = [admin.post(f"{API}/bulk", json=form).json()["id"] for form in forms]
        seen, cursor = [], None
        for _ in range(4):
            asked = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
            page = admin.get(f"{API}/bulk", params=asked).json()
            seen += [(line["id"], line["filter"]["text"]) for line in page["items"]]
            cursor = page["next"]
        assert cursor is None
        assert seen == [(made[number], f"t{number}") for number in reversed(range(7))]

    def test_the_server_of_the_application_does_it(self, backend: Backend, shop: Shop) -> None:
        old = shop.failed()
        headers = token_for(backend, "operator")
        with TestClient(create_app(backend), headers=headers) as client:
            job = client.post(f"{API}/bulk", json={"verb": "retry"}).json()
            assert finished(client, job["id"])["done"] == 1
        (new,) = (run for run in backend.client.operations.list() if run.id != old.id)
        assert new.fork is not None
        assert new.fork.run == old.id

    def test_what_makes_runs_is_not_done_twice(
        self, admin: TestClient, shop: Shop, runner: BulkRunner
    ) -> None:
        first, second = shop.failed().id, shop.failed().id
        store = shop.backend.store
        id_ = admin.post(f"{API}/bulk", json={"verb": "rerun"}).json()["id"]
        job = store.job(id_)
        assert job is not None
        # as a server leaves it that has ended at the newest run
        store.put_job(Job(**{**_fields(job), "cursor": f"0:{second}?"}))
        runner.start()
        done = finished(admin, id_)
        assert (done["done"], done["failed"]) == (1, 1)
        assert [(each["run"], each["code"]) for each in done["failures"]] == [
            (second, "server.unsure")
        ]
        made = [run for run in shop.backend.client.operations.list() if run.id > second]
        assert [run.inputs for run in made] == [shop.backend.client.operations.get(first).inputs]

    def test_a_tenant_acts_on_its_own(
        self, backend: Backend, shop: Shop, runner: BulkRunner
    ) -> None:
        own = shop.run(drive=False, tenant="a").id
        other = shop.run(drive=False, tenant="b").id
        a, b = (
            TestClient(create_app(backend), headers=token_for(backend, "operator", tenant))
            for tenant in "ab"
        )
        jobs = [
            a.post(f"{API}/bulk", json=form).json()["id"]
            for form in ({"verb": "cancel"}, {"verb": "pause", "runs": [other]})
        ]
        assert b.get(f"{API}/bulk/{jobs[0]}").status_code == 404
        assert b.get(f"{API}/bulk").json()["items"] == []
        runner.start()
        assert finished(a, jobs[0])["done"] == 1
        assert finished(a, jobs[1])["failures"][0]["code"] == "runtime.unknown_run"
        assert states(shop, own, other) == ["canceled", "created"]

    def test_more_failures_than_are_noted_are_counted(self, memory_backend: Backend) -> None:
        shop = Shop(memory_backend)
        client = TestClient(
            create_app(memory_backend), headers=token_for(memory_backend, "operator")
        )
        runs = [f"00000000-0000-7000-8000-{each:012x}" for each in range(MOST_FAILURES + 3)]
        job = client.post(f"{API}/bulk", json={"verb": "cancel", "runs": runs}).json()
        runner = BulkRunner(shop.backend)
        runner.start()
        try:
            done = finished(client, job["id"])
        finally:
            runner.stop()
        assert (done["failed"], len(done["failures"])) == (MOST_FAILURES + 3, MOST_FAILURES)
        kept = memory_backend.store.job(job["id"])
        assert kept is not None
        assert job_view(kept).total == MOST_FAILURES + 3


def _fields(job: Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in Job.__slots__}


class TestDeath:
    def test_another_server_goes_on(self, database_url: str) -> None:
        with open_backend(database_url, Settings(), auth=False) as backend:
            shop = Shop(backend)
            runs = [shop.run(drive=False).id for _ in range(200)]
            with server_process(database_url) as first, httpx.Client(base_url=first.url) as client:
                job = client.post(f"{API}/bulk", json={"verb": "cancel"}).json()["id"]
                while client.get(f"{API}/bulk/{job}").json()["done"] < 5:
                    pass
                first.kill()
            left = backend.store.job(job)
            assert left is not None
            assert left.state == "running"
            assert left.done < len(runs)
            with (
                server_process(database_url) as second,
                httpx.Client(base_url=second.url) as client,
            ):
                done = finished(client, job)
            assert (done["state"], done["done"], done["failed"]) == ("done", len(runs), 0)
            assert set(states(shop, *runs)) == {"canceled"}
