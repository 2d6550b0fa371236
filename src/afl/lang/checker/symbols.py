"""What a program declares, by full name, and how a name is looked up from a place in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from afl.ir import model as ir
from afl.ir.types import Type
from afl.lang import tree
from afl.lang.diagnostics.reporter import Reporter
from afl.lang.source import Source, Span

#: The namespace of policies; every namespace sees it without a `use`.
BUILTIN = "afl"


@dataclass(slots=True)
class UseSymbol:
    node: tree.Use
    namespace: str
    needed: bool = False


@dataclass(slots=True, eq=False)
class Unit:
    """One `namespace { }` block of one file: the place from which names are looked up."""

    source: Source
    namespace: str
    node: tree.Namespace
    uses: list[UseSymbol] = field(default_factory=list)
    builtin: bool = False
    #: a `use` could not be resolved: an unknown short name may come from there
    blind: bool = False

    def span(self, node: tree.Node) -> Span:
        return self.source.span(node.start, node.end)


@dataclass(slots=True)
class ParamSymbol:
    """A parameter, return or field whose type is resolved."""

    name: str
    type: Type
    node: tree.Param
    default: ir.Expr | None = None

    @property
    def has_default(self) -> bool:
        return self.node.default is not None


@dataclass(slots=True)
class MixinSymbol:
    """A mixin of a signature. `facet` is None when it could not be resolved."""

    node: tree.Mixin
    facet: FacetSymbol | None
    alias: str | None


@dataclass(slots=True, eq=False)
class Symbol:
    qname: str
    unit: Unit

    @property
    def name(self) -> str:
        return self.qname.rpartition(".")[2]


@dataclass(slots=True, eq=False)
class FacetSymbol(Symbol):
    node: tree.FacetDecl
    params: dict[str, ParamSymbol] = field(default_factory=dict)
    returns: dict[str, ParamSymbol] = field(default_factory=dict)
    mixins: list[MixinSymbol] = field(default_factory=list)
    #: inputs that a script before the body sets beside the declared ones
    derived: set[str] = field(default_factory=set)
    effect: str = "keyed"

    @property
    def kind(self) -> tree.FacetKind:
        return self.node.kind

    @property
    def has_body(self) -> bool:
        return bool(self.node.clauses)

    @property
    def is_policy(self) -> bool:
        return self.unit.namespace == BUILTIN

    def aliases(self) -> dict[str, FacetSymbol | None]:
        return {mixin.alias: mixin.facet for mixin in self.mixins if mixin.alias is not None}

    def attributes(self) -> dict[str, Type]:
        """What can be read from a step of this facet, aliases aside."""
        declared = (*self.params.values(), *self.returns.values())
        return {param.name: param.type for param in declared}

    def mixes_in(self, other: FacetSymbol) -> bool:
        """Whether the other is among the mixins of this one, or of those."""
        seen: set[str] = set()
        stack: list[FacetSymbol] = [self]
        while stack:
            facet = stack.pop()
            if facet is other:
                return True
            if facet.qname not in seen:
                seen.add(facet.qname)
                stack.extend(mixin.facet for mixin in facet.mixins if mixin.facet is not None)
        return False


@dataclass(slots=True, eq=False)
class SchemaSymbol(Symbol):
    node: tree.SchemaDecl
    fields: dict[str, ParamSymbol] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class EnumSymbol(Symbol):
    node: tree.EnumDecl
    members: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class ScheduleSymbol(Symbol):
    node: tree.ScheduleDecl


@dataclass(slots=True, eq=False)
class ImplicitSymbol(Symbol):
    node: tree.ImplicitDecl
    args: tuple[ir.Argument, ...] = ()


AnySymbol = FacetSymbol | SchemaSymbol | EnumSymbol | ScheduleSymbol | ImplicitSymbol


@dataclass(slots=True)
class Index:
    """Everything declared, and the reporter that all passes share."""

    reporter: Reporter
    units: list[Unit] = field(default_factory=list)
    symbols: dict[str, AnySymbol] = field(default_factory=dict)
    namespaces: dict[str, set[str]] = field(default_factory=dict)
    by_short_name: dict[str, list[str]] = field(default_factory=dict)
    #: (namespace, facet) -> the implicit that serves calls of the facet there
    implicits: dict[tuple[str, str], ImplicitSymbol] = field(default_factory=dict)
    #: names of declarations that the parser could not read
    broken: set[str] = field(default_factory=set)

    def facets(self) -> Iterable[FacetSymbol]:
        return (
            symbol
            for symbol in self.symbols.values()
            if isinstance(symbol, FacetSymbol) and not symbol.is_policy
        )

    def candidates(self, unit: Unit, name: str) -> list[AnySymbol]:
        """What a name means in a unit: nothing, one thing, or several when it is ambiguous."""
        symbols = self.symbols
        head, dot, _ = name.rpartition(".")
        if dot:
            for use in unit.uses:
                if use.namespace == head:
                    use.needed = True
            found = symbols.get(name)
            return [] if found is None else [found]
        own = symbols.get(f"{unit.namespace}.{name}")
        if own is not None:
            return [own]
        result: list[AnySymbol] = []
        for use in unit.uses:
            found = symbols.get(f"{use.namespace}.{name}")
            if found is not None:
                use.needed = True
                if found not in result:
                    result.append(found)
        if not result:
            found = symbols.get(f"{BUILTIN}.{name}")
            if found is not None:
                result.append(found)
        return result

    def visible(self, unit: Unit) -> set[str]:
        """Short names that can be written in a unit, for did-you-mean."""
        names = set(self.namespaces.get(unit.namespace, ()))
        for use in unit.uses:
            names |= self.namespaces.get(use.namespace, set())
        return names | self.namespaces.get(BUILTIN, set())
