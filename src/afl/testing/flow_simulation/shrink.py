"""Makes a failing schedule smaller: a shorter program, and fewer faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from afl.testing.flow_simulation.cases import NotAccepted, case_of
from afl.testing.flow_simulation.run import Result
from afl.testing.flow_simulation.scheduler import Plan

Play = Callable[[Plan], Result]


def shrink(failed: Result, play: Play, tries: int = 600) -> Result:
    """The smallest schedule found that breaks the same promise. It plays at most `tries` others."""
    shrinker = _Shrinker(failed, play, tries)
    size = None
    while size != shrinker.size:
        size = shrinker.size
        shrinker.drop_faults()
        shrinker.drop_lines()
    return shrinker.best


class _Shrinker:
    def __init__(self, failed: Result, play: Play, tries: int) -> None:
        self.best = failed
        self._play = play
        self._tries = tries

    @property
    def size(self) -> tuple[int, int]:
        return len(self.best.plan.program), len(self.best.tape)

    def drop_lines(self) -> None:
        """Leaves out a line with all that is deeper below it, wherever a program remains."""
        at = 0
        while at < len(lines := self.best.plan.program.splitlines()):
            kept = lines[:at] + lines[end_of_unit(lines, at) :]
            if not self._try(replace(self.best.plan, text="\n".join(kept) + "\n")):
                at += 1

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
        try:
            if self._tries <= 0 or case_of(plan.program).expected.ambiguous:
                return False
        except NotAccepted:
            return False
        self._tries -= 1
        result = self._play(plan)
        if result.rule != self.best.rule:
            return False
        self.best = result
        return True


def end_of_unit(lines: list[str], start: int) -> int:
    """Where what begins in a line ends: behind the deeper lines, and the brace that closes them."""
    depth = _depth(lines[start])
    end = start + 1
    while end < len(lines) and _depth(lines[end]) > depth:
        end += 1
    if end < len(lines) and lines[end].strip() == "}" and _depth(lines[end]) == depth:
        end += 1
    return end


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
