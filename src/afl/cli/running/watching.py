"""Sources that are looked at again and again: of each, the last version that checks counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from afl.cli.errors import InputError
from afl.cli.reports import say_diagnostics
from afl.cli.sources import Input, compile_inputs, read_inputs
from afl.cli.terminal import Terminal
from afl.ir.model import Program
from afl.lang.api import Compilation
from afl.lang.diagnostics.model import Diagnostic


@dataclass(frozen=True, slots=True)
class Change:
    """What a look at changed sources came to.

    `diagnostics` are those of the sources as they are. `kept` are files of which an earlier version
    is in the program, `left_out` those of which none is. Without a program nothing is to be done.
    """

    program: Program | None
    diagnostics: tuple[Diagnostic, ...] = ()
    files: int = 0
    kept: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    problem: str = ""
    #: what is in the program, by file
    sources: Mapping[str, str] = field(default_factory=dict)


def say_change(change: Change, terminal: Terminal) -> None:
    """Tells people what is wrong with what has changed, and what becomes of it."""
    if change.problem:
        terminal.error(change.problem)
    elif change.diagnostics:
        say_diagnostics(change.diagnostics, change.files, terminal)
    for file in change.kept:
        terminal.say(f"{file}: the version before is kept")
    for file in change.left_out:
        terminal.say(f"{file}: left out until it checks")
    if change.program is None:
        terminal.say("nothing is deployed; what was deployed before stays")


class Watched:
    """Files and folders, as they were when they were last looked at."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._seen: list[Input] | None = None
        self._problem = ""
        self._good: dict[str, Input] = {}

    def look(self) -> Change | None:
        """What there is to do; None if nothing has changed since the last look."""
        try:
            inputs = read_inputs(self._paths)
        except InputError as error:
            # a folder that is empty, or a file that went away while it was read
            if error.message == self._problem:
                return None
            self._problem, self._seen = error.message, None
            return Change(None, problem=error.message)
        self._problem = ""
        if inputs == self._seen:
            return None
        self._seen = inputs
        return self._change(inputs)

    def _change(self, inputs: list[Input]) -> Change:
        first = compile_inputs(inputs)
        current, compilation = inputs, first
        while compilation.program is None and self._good:
            fewer = self._without_culprits(current, compilation)
            if fewer == current:
                break
            current, compilation = fewer, compile_inputs(fewer)
        names = {each.name for each in current}
        new = {each.name: each for each in inputs}
        kept = tuple(each.name for each in current if each != new[each.name])
        left_out = tuple(name for name in new if name not in names)
        if compilation.program is not None:
            self._good = {each.name: each for each in current}
        return Change(
            compilation.program,
            first.diagnostics,
            len(inputs),
            kept,
            left_out,
            sources={each.name: each.text for each in current},
        )

    def _without_culprits(self, inputs: list[Input], compilation: Compilation) -> list[Input]:
        """The sources with earlier versions of those that are to blame: changed ones in which there
        are mistakes or, if these are all in others, all that have changed."""
        changed = {each.name for each in inputs if self._good.get(each.name) != each}
        wrong = {error.primary.span.source.name for error in compilation.errors}
        culprits = changed & wrong or changed
        result = []
        for each in inputs:
            if each.name not in culprits:
                result.append(each)
            elif each.name in self._good:
                result.append(self._good[each.name])
        return result
