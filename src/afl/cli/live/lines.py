"""The tree of a run as lines, in the order of the program.

Blocks are for the engine; people see steps, iterations and cases. What goes well in a `foreach` is
counted, and what does not is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from afl.runtime.entities import Run
from afl.runtime.operations import Operations
from afl.runtime.persistence import Needed
from afl.runtime.states import ObjectType
from afl.runtime.views import Node, Tree

ICONS = {
    "queued": "○",
    "running": "●",
    "waiting": "…",
    "done": "✓",
    "failed": "✗",
    "skipped": "-",
}
_SILENT = (ObjectType.YIELD_ASSIGNMENT, ObjectType.SYS_LOG, ObjectType.SYS_ASSERT)
_NAMES = {ObjectType.AND_CATCH: "catch", ObjectType.AND_SCRIPT: "script"}
_MAX_ITERATIONS = 10
_FAR = (10**9, 0)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the tree."""

    path: str
    depth: int
    label: str
    facet: str
    state: str
    note: str = ""

    def text(self) -> str:
        """The line as it stands in a text."""
        words = [ICONS[self.state], self.label, self.facet, self.state, self.note]
        return "  " * self.depth + " ".join(word for word in words if word)


class Positions:
    """Where in the sources the steps of one run stand. What was looked up is kept."""

    def __init__(self, operations: Operations, run: Run) -> None:
        self._persistence = operations.persistence
        self._run = run.id
        self._spans = operations.evaluator.plans.get(run.program).program.spans
        self._known: dict[str, tuple[int, int]] = {}

    def learn(self, paths: Sequence[str]) -> None:
        """Looks up what is not known yet, all at once."""
        new = frozenset(path for path in paths if path not in self._known)
        if not new:
            return
        for path, row in self._persistence.load(self._run, Needed(steps=new)).steps.items():
            span = self._spans.get(row.statement_id)
            self._known[path] = _FAR if span is None else (span.line, span.column)

    def key(self, node: Node) -> tuple[tuple[int, int], int, str]:
        """What puts siblings into the order in which they are written."""
        number = int(node.name) if node.name.isdigit() else -1
        return self._known.get(node.path, _FAR), number, node.name


def lines_of(tree: Tree, positions: Positions) -> list[Line]:
    """The lines of a tree, without its root."""
    if tree.root is None:
        return []
    positions.learn([node.path for node in _all(tree.root)])
    return list(_Lines(positions, is_cut=tree.next is not None).below(tree.root, 0))


def _all(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _all(child)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Makes lines of nodes. A tree that is cut has more of them than are known."""

    positions: Positions
    is_cut: bool

    def below(self, node: Node, depth: int) -> Iterator[Line]:
        """What stands in a node."""
        for child in sorted(node.children, key=self.positions.key):
            if child.kind in _SILENT and child.state != "failed":
                continue
            if child.kind in (ObjectType.AND_THEN, ObjectType.AND_WHEN):
                yield from self.below(child, depth)
            elif child.kind == ObjectType.AND_MAP:
                yield from self._foreach(child, depth)
            else:
                yield _line(child, depth)
                yield from self.below(child, depth + 1)

    def _foreach(self, node: Node, depth: int) -> Iterator[Line]:
        counts = Counter(
            child.state for child in node.children if child.kind != ObjectType.AND_CATCH
        )
        told = [f"{counts[state]} {state}" for state in ICONS if counts[state]]
        if self.is_cut:
            told.append("and more")
        note = f"({', '.join(told)})" if told else ""
        yield Line(node.path, depth, "foreach", "", node.state, note)
        shown = [child for child in node.children if child.state not in ("done", "skipped")]
        for child in sorted(shown, key=self.positions.key)[:_MAX_ITERATIONS]:
            yield _line(child, depth + 1)
            yield from self.below(child, depth + 2)


def _line(node: Node, depth: int) -> Line:
    return Line(node.path, depth, _label(node), node.facet, node.state, _note(node))


def _label(node: Node) -> str:
    if node.kind == ObjectType.BLOCK:
        return f"[{node.name}]" if node.name.isdigit() else node.name.replace("-", " ")
    return _NAMES.get(node.kind, node.name)


def _note(node: Node) -> str:
    if node.state == "failed" and node.error is not None:
        if node.error.get("step") == node.path:
            return f"{node.error.get('type')}: {node.error.get('message')}"
        return f"because of {node.error.get('step')}"
    if node.state == "skipped":
        return f"because of {node.skipped_because}"
    return f"from {node.reused}" if node.reused else ""
