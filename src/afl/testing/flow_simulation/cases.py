"""A program that is ready to be played, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from random import Random

from afl.ir.digest import program_hash
from afl.lang.api import compile_sources
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.plan import Plan
from afl.runtime.programs import Plans
from afl.testing.flow_simulation.answers import answer
from afl.testing.flow_simulation.expected import Expected
from afl.testing.flow_simulation.programs import WORKFLOW, make_program
from afl.testing.flow_simulation.reference import Reference

#: Of how many schedules each program is played.
SCHEDULES_PER_PROGRAM = 5


#: How many steps a run may have, with those of the runs that it calls.
MOST_STEPS = 100


@dataclass(frozen=True, slots=True)
class Case:
    text: str
    hash: str
    plan: Plan
    expected: Expected


class NotAccepted(Exception):
    """A text is not a program."""


@lru_cache(maxsize=8)
def case_of(text: str) -> Case:
    """Compiles a program and runs the reference."""
    compiled = compile_sources([("program.afl", text)])
    if compiled.program is None:
        raise NotAccepted(next(d.message for d in compiled.diagnostics if d.is_error))
    if all(facet.name != WORKFLOW for facet in compiled.program.facets):
        raise NotAccepted(f"there is no {WORKFLOW}")
    expected = Reference(compiled.program, answer).run(WORKFLOW, {})
    return Case(text, program_hash(compiled.program), Plan(compiled.program), expected)


@lru_cache(maxsize=8)
def text_of(number: int) -> str:
    """The program with a number: none without work, none that is large, and none whose end hangs
    on what fails first."""
    for attempt in count():
        text = make_program(Random(f"program {number} {attempt}"))
        expected = case_of(text).expected
        if expected.events and not expected.ambiguous and _size(expected) <= MOST_STEPS:
            return text
    raise AssertionError("there is always another one")


def _size(expected: Expected) -> int:
    return len(expected.rows) + sum(map(_size, expected.children.values()))


class ReadyPlans(Plans):
    """The plan of the one program there is."""

    def __init__(self, persistence: PersistenceAPI, case: Case) -> None:
        super().__init__(persistence)
        self._case = case

    def get(self, program: str) -> Plan:
        assert program == self._case.hash
        return self._case.plan
