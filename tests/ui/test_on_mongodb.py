"""The dashboard on a MongoDB, in a real browser. With `TEST_STORE=mongo` more of its pages are
looked at, and the other tests here run on one, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from afl.app.migrating import migrate
from tests.cli.deployed import ON_MONGO
from tests.kernel.mongo import databases as mongo
from tests.ui.conftest import browse, dashboard_on
from tests.ui.run_scene import open_scene

pytestmark = pytest.mark.skipif(
    not mongo.server_is_there(), reason="there is no MongoDB to test with"
)


@pytest.fixture
def database(browser: None) -> Iterator[str]:
    with mongo.empty_database() as url:
        migrate(url)
        yield url


def test_every_page_does_what_it_offers(database: str, shots: Path) -> None:
    with dashboard_on(database, shots) as dashboard:
        for script in ("home", "runs", "places") if ON_MONGO else ("home",):
            assert dashboard.browse(script)["checks"]


def test_the_page_of_a_run(database: str, shots: Path) -> None:
    with open_scene(database) as scene:
        for script in ("run", "run-log") if ON_MONGO else ("run",):
            assert browse(script, scene.url, shots, {"runs": json.dumps(scene.runs)})["checks"]
