"""Makes a failing schedule smaller: fewer pieces of work, and fewer faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from afl.testing.simulation.run import Result
from afl.testing.simulation.scheduler import Plan

Play = Callable[[Plan], Result]


def shrink(failed: Result, play: Play, tries: int = 400) -> Result:
    """The smallest schedule found that breaks the same promise. It plays at most `tries` others."""
    shrinker = _Shrinker(failed, play, tries)
    size = None
    while size != shrinker.size:
        size = shrinker.size
        shrinker.drop_faults()
        shrinker.drop_work()
    return shrinker.best


class _Shrinker:
    def __init__(self, failed: Result, play: Play, tries: int) -> None:
        self.best = failed
        self._play = play
        self._tries = tries

    @property
    def size(self) -> tuple[int, int]:
        return len(self.best.pieces), len(self.best.tape)

    def drop_work(self) -> None:
        """Whole trees first: a shorter path is a larger piece."""
        for path in sorted(self.best.pieces, key=lambda path: (len(path), path)):
            if path in self.best.pieces:
                plan = self.best.plan
                self._try(replace(plan, without=plan.without | {path}))

    def drop_faults(self) -> None:
        """Halves, then quarters, down to single faults, as long as something can go."""
        size = max(1, len(self.best.tape) // 2)
        while size:
            position = 0
            while position < len(self.best.tape):
                ids = [entry.id for entry in self.best.tape]
                kept = frozenset(ids[:position] + ids[position + size :])
                if not self._try(replace(self.best.plan, only=kept)):
                    position += size
            size //= 2

    def _try(self, plan: Plan) -> bool:
        """Whether a smaller plan fails in the same way; then it is the best so far."""
        if self._tries <= 0:
            return False
        self._tries -= 1
        result = self._play(plan)
        if result.rule != self.best.rule:
            return False
        self.best = result
        return True
