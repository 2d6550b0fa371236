"""The wheel has what is no code too: templates, migrations, and the dashboard if it is built."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT, SOURCE

_TOP = ("pyproject.toml", "README.md", "LICENSE", ".gitignore")
_OPTIONS = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
_PLANTED = "afl/server/static/assets/planted.js"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files of a wheel of this code, with one more file in the dashboard."""
    place = tmp_path_factory.mktemp("wheel")
    shutil.copytree(SOURCE, place / "src" / "afl", ignore=shutil.ignore_patterns("__pycache__"))
    for name in _TOP:
        shutil.copy(ROOT / name, place)
    planted = place / "src" / _PLANTED
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text("", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *_OPTIONS, "-w", "dist", "."],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (place / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


def _sources(pattern: str) -> set[str]:
    found = {path.relative_to(SOURCE.parent).as_posix() for path in SOURCE.glob(pattern)}
    assert found, pattern
    return found


def _files(folder: Path) -> set[str]:
    return {
        path.relative_to(SOURCE.parent).as_posix() for path in folder.rglob("*") if path.is_file()
    }


def test_all_templates_are_in_it(names: set[str]) -> None:
    assert _files(SOURCE / "templates") <= names


def test_all_migrations_are_in_it(names: set[str]) -> None:
    assert _sources("*/postgres/**/*.sql") <= names


def test_the_dashboard_is_in_it_though_git_ignores_it(names: set[str]) -> None:
    assert _PLANTED in names
    assert _files(SOURCE / "server" / "static") <= names


def test_pages_and_marks_of_types_are_in_it(names: set[str]) -> None:
    assert _sources("lang/diagnostics/pages/*") | {"afl/py.typed"} <= names
