"""Running `afl`: in this process for most tests, as a process of its own where that matters."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner, Result

from afl.cli.main import cli

AFL = Path(sys.executable).with_name("afl")


def run(
    *args: str | Path,
    input: str | bytes | None = None,
    variables: Mapping[str, str] | None = None,
) -> Result:
    """Run a command line in this process, with these settings only."""
    settings = {name: None for name in os.environ if name.startswith("AFL_")}
    plain = {**settings, "NO_COLOR": None, "COLUMNS": "100"}
    return CliRunner(env={**plain, **(variables or {})}).invoke(
        cli, [str(arg) for arg in args], input=input, prog_name="afl"
    )


def process(
    *args: str | Path,
    input: bytes = b"",
    cwd: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command line as a process."""
    return subprocess.run(
        [AFL, *args],
        input=input,
        cwd=cwd,
        env={**plain_environment(), **(variables or {})},
        capture_output=True,
        timeout=60,
        check=False,
    )


def plain_environment() -> dict[str, str]:
    """The environment without settings of AgentFlow."""
    skipped = ("AFL_", "NO_COLOR")
    return {name: value for name, value in os.environ.items() if not name.startswith(skipped)}
