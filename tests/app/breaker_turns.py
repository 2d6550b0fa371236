"""Turns in a process of their own, for tests of breakers: `breaker_turns DATABASE LIST MODEL...`.

It tells that it is there, and ends with its standard input.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from datetime import timedelta

from afl.app.services import Services, connect
from afl.app.turning import Turning, TurnOptions
from afl.base.settings import Settings
from afl.messaging.breaker import CircuitBreakerConfig


def main(database: str, task_list: str, *models: str) -> None:
    # it takes seconds, and nobody shall wait for it
    importlib.import_module("afl.turns.models.openai_models")
    with connect(database) as services:
        turning = turning_of(services, task_list, models)
        turning.start()
        print("there", flush=True)
        sys.stdin.read()
        turning.stop(timedelta(seconds=10))


def turning_of(services: Services, task_list: str, models: Sequence[str]) -> Turning:
    """Turns of the prompts on a list, with a breaker that stays open."""
    options = TurnOptions(
        models=tuple(models),
        lists=(task_list,),
        targets=(),
        name=f"turns-{task_list}",
        redis_url=Settings.load().redis_url,
        breaker=CircuitBreakerConfig(failure_threshold=3, timeout_seconds=200),
    )
    return Turning(services, options)


if __name__ == "__main__":
    main(*sys.argv[1:])
