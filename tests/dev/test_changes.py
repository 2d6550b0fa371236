"""A change is noticed: by a word from the system, and without one."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Semaphore

import pytest

from afl.cli.dev.changes import Changes
from afl.cli.dev.project import Project
from tests.dev.projects import PATIENCE_SECONDS


@pytest.mark.parametrize("is_told", [True, False])
def test_a_change_is_noticed(
    is_told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_told:
        monkeypatch.setitem(sys.modules, "watchfiles", None)
    (tmp_path / "flows").mkdir()
    project = Project(tmp_path)
    seen = Semaphore(0)
    known = project.flows(), project.code()

    def look() -> None:
        nonlocal known
        found = project.flows(), project.code()
        if found != known:
            known = found
            seen.release()

    changes = Changes(project, look)
    assert changes.is_told is is_told
    changes.start()
    try:
        for name in ("flows/a.afl", "handlers.py", "lib/deep/words.py"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("one", encoding="utf-8")
            assert seen.acquire(timeout=PATIENCE_SECONDS), name
        (tmp_path / "lib" / "deep" / "words.py").write_text("another", encoding="utf-8")
        assert seen.acquire(timeout=PATIENCE_SECONDS)
    finally:
        changes.stop()


def test_a_look_that_fails_is_not_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    looked = Semaphore(0)

    def look() -> None:
        looked.release()
        raise ValueError("not now")

    changes = Changes(Project(tmp_path), look)
    changes.start()
    try:
        assert looked.acquire(timeout=PATIENCE_SECONDS)
        assert looked.acquire(timeout=PATIENCE_SECONDS)
    finally:
        changes.stop()
    assert "not now" in caplog.text
