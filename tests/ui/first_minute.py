"""The first minute of a new user: a wheel in a clean environment, three commands, a green run.

    python -m tests.ui.first_minute

installs the wheel with everything from the package index. The last line is a JSON object.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from tests.architecture.repository import ROOT
from tests.ui.browsing import node

UI = ROOT / "ui"
_PIP = ("--disable-pip-version-check", "--quiet")
_SOURCES = ("pyproject.toml", "README.md", "LICENSE", ".gitignore", "src")
_NOT_SHIPPED = shutil.ignore_patterns("__pycache__", "*.egg-info")


@dataclass(frozen=True, slots=True)
class Minute:
    """In seconds, from the first command on; the diagnostics from the moment of saving on."""

    dashboard: float
    green: float
    diagnostics: float


def wheel(place: Path) -> Path:
    """The wheel of this checkout, with the dashboard that is built in it."""
    source = place / "source"
    source.mkdir()
    for name in _SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=_NOT_SHIPPED)
        else:
            shutil.copy(ROOT / name, source)
    options = ("--no-deps", "--no-build-isolation", "--no-index", *_PIP)
    _run([sys.executable, "-m", "pip", "wheel", *options, "-w", str(place), str(source)])
    (made,) = place.glob("*.whl")
    return made


def environment(place: Path, package: Path, *, from_index: bool) -> Path:
    """The programs of a fresh virtual environment that has the wheel.

    Args:
        from_index: install what it needs, as a user does; else use the libraries that are here.
    """
    home = place / "venv"
    _run([sys.executable, "-m", "venv", str(home)])
    python = home / "bin" / "python"
    if from_index:
        _run([str(python), "-m", "pip", "install", *_PIP, f"{package}[all]"])
        return home / "bin"
    _run([str(python), "-m", "pip", "install", "--no-deps", "--no-index", *_PIP, str(package)])
    # behind its own packages: it is the wheel's code that runs
    (site,) = home.glob("lib/*/site-packages")
    (site / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return home / "bin"


def walk(programs: Path, place: Path) -> Minute:
    """`afl init demo && cd demo && afl dev`, and a browser that looks."""
    start = monotonic()
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AFL_", "PYTHON", "VIRTUAL_ENV"))
    }
    afl = str(programs / "afl")
    _run([afl, "init", "demo"], cwd=place, env=variables)
    project = place / "demo"
    server = subprocess.Popen(
        [afl, "dev", "--port", "0", "--no-browser", "--json"],
        cwd=project,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        up = monotonic() - start
        flow = project / "flows" / "hello.afl"
        told = _run(
            [node(), "e2e/minute.mjs"],
            cwd=UI,
            env={**os.environ, "BASE_URL": url, "FLOW": str(flow)},
        )
        report = json.loads(told.splitlines()[-1])
        assert report["failures"] == [], report
        return Minute(up, up + report["green"], report["diagnostics"])
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)


def _run(command: list[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def main() -> None:
    with TemporaryDirectory() as made:
        place = Path(made)
        package = wheel(place)
        start = monotonic()
        programs = environment(place, package, from_index=True)
        installed = monotonic() - start
        minute = walk(programs, place)
    print(f"{'installed after':<28}{installed:8.1f} s")
    print(f"{'dashboard after':<28}{minute.dashboard:8.1f} s")
    print(f"{'green run after':<28}{minute.green:8.1f} s")
    print(f"{'diagnostics after saving':<28}{minute.diagnostics:8.1f} s")
    print(json.dumps({"installed_s": round(installed, 1), **asdict(minute)}))


if __name__ == "__main__":
    main()
