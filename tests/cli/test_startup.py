"""`afl --help` answers at once."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

from tests.cli.runner import AFL, plain_environment
from tests.pace import slowness

LIMIT_SECONDS = 0.150
RUNS = 7

#: What help must not load: slow packages, and everything that a command needs but help does not.
UNWANTED = (
    "rich",
    "structlog",
    "afl.lang",
    "afl.ir",
    "afl.cli.commands",
    "afl.cli.graph",
    "pydantic",
    "fastapi",
    "starlette",
    "uvicorn",
    "httpx",
    "sqlalchemy",
    "psycopg",
    "asyncpg",
    "pygls",
    "openai",
    "anthropic",
    "mcp",
    "asyncio",
    "importlib.metadata",
)

_LOADED = """
import json, sys
from afl.cli.main import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def _modules(*args: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, *args],
        env=plain_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Commands:" in done.stdout or args != ("--help",)
    return list(json.loads(done.stderr.splitlines()[-1]))


def _unwanted(modules: list[str], unwanted: tuple[str, ...]) -> list[str]:
    return [
        name
        for name in modules
        if any(name == prefix or name.startswith(f"{prefix}.") for prefix in unwanted)
    ]


def test_help_loads_only_what_it_needs() -> None:
    modules = _modules("--help")
    assert "click" in modules
    assert _unwanted(modules, UNWANTED) == []


def test_check_does_not_load_rich() -> None:
    modules = _modules("check", "--help")
    assert "afl.lang.api" in modules
    assert _unwanted(modules, ("rich",)) == []


def test_the_version_does_not_load_the_language() -> None:
    assert _unwanted(_modules("--version"), UNWANTED) == []


def test_help_starts_fast() -> None:
    """Processor time, not the clock on the wall: other work on the machine must not fail a test."""
    assert min(_cpu_seconds() for _ in range(RUNS)) < LIMIT_SECONDS * slowness()


def _cpu_seconds() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [AFL, "--help"],
        env=plain_environment(),
        stdout=subprocess.DEVNULL,
        timeout=60,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
