"""What a worker asks for: as much as it has slots, of bounded names as much as their bound."""

from __future__ import annotations

import pytest

from afl.kernel.model import WorkerId
from afl.runtime.calls import EXECUTE
from afl.runtime.working.messages import Served

SERVED = Served(
    WorkerId("w"),
    ("a", "x", "y"),
    ("default",),
    slots=8,
    all_flows=True,
    bounded=frozenset(("x", "y")),
    bound=2,
)


@pytest.mark.parametrize(
    ("running", "names", "n"),
    [
        ([], ("a", "x", "y", EXECUTE), 2),
        (["a", "a"], ("a", "x", "y", EXECUTE), 2),
        (["x"], ("a", "x", "y", EXECUTE), 1),
        (["x", "y", "a"], ("a", EXECUTE), 6),
        (["x", "x", "y"], ("a", EXECUTE), 6),
    ],
)
def test_bounded_names(running: list[str], names: tuple[str, ...], n: int) -> None:
    request = SERVED.request(6, "token", is_stuck=False, running=running)
    assert request is not None
    assert (request.names, request.n) == (names, n)


def test_without_a_slot_only_runs_are_advanced() -> None:
    request = SERVED.request(0, "token", is_stuck=True, running=["a"] * 8)
    assert request is not None
    assert request.names == (EXECUTE,)
    assert SERVED.request(0, "token", is_stuck=False, running=["a"] * 8) is None
