"""Schedules over the API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from starlette.testclient import TestClient

from afl.server.application import API, create_app
from afl.server.backend import Backend
from tests.server.calling import token_for
from tests.server.shop import Shop

NIGHTLY = {"name": "nightly", "workflow": "shop.Sell", "inputs": {"cents": 3}, "every": "1h"}


@pytest.fixture
def shop(backend: Backend) -> Shop:
    return Shop(backend)


def times(texts: list[str]) -> list[datetime]:
    return [datetime.fromisoformat(text) for text in texts]


class TestMaking:
    def test_one_says_when_it_fires_next(self, admin: TestClient, shop: Shop) -> None:
        made = admin.post(f"{API}/schedules", json=NIGHTLY)
        assert made.status_code == 201, made.text
        schedule = made.json()
        assert (schedule["kind"], schedule["spec"]) == ("interval", "1h")
        assert (schedule["overlap"], schedule["catch_up"]) == ("skip", "last")
        coming = times(schedule["next"])
        assert len(coming) == 10
        assert {after - before for before, after in pairwise(coming)} == {timedelta(hours=1)}
        assert admin.get(f"{API}/schedules/nightly").json() == schedule
        assert admin.get(f"{API}/schedules").json()["items"] == [schedule]

    def test_what_is_not_possible_is_refused(self, admin: TestClient, shop: Shop) -> None:
        admin.post(f"{API}/schedules", json=NIGHTLY)
        for change in (
            {},
            {"name": "other", "every": None},
            {"name": "other", "inputs": {"dollars": 1}},
            {"name": "other", "every": None, "cron": "99 * * * *"},
            {"name": "other", "labels": {"afl.schedule": "b"}},
            {"name": "other", "overlap": "never"},
        ):
            refused = admin.post(f"{API}/schedules", json={**NIGHTLY, **change})
            assert refused.status_code == 422, refused.text
        assert admin.get(f"{API}/schedules/other").status_code == 404

    def test_its_runs_bear_its_labels(self, admin: TestClient, shop: Shop) -> None:
        labels = {"env": "prod", "team": "books"}
        made = admin.post(f"{API}/schedules", json={**NIGHTLY, "labels": labels}).json()
        assert made["labels"] == labels
        assert admin.post(f"{API}/schedules/nightly/pause").json()["labels"] == labels
        run = admin.post(f"{API}/schedules/nightly/trigger").json()
        assert {name: run["labels"][name] for name in labels} == labels
        assert (run["labels"]["afl.schedule"], run["trigger"]) == ("nightly", "schedule:nightly")
        found = admin.get(f"{API}/runs", params={"label": "team=books"}).json()["items"]
        assert [line["id"] for line in found] == [run["id"]]
        changed = {**NIGHTLY, "replace": True, "labels": {"env": "test"}}
        assert admin.post(f"{API}/schedules", json=changed).json()["labels"] == {"env": "test"}

    def test_a_preview_keeps_nothing(self, admin: TestClient, shop: Shop) -> None:
        form = {**NIGHTLY, "every": None, "cron": "0 3 * * *", "zone": "Europe/Berlin"}
        coming = times(admin.post(f"{API}/schedules/preview", json=form).json())
        assert len(coming) == 10
        assert {each.astimezone(UTC).minute for each in coming} == {0}
        once = {**NIGHTLY, "every": None, "at": "2099-01-31T09:00", "zone": "Europe/Berlin"}
        (at,) = times(admin.post(f"{API}/schedules/preview", json=once).json())
        assert at == datetime(2099, 1, 31, 8, tzinfo=UTC)
        wrong = {**form, "cron": "never"}
        assert admin.post(f"{API}/schedules/preview", json=wrong).status_code == 422
        assert admin.get(f"{API}/schedules").json()["items"] == []

    def test_pages_are_in_order_of_names(self, admin: TestClient, shop: Shop) -> None:
        for name in ("c", "a", "b"):
            admin.post(f"{API}/schedules", json={**NIGHTLY, "name": name})
        first = admin.get(f"{API}/schedules", params={"limit": 2}).json()
        rest = admin.get(f"{API}/schedules", params={"limit": 2, "cursor": first["next"]}).json()
        assert [each["name"] for each in first["items"] + rest["items"]] == ["a", "b", "c"]
        assert rest["next"] is None


class TestChanging:
    def test_it_is_paused_triggered_and_deleted(self, admin: TestClient, shop: Shop) -> None:
        admin.post(f"{API}/schedules", json=NIGHTLY)
        assert admin.post(f"{API}/schedules/nightly/pause").json()["paused"] is True
        assert admin.post(f"{API}/schedules/nightly/resume").json()["paused"] is False
        started = admin.post(f"{API}/schedules/nightly/trigger")
        assert started.status_code == 201
        assert started.json()["trigger"] == "schedule:nightly"
        (firing,) = admin.get(f"{API}/schedules/nightly").json()["history"]
        assert (firing["run"], firing["outcome"]) == (started.json()["id"], "started")
        assert admin.delete(f"{API}/schedules/nightly").status_code == 204
        assert admin.post(f"{API}/schedules/nightly/trigger").status_code == 404

    def test_a_stretch_of_time_is_run_after_all(self, admin: TestClient, shop: Shop) -> None:
        admin.post(f"{API}/schedules", json=NIGHTLY)
        now = shop.backend.services.persistence.now().replace(minute=30)
        stretch = {
            "since": (now - timedelta(hours=30)).isoformat(),
            "until": (now - timedelta(hours=4)).isoformat(),
        }
        filled = admin.post(f"{API}/schedules/nightly/backfill", json=stretch)
        assert len(filled.json()) == 26
        assert admin.post(f"{API}/schedules/nightly/backfill", json=stretch).json() == []
        assert len(admin.get(f"{API}/schedules/nightly").json()["history"]) == 20

    def test_roles(self, backend: Backend, shop: Shop) -> None:
        viewer = TestClient(create_app(backend), headers=token_for(backend, "viewer"))
        operator = TestClient(create_app(backend), headers=token_for(backend, "operator"))
        assert operator.post(f"{API}/schedules", json=NIGHTLY).status_code == 403
        assert viewer.post(f"{API}/schedules/nightly/pause").status_code == 403
        assert viewer.get(f"{API}/schedules").status_code == 200
