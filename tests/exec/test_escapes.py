"""Nothing gets out of the sandbox."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from uuid import uuid4

import pytest

from afl.exec.model import Outcome
from afl.exec.process import run
from afl.exec.python import python_command, result_of
from afl.exec.sandbox import Sandbox
from afl.kernel.model import Json
from tests.exec.escapes import ALONE, ENDLESS, ESCAPES, MANY, TOOLS
from tests.exec.worlds import outside, processes_with, sandbox_or_skip

#: Those of x86_64 use its numbers of system calls.
_NATIVE = [
    name
    for name, code in ESCAPES.items()
    if platform.machine() == "x86_64" or ("libc.syscall(" not in code and "32_bits" not in name)
]
_TOGETHER = [name for name in _NATIVE if name not in ALONE]


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return sandbox_or_skip()


@pytest.fixture(scope="module")
def marker() -> str:
    return f"marker-{uuid4().hex}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, marker: str) -> Iterator[dict[str, Json]]:
    with (
        outside(tmp_path_factory.mktemp("outside"), marker) as there,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SECRET_OF_THE_WORKER", marker)
        yield there


@pytest.fixture(scope="module")
def told(sandbox: Sandbox, world: dict[str, Json], marker: str) -> dict[str, list[str]]:
    """What became of the attempts that were made in one sandbox."""
    attempts: Json = {name: ESCAPES[name] for name in _TOGETHER}
    outcome = attempt(sandbox, MANY, {**world, "attempts": attempts}, 60.0)
    assert outcome.exit_code == 0, outcome.stderr.text
    assert left_with(marker, world) == []
    result = result_of(outcome)
    assert isinstance(result, dict)
    return {
        name: [str(part) for part in each]
        for name, each in result.items()
        if isinstance(each, list)
    }


def attempt(sandbox: Sandbox, code: str, world: dict[str, Json], seconds: float) -> Outcome:
    names: dict[str, Json] = {"inputs": world, "result": None}
    return run(
        python_command(sandbox, TOOLS + code, names, title="attempt", timeout_seconds=seconds)
    )


def left_with(marker: str, world: dict[str, Json]) -> list[int]:
    """What attempts have left behind on this machine."""
    return [pid for pid in processes_with(marker) if pid != world["victim"]]


def test_there_are_enough_of_them() -> None:
    assert len(ESCAPES) >= 40


@pytest.mark.parametrize("name", _TOGETHER)
def test_an_attempt_fails(name: str, told: dict[str, list[str]]) -> None:
    how, what = told[name]
    assert how == "raised" or what in ("", "SIGSYS", "SIGKILL"), what
    # an attempt that cannot even be made proves nothing
    assert not what.startswith(("NameError", "SyntaxError", "TypeError", "AttributeError")), what


@pytest.mark.parametrize("name", ALONE)
def test_an_attempt_to_take_over_fails(
    name: str, sandbox: Sandbox, world: dict[str, Json], marker: str
) -> None:
    outcome = attempt(sandbox, ESCAPES[name], world, ALONE[name])
    assert outcome.timed_out == (name in ENDLESS), outcome.stderr.text
    if outcome.exit_code == 0:
        assert not result_of(outcome), outcome.stderr.text
    assert left_with(marker, world) == []


def test_outside_the_attempts_would_succeed(world: dict[str, Json], marker: str) -> None:
    """The corpus is worth something only if there is something to get at."""
    found = {}
    for name in ("read_planted_secret", "connect_to_loopback", "connect_to_abstract_socket"):
        scope: dict[str, object] = {"inputs": world, "result": None}
        exec(compile(TOOLS + ESCAPES[name], name, "exec"), scope)  # noqa: S102 - our own code
        found[name] = scope["result"]
    assert found == {
        "read_planted_secret": f"{marker} of the worker",
        "connect_to_loopback": True,
        "connect_to_abstract_socket": True,
    }
