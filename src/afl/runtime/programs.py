"""Programs that are ready to run, by their hash."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from afl.ir import model as ir
from afl.ir.codec import dumps, loads
from afl.runtime.errors import UnknownProgram
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.plan import Plan

#: How many programs a process keeps ready.
KEPT = 256


class Plans:
    """Reads a program once and keeps its plan. A program never changes, so neither does a plan."""

    def __init__(self, persistence: PersistenceAPI) -> None:
        self._persistence = persistence
        self._plans: OrderedDict[str, Plan] = OrderedDict()
        self._lock = Lock()

    def add(self, program: ir.Program | str) -> str:
        """Stores a program, given as it is or as its text, and answers its hash."""
        text = program if isinstance(program, str) else dumps(program)
        digest = self._persistence.save_program(text)
        with self._lock:
            # what is kept now may have other lines
            self._plans.pop(digest, None)
        return digest

    def get(self, program: str) -> Plan:
        """The plan of the program with this hash."""
        with self._lock:
            plan = self._plans.get(program)
            if plan is not None:
                self._plans.move_to_end(program)
                return plan
        text = self._persistence.get_program(program)
        if text is None:
            raise UnknownProgram(
                f"There is no program {program}. Deploy it with `afl deploy` first."
            )
        plan = Plan(loads(text))
        with self._lock:
            self._plans[program] = plan
            while len(self._plans) > KEPT:
                self._plans.popitem(last=False)
        return plan
