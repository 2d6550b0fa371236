"""Random programs that run: every construct that has to do with order, failure and yields.

A program is text, laid out so that whatever can be left out is a line and the deeper lines below
it; `shrink` relies on that. Every callable takes `a` and gives `v` and `vs`, so all of them can
stand everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

WORKFLOW = "sim.Main"

_INDENT = "  "
_RETURNS = "(v: Int = 0, vs: [Int] = [])"
_HEAD = [
    "namespace sim {",
    "  schema Pair { v: Int, vs: [Int] }",
    "  event facet Ask(a: Int, b: Int = 2) => (v: Int, vs: [Int])",
    "  event facet Get(a: Int) => (v: Int, vs: [Int])",
    "  event facet Flaky(a: Int) => (v: Int, vs: [Int])",
    "    with Retry(max_attempts = 3, delay = 1s, jitter = false)",
    f"  facet Open(a: Int) => {_RETURNS}",
]
_RECURSIVE = [
    f"  facet Down(a: Int) => {_RETURNS}",
    "    andThen when {",
    "      case $.a > 0 => {",
    "        got = Get(a = $.a)",
    "        next = Down(a = $.a - 2)",
    "        yield Down(v = got.v, vs = [$.a] ++ next.vs)",
    "      }",
    "      case _ => {",
    "      }",
    "    }",
]
_EVENTS = ("Ask", "Get", "Flaky")


@dataclass(frozen=True, slots=True)
class _Place:
    """What can be read here, and whose lists can be yielded to."""

    numbers: tuple[str, ...]
    lists: tuple[str, ...]
    owners: tuple[str, ...]
    steps: tuple[str, ...] = ()
    depth: int = 2
    #: how likely an assertion stands in a block
    asserts: float = 0.06

    def seeing(self, numbers: tuple[str, ...], lists: tuple[str, ...] = ()) -> _Place:
        return replace(self, numbers=self.numbers + numbers, lists=self.lists + lists)


def make_program(rng: Random) -> str:
    """The text of a program whose workflow `sim.Main` needs no inputs."""
    return _Maker(rng).program()


class _Maker:
    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._names = 0
        self._callable = list(_EVENTS)
        #: how many steps may still be written
        self._budget = 0

    def program(self) -> str:
        lines = list(_HEAD)
        if self._chance(0.2):
            lines += _RECURSIVE
            self._callable.append("Down")
        for number in range(self._rng.choice((0, 1, 1, 2))):
            self._budget = 4
            kind = self._rng.choice(("facet", "facet", "workflow"))
            name = f"{'Part' if kind == 'facet' else 'Child'}{number}"
            lines += self._declaration(kind, name, "(a: Int)")
            self._callable.append(name)
        self._budget = self._rng.choice((4, 7, 10))
        lines += self._declaration("workflow", "Main", "(a: Int = 1, vs: [Int] = [4, 5, 6])")
        return "\n".join([*lines, "}"]) + "\n"

    # Declarations, clauses, catches

    def _declaration(self, kind: str, name: str, params: str) -> list[str]:
        place = _Place(("$.a",), ("$.vs",) if name == "Main" else (), (name,))
        lines = [f"{kind} {name}{params} => {_RETURNS}"]
        inside = place
        if kind == "facet" and self._chance(0.25):
            lines.append(f"{_INDENT}with {self._rng.choice(_EVENTS)}(a = $.a + 1) as mixed")
            inside = place.seeing(("$.mixed.v",), ("$.mixed.vs",))
        if self._chance(0.35):
            lines += _deeper(self._catch(place, name))
        lines += _deeper(self._clauses(inside, name))
        return _deeper(lines)

    def _clauses(self, place: _Place, owner: str) -> list[str]:
        """One or more clauses; one of them yields the single value."""
        kinds = self._rng.choices(("plain", "each", "when"), (5, 3, 3), k=self._rng.randint(1, 3))
        able = [number for number, kind in enumerate(kinds) if kind != "each"]
        single = self._rng.choice(able) if able else -1
        lines: list[str] = []
        for number, kind in enumerate(kinds):
            to = owner if number == single else ""
            if kind == "plain":
                inner, seen = self._block(place, to)
                text = "andThen"
            elif kind == "each":
                text, inner = self._foreach(place)
                seen = place
            else:
                text, inner, seen = "andThen when", self._cases(place, to), place
            lines += _braced(text, inner)
            if self._chance(0.25):
                lines += self._catch(place, to)
            place = seen
        return lines

    def _foreach(self, place: _Place) -> tuple[str, list[str]]:
        name = self._name("x")
        limit = f" limit {self._rng.choice(('1', '2'))}" if self._chance(0.4) else ""
        inner = replace(place.seeing((f"$.{name}",)), depth=place.depth - 1)
        return f"andThen foreach {name} in {self._list(place)}{limit}", self._block(inner, "")[0]

    def _cases(self, place: _Place, single: str, condition: str = "") -> list[str]:
        inner = replace(place, depth=place.depth - 1)
        lines = []
        for number in range(self._rng.choice((1, 1, 2))):
            test = condition if condition and not number else self._condition(place)
            lines += _braced(f"case {test} =>", self._block(inner, single)[0])
        return [*lines, *_braced("case _ =>", self._block(inner, single)[0])]

    def _catch(self, place: _Place, single: str) -> list[str]:
        inner = replace(place, depth=place.depth - 1, asserts=0.3)
        if self._chance(0.3):
            return _braced("catch when", self._cases(inner, single, 'error.type == "Boom"'))
        return _braced("catch", self._block(inner, single)[0])

    # Blocks and steps

    def _block(self, place: _Place, single: str) -> tuple[list[str], _Place]:
        """Statements in any order, and what can be read after them."""
        statements: list[list[str]] = []
        for _ in range(self._rng.choice((1, 2, 2, 3)) if place.depth > 0 else 0):
            if self._budget > 0:
                lines, place = self._step(place)
                statements.append(lines)
        if single and self._chance(0.9):
            statements.append([f"yield {single}(v = {self._number(place)})"])
        for owner in place.owners:
            if self._chance(0.6):
                value = self._rng.choice((f"[{self._number(place)}]", self._list(place)))
                statements.append([f"yield {owner}(vs = {value})"])
        if self._chance(place.asserts):
            statements.append([f"sys.assert({self._number(place)} < 7)"])
        if self._chance(0.05):
            statements.append([f"sys.log(v = {self._number(place)})"])
        self._rng.shuffle(statements)
        return [line for lines in statements for line in lines], place

    def _step(self, place: _Place) -> tuple[list[str], _Place]:
        self._budget -= 1
        name = self._name("s")
        after = self._after(place)
        if self._chance(0.06):
            nap = f"{name} = afl.time.Sleep(duration = {self._rng.choice((1, 5))}s){after}"
            return [nap], replace(place, steps=(*place.steps, name))
        if self._chance(0.06):
            text = f"{name} = Pair(v = {self._number(place)}, vs = {self._list(place)})"
            return [text], self._done(place, name, sure=True)
        facet = "Open" if self._chance(0.15) else self._rng.choice(self._callable)
        given = self._rng.choice((self._number(place), self._product(place)))
        lines = [f"{name} = {facet}(a = {given}){after}"]
        # a facet that is called in the body or catch of a step of its own would hide it
        plain = facet in place.owners or place.depth < 1
        caught = not plain and self._chance(0.25)
        if caught:
            to = replace(place, owners=(*place.owners[:1], facet))
            lines += _deeper(self._catch(to, facet))
        if facet == "Open" and plain:
            lines += _deeper(_braced("andThen", []))
        elif not plain and (facet == "Open" or (facet in _EVENTS and self._chance(0.15))):
            own = ((f"{name}.v",), (f"{name}.vs",)) if facet in _EVENTS else ((f"{name}.a",), ())
            to = replace(place, owners=(*place.owners[:1], facet), depth=place.depth - 1)
            lines += _deeper(self._clauses(to.seeing(*own), facet))
        return lines, self._done(place, name, sure=not caught)

    def _after(self, place: _Place) -> str:
        if place.steps and self._chance(0.15):
            return f" after {self._rng.choice(place.steps)}"
        return ""

    def _done(self, place: _Place, name: str, *, sure: bool) -> _Place:
        number, values = f"{name}.v", f"{name}.vs"
        if not sure:
            number, values = f"({number} ?? 1)", f"({values} ?? [3])"
        steps = (*place.steps, name)
        return replace(place.seeing((number,), (values,)), steps=steps)

    # Expressions

    def _number(self, place: _Place) -> str:
        # what was read last is what makes chains
        recent = place.numbers[-3:]
        kind = self._rng.random()
        if kind < 0.15:
            return str(self._rng.randint(0, 9))
        if kind < 0.6:
            return self._rng.choice(recent)
        return f"({self._rng.choice(recent)} + {self._rng.choice(place.numbers)}) % 10"

    def _product(self, place: _Place) -> str:
        """Something that may have no value: `%` by zero, or an element that is not there."""
        if self._chance(0.15):
            return f"7 % {self._rng.choice(place.numbers)}"
        if place.lists and self._chance(0.2):
            return f"{self._rng.choice(place.lists)}[0]"
        return f"{self._rng.choice(place.numbers)} * 2 + {self._rng.choice(place.numbers)}"

    def _list(self, place: _Place) -> str:
        if place.lists and self._chance(0.75):
            return self._rng.choice(place.lists[-3:])
        return f"[{self._number(place)}, 2, {self._number(place)}]"

    def _condition(self, place: _Place) -> str:
        return self._rng.choice(
            (f"{self._number(place)} > 4", f"{self._number(place)} in {self._list(place)}")
        )

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"


def _deeper(lines: list[str]) -> list[str]:
    return [f"{_INDENT}{line}" for line in lines]


def _braced(head: str, lines: list[str]) -> list[str]:
    return [f"{head} {{", *_deeper(lines), "}"]
