"""The pytest plugin: fixtures for tests of flows. Installed with the package.

engine      compiles flows and drives runs, in memory and on a virtual clock
stub        stands in for the work of a facet: stub("demo.Charge", returns={...}, raises=...)
clock       clock.advance("3d")
inbox       answers what people are asked: inbox.answer({"approved": True})
fake_llm    answers prompts by scripts: fake_llm.script("demo.Ask", "a text", {"answer": "yes"})
simulate    kills a flow at every commit point; it must come to the same end
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from afl.kernel.model import Json
    from afl.testing.engine import Engine
    from afl.testing.engine_clock import EngineClock
    from afl.testing.engine_inbox import EngineInbox
    from afl.testing.engine_simulation import Simulation
    from afl.testing.engine_stubs import Stub
    from afl.testing.engine_turns import FakeLlm

# Every test session loads this module, also those that test no flow: the rest comes when needed.
# ruff: noqa: PLC0415


@pytest.fixture
def engine() -> Engine:
    """An engine with nothing in it."""
    from afl.testing.engine import Engine

    return Engine()


@pytest.fixture
def stub(engine: Engine) -> Callable[..., Stub]:
    """Has something stand in for the work of a facet of the engine's program."""
    return engine.stub


@pytest.fixture
def clock(engine: Engine) -> EngineClock:
    """The clock of the engine."""
    return engine.clock


@pytest.fixture
def inbox(engine: Engine) -> EngineInbox:
    """What waits for people in the engine."""
    return engine.inbox


@pytest.fixture
def fake_llm(engine: Engine) -> FakeLlm:
    """The models of the engine, which follow scripts. Needs the extra `agents`."""
    return engine.fake_llm


@pytest.fixture
def simulate(engine: Engine) -> Callable[..., Simulation]:
    """Kills a flow at every commit point, with the program, stubs and apps of the engine."""
    from afl.testing.engine_simulation import simulate

    def run(workflow: str, inputs: Mapping[str, Json] | None = None) -> Simulation:
        return simulate(engine.prepare, workflow, inputs)

    return run
