"""The page of a run in a browser: find out what went wrong, and do something about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ui.conftest import browse
from tests.ui.run_scene import Scene, open_scene


@pytest.fixture(scope="module")
def scene(empty_database: str) -> Iterator[Scene]:
    with open_scene(empty_database) as made:
        yield made


@pytest.mark.parametrize("script", ["run", "run-actions", "run-log"])
def test_the_page_of_a_run(scene: Scene, script: str, tmp_path: Path) -> None:
    report = browse(script, scene.url, tmp_path, {"runs": json.dumps(scene.runs)})
    assert report["checks"]
