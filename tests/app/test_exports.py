from __future__ import annotations

import subprocess
import sys

import pytest

import afl


def test_importing_the_package_loads_nothing_of_it() -> None:
    code = "import sys, afl; print([name for name in sys.modules if name.startswith('afl')])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "['afl']"


def test_the_names_are_those_of_the_sdk() -> None:
    from afl import App, Client, Context, Permanent, Retry, Run, Skip  # noqa: PLC0415

    assert [each.__name__ for each in (App, Client, Context, Run)] == [
        "App",
        "Client",
        "Context",
        "Run",
    ]
    assert all(issubclass(each, Exception) for each in (Permanent, Retry, Skip))


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Ap'"):
        _ = afl.Ap  # type: ignore[attr-defined]
