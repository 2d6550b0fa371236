"""The import contracts of pyproject.toml hold, and they would notice if they did not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT, SOURCE


def _lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src"), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_import_contracts_hold() -> None:
    result = _lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("planted", "complaint"),
    [
        ({"base/planted.py": "import afl.ir"}, "afl.base is not allowed to import afl.ir"),
        ({"lang/planted.py": "import os"}, "afl.lang is not allowed to import os"),
        (
            {"lang/planted.py": "import afl.base.settings"},
            "afl.lang is not allowed to import afl.base.settings",
        ),
        (
            {"ir/one.py": "import afl.base.planted", "base/planted.py": "import socket"},
            "afl.ir is not allowed to import socket",
        ),
        ({"helpers/__init__.py": ""}, "afl.helpers"),
        (
            {"ir/one.py": "import afl.ir.two", "ir/two.py": "import afl.ir.one"},
            "No cycles between siblings BROKEN",
        ),
    ],
    ids=["upward", "machine", "settings", "indirect", "unplaced", "cycle"],
)
def test_a_planted_violation_is_reported(
    tmp_path: Path, planted: dict[str, str], complaint: str
) -> None:
    package = tmp_path / "src" / "afl"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, code in planted.items():
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text(f"{code}\n", encoding="utf-8")
    result = _lint_imports(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert complaint in result.stdout
