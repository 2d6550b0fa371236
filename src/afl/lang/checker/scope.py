"""Where a statement stands: what it can see, and whom it can yield to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from afl.ir.model import SourceSpan
from afl.ir.types import Type
from afl.lang import tree
from afl.lang.checker.symbols import FacetSymbol, Index, SchemaSymbol, Unit
from afl.lang.diagnostics.reporter import Reporter
from afl.lang.source import Source, Span

#: A reference as a tuple of its names, `$` first for inputs: what a test for null narrows.
RefKey = tuple[str, ...]


@dataclass(slots=True, eq=False)
class StepSymbol:
    """A step of a block. `callee` is None when the call could not be resolved."""

    name: str
    id: str
    node: tree.Step
    callee: FacetSymbol | SchemaSymbol | None
    #: returns that are null for readers when the step's catch ran
    uncaught: frozenset[str] = frozenset()
    #: mixins of the call, by alias
    aliases: dict[str, FacetSymbol] = field(default_factory=dict)
    read: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """The variable of a foreach clause."""

    clause: str
    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class Owner:
    """Something that a yield can go to."""

    id: str
    facet: FacetSymbol
    kind: Literal["declaration", "step", "mixin"]
    foreach_depth: int
    alias: str | None = None


@dataclass(slots=True, eq=False)
class Scope:
    """What can be seen from a place. Nothing in it changes but for the steps that its block adds.

    Not frozen and copied by hand, because there are several for every step.
    """

    facet: FacetSymbol | None
    unit: Unit
    parent: Scope | None = None
    steps: dict[str, StepSymbol] = field(default_factory=dict)
    #: the steps are those of earlier clauses, whose names may be used again
    earlier: bool = False
    variables: dict[str, Variable] = field(default_factory=dict)
    #: the id of the catch that we are in
    catch: str | None = None
    owners: tuple[Owner, ...] = ()
    foreach_depth: int = 0
    narrowed: frozenset[RefKey] = frozenset()
    #: steps whose own body or catch this is
    inside: dict[str, Literal["body", "catch"]] = field(default_factory=dict)
    #: the step whose arguments these are
    current: StepSymbol | None = None
    #: why only constants may stand here, in words; empty when references are fine
    constant: str = ""

    def _copy(self) -> Scope:
        return Scope(
            self.facet,
            self.unit,
            self.parent,
            self.steps,
            self.earlier,
            self.variables,
            self.catch,
            self.owners,
            self.foreach_depth,
            self.narrowed,
            self.inside,
            self.current,
            self.constant,
        )

    def inner(self) -> Scope:
        """A scope inside this one, with steps of its own."""
        scope = self._copy()
        scope.parent, scope.steps, scope.earlier, scope.current = self, {}, False, None
        return scope

    def after_clauses(self, steps: dict[str, StepSymbol]) -> Scope:
        """A scope that sees the steps of earlier clauses."""
        scope = self.inner()
        scope.steps, scope.earlier = steps, True
        return scope

    def in_foreach(self, name: str, variable: Variable) -> Scope:
        scope = self._copy()
        scope.variables = {**self.variables, name: variable}
        scope.foreach_depth += 1
        return scope

    def in_catch(self, id: str) -> Scope:
        scope = self._copy()
        scope.catch = id
        return scope

    def in_step(
        self, step: StepSymbol, part: Literal["body", "catch"], owner: Owner | None
    ) -> Scope:
        """The body or the catch of a step."""
        scope = self.inner()
        scope.inside = {**self.inside, step.id: part}
        if owner is not None:
            scope.owners = (*self.owners, owner)
        return scope

    def with_facts(self, facts: frozenset[RefKey]) -> Scope:
        """The same place, where some references are known not to be null."""
        if not facts:
            return self
        scope = self._copy()
        scope.narrowed = self.narrowed | facts
        return scope

    def of_step(self, step: StepSymbol) -> Scope:
        """The arguments of a step."""
        scope = self._copy()
        scope.current = step
        return scope

    def chain(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def step(self, name: str) -> StepSymbol | None:
        for scope in self.chain():
            found = scope.steps.get(name)
            if found is not None:
                return found
        return None

    def step_names(self) -> set[str]:
        return {name for scope in self.chain() for name in scope.steps}


@dataclass(slots=True)
class Needs:
    """Steps that a statement refers to itself, and those that what is nested in it refers to."""

    direct: dict[str, None] = field(default_factory=dict)
    nested: dict[str, None] = field(default_factory=dict)

    @property
    def all(self) -> set[str]:
        return {*self.direct, *self.nested}


@dataclass(slots=True)
class CallSite:
    """A call somewhere in a declaration; `conditional` when a run may pass without making it."""

    callee: str
    conditional: bool
    span: Span


@dataclass(slots=True)
class Place:
    id: str
    source: Source
    start: int
    end: int

    def to_span(self) -> SourceSpan:
        line, column = self.source.position(self.start)
        end_line, end_column = self.source.position(self.end)
        return SourceSpan(self.source.name, line, column, end_line, end_column)


@dataclass(slots=True)
class Context:
    """What the check of one declaration gathers."""

    index: Index
    unit: Unit
    places: list[Place]
    needs: list[Needs] = field(default_factory=lambda: [Needs()])
    calls: list[CallSite] = field(default_factory=list)
    #: conditional depth: under a when case, a foreach or a catch
    conditional: int = 0
    has_effect: bool = False
    declaration: tree.FacetDecl | None = None
    steps: list[StepSymbol] = field(default_factory=list)

    @property
    def reporter(self) -> Reporter:
        return self.index.reporter

    def span(self, node: tree.Node) -> Span:
        return self.unit.span(node)

    def place(self, id: str, node: tree.Node) -> None:
        self.places.append(Place(id, self.unit.source, node.start, node.end))

    def need(self, step: str) -> None:
        self.needs[-1].direct[step] = None

    def open_needs(self) -> None:
        self.needs.append(Needs())

    def close_needs(self) -> Needs:
        """What was gathered since the matching `open_needs`; the level above hears of it too."""
        gathered = self.needs.pop()
        outer = self.needs[-1].nested
        outer.update(gathered.direct)
        outer.update(gathered.nested)
        return gathered
