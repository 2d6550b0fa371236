"""What `afl dev` finds in the sources is told on every page."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.ui.conftest import browse

_AFL = [sys.executable, "-m", "afl"]


def test_a_mistake_in_a_source_is_told(browser: None, tmp_path: Path, shots: Path) -> None:
    subprocess.run([*_AFL, "init", "demo"], cwd=tmp_path, check=True, capture_output=True)
    project = tmp_path / "demo"
    options = ["--memory", "--port", "0", "--no-browser", "--no-demo", "--json"]
    process = subprocess.Popen(
        [*_AFL, "dev", *options],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        flow = project / "flows" / "hello.afl"
        browse("dev", started["url"], shots, {"flow": str(flow)})
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
