"""The work: flows of six kinds, and what each has to come to, as a pure function of its number.

Every step is handed a number that no other step of any flow has, so the numbers in the sink's file
tell which steps had their effect. More than one step in twenty fails: some are tried again, some
are caught, some make their run fail.
"""

from __future__ import annotations

from dataclasses import dataclass

from afl.kernel.model import Json

PROGRAM = """
namespace chaos {
  event facet Do(n: Int) => (n: Int)

  event facet Stumble(n: Int) => (n: Int)
    with Retry(max_attempts = 4, delay = 100ms, backoff = 1.0)

  event facet Risk(n: Int) => (n: Int)

  workflow Sequence(n: Int) => (n: Int) andThen {
    first = Do(n = $.n)
    second = Stumble(n = first.n + 1)
    third = Do(n = second.n + 1)
    yield Sequence(n = third.n)
  }

  workflow Join(n: Int) => (n: Int) andThen {
    left = Do(n = $.n)
    middle = Stumble(n = $.n + 1)
    right = Do(n = $.n + 2)
    last = Do(n = $.n + 3) after left, middle, right
    yield Join(n = left.n + middle.n + right.n + last.n)
  }

  workflow Each(items: [Int]) => (n: [Int]) andThen foreach item in $.items limit 3 {
    done = Do(n = $.item)
    yield Each(n = [done.n])
  }

  workflow Caught(n: Int) => (n: Int, next: Int) andThen {
    risked = Risk(n = $.n) catch {
      yield Risk(n = -1)
    }
    next = Do(n = $.n + 1) after risked
    yield Caught(n = risked.n, next = next.n)
  }

  workflow Nested(n: Int) => (n: Int) andThen {
    child = Sequence(n = $.n)
    last = Do(n = child.n + 1)
    yield Nested(n = last.n)
  }

  workflow Uncaught(n: Int) => (n: Int) andThen {
    risked = Risk(n = $.n)
    yield Uncaught(n = risked.n)
  }
}
"""
FACETS = ("chaos.Do", "chaos.Stumble", "chaos.Risk")
KINDS = ("Sequence", "Join", "Each", "Caught", "Nested", "Uncaught")
_ITEMS = 8
#: The numbers of one flow begin here, times the flow's own number.
_APART = 100


class Broken(Exception):
    """What handlers fail with here."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow to submit, and what it has to come to."""

    number: int

    @property
    def kind(self) -> str:
        return KINDS[self.number % len(KINDS)]

    @property
    def key(self) -> str:
        return f"flow-{self.number}"

    @property
    def workflow(self) -> str:
        return f"chaos.{self.kind}"

    @property
    def inputs(self) -> dict[str, Json]:
        return {"items": list(self._items)} if self.kind == "Each" else {"n": self._first}

    @property
    def outputs(self) -> dict[str, Json] | None:
        """None if it has to fail."""
        n = self._first
        match self.kind:
            case "Sequence":
                return {"n": n + 2}
            case "Join":
                return {"n": 4 * n + 6}
            case "Each":
                return {"n": list(self._items)}
            case "Caught":
                return {"n": -1 if breaks(n) else n, "next": n + 1}
            case "Nested":
                return {"n": n + 3}
            case _:
                return None if breaks(n) else {"n": n}

    @property
    def effects(self) -> range:
        """The numbers of its steps, each of which has one effect."""
        steps = {"Sequence": 3, "Join": 4, "Each": _ITEMS, "Caught": 2, "Nested": 4, "Uncaught": 1}
        return range(self._first, self._first + steps[self.kind])

    @property
    def _first(self) -> int:
        return self.number * _APART

    @property
    def _items(self) -> range:
        return range(self._first, self._first + _ITEMS)


def stumbles(n: int) -> int:
    """How often `Stumble` fails before it succeeds."""
    return 2 if n // _APART % 5 == 1 else 0


def breaks(n: int) -> bool:
    """Whether `Risk` fails."""
    return n // _APART // len(KINDS) % 2 == 0
