"""Second pass: the types of parameters, returns and fields, their defaults, and the mixins of
signatures."""

from __future__ import annotations

from afl.ir.types import (
    PRIMITIVES,
    STRING,
    EnumRef,
    FacetRef,
    ListOf,
    MapOf,
    OptionalOf,
    SchemaRef,
    Type,
)
from afl.lang import tree
from afl.lang.checker.expressions import check_value
from afl.lang.checker.lookup import find
from afl.lang.checker.scope import Context, Scope
from afl.lang.checker.scripts import derived_inputs
from afl.lang.checker.symbols import (
    EnumSymbol,
    FacetSymbol,
    Index,
    MixinSymbol,
    ParamSymbol,
    SchemaSymbol,
    Unit,
)
from afl.lang.checker.types import UNKNOWN, optional
from afl.lang.diagnostics.model import Label
from afl.lang.diagnostics.reporter import advise


def resolve_signatures(index: Index) -> None:
    """Fills in all types, then checks defaults, which may use any enum or schema."""
    for symbol in index.symbols.values():
        match symbol:
            case SchemaSymbol():
                symbol.fields = _params(index, symbol.unit, symbol.node.fields, "field")
            case EnumSymbol():
                symbol.members = _members(index, symbol)
            case FacetSymbol():
                symbol.params = _params(index, symbol.unit, symbol.node.params, "parameter")
                symbol.returns = _params(index, symbol.unit, symbol.node.returns or [], "return")
                symbol.mixins = _mixins(index, symbol)
                if symbol.kind != "event" and symbol.node.script is not None:
                    symbol.derived = derived_inputs(symbol.node.script.code) - {*symbol.params}
    for symbol in index.symbols.values():
        match symbol:
            case SchemaSymbol():
                _check_defaults(index, symbol.unit, symbol.fields, f"`{symbol.name}`")
            case FacetSymbol():
                _check_defaults(index, symbol.unit, symbol.params, f"`{symbol.name}`")
                _check_defaults(index, symbol.unit, symbol.returns, f"`{symbol.name}`")
                _check_facet_types(index, symbol)
                _check_aliases(index, symbol)
    _check_schema_cycles(index)


def _params(index: Index, unit: Unit, nodes: list[tree.Param], what: str) -> dict[str, ParamSymbol]:
    result: dict[str, ParamSymbol] = {}
    for node in nodes:
        name = node.name.text
        type = resolve_type(index, unit, node.type)
        if name in result:
            index.reporter.report(
                "AFL1009",
                unit.span(node.name),
                f"the {what} `{name}` is declared twice",
                "second one",
                secondary=[Label(unit.span(result[name].node.name), "first one")],
            )
            continue
        if what in ("field", "return") and _holds_facet(type):
            _report_facet_type(index, unit, node, what)
            type = UNKNOWN
        result[name] = ParamSymbol(name, type, node)
    return result


def resolve_type(index: Index, unit: Unit, node: tree.TypeNode) -> Type:
    match node:
        case tree.NamedType(name=name):
            primitive = PRIMITIVES.get(name.text)
            return primitive if primitive is not None else _named_type(index, unit, name)
        case tree.ListType(of=of):
            return ListOf(resolve_type(index, unit, of))
        case tree.OptionalType(of=of):
            return optional(resolve_type(index, unit, of))
        case tree.MapType(key=key, of=of):
            if resolve_type(index, unit, key) not in (STRING, UNKNOWN):
                index.reporter.report(
                    "AFL2015",
                    unit.span(key),
                    "the keys of a map are Strings",
                    "must be `String`",
                )
            return MapOf(resolve_type(index, unit, of))
        case tree.BadType():
            return UNKNOWN


def _named_type(index: Index, unit: Unit, name: tree.Name) -> Type:
    symbol = find(index, unit, name, "AFL1007", "type")
    match symbol:
        case SchemaSymbol():
            return SchemaRef(symbol.qname)
        case EnumSymbol():
            return EnumRef(symbol.qname)
        case FacetSymbol() if not symbol.is_policy:
            return FacetRef(symbol.qname)
        case None:
            return UNKNOWN
        case _:
            index.reporter.report(
                "AFL1007",
                unit.span(name),
                f"`{name.text}` is not a type",
                "not a type",
                suggestions=[advise("a type is a built-in one, a schema, an enum or a facet")],
            )
            return UNKNOWN


def _holds_facet(type: Type) -> bool:
    match type:
        case FacetRef():
            return True
        case ListOf(of) | MapOf(of) | OptionalOf(of):
            return _holds_facet(of)
        case _:
            return False


def _report_facet_type(index: Index, unit: Unit, node: tree.Param, what: str) -> None:
    index.reporter.report(
        "AFL2018",
        unit.span(node.type),
        f"a {what} cannot be a step",
        "a facet is the type of a step",
        suggestions=[advise("only a parameter of a facet can take a step")],
    )


def _check_facet_types(index: Index, facet: FacetSymbol) -> None:
    """A step can be handed to a facet as it is: not in a list, and not to a run from outside."""
    for param in facet.params.values():
        nested = not isinstance(param.type, FacetRef) and _holds_facet(param.type)
        entry = facet.kind == "workflow" and isinstance(param.type, FacetRef)
        if nested or entry:
            index.reporter.report(
                "AFL2018",
                facet.unit.span(param.node.type),
                "a workflow cannot take a step"
                if entry
                else "a step cannot be inside a list, a map or an optional",
                "a facet is the type of a step",
                notes=["a run starts with data; there is no step to hand over"] if entry else [],
            )
            param.type = UNKNOWN


def _members(index: Index, symbol: EnumSymbol) -> tuple[str, ...]:
    seen: dict[str, tree.Name] = {}
    for name in symbol.node.members:
        if name.text in seen:
            index.reporter.report(
                "AFL1009",
                symbol.unit.span(name),
                f"the member `{name.text}` is declared twice",
                "second one",
                secondary=[Label(symbol.unit.span(seen[name.text]), "first one")],
            )
        else:
            seen[name.text] = name
    return tuple(seen)


def _mixins(index: Index, facet: FacetSymbol) -> list[MixinSymbol]:
    """The mixins of a signature that are not policies."""
    result = []
    for node in facet.node.mixins:
        found = index.candidates(facet.unit, node.call.target.text)
        symbol = found[0] if len(found) == 1 else None
        if isinstance(symbol, FacetSymbol) and symbol.is_policy:
            continue
        alias = node.alias.text if node.alias is not None else None
        mixed = symbol if isinstance(symbol, FacetSymbol) else None
        result.append(MixinSymbol(node, mixed, alias))
    return result


def _check_aliases(index: Index, facet: FacetSymbol) -> None:
    taken: dict[str, tree.Node] = {
        param.name: param.node.name for param in (*facet.returns.values(), *facet.params.values())
    }
    for mixin in facet.mixins:
        if mixin.node.alias is None:
            continue
        alias = mixin.node.alias
        if alias.text in taken:
            index.reporter.report(
                "AFL4007",
                facet.unit.span(alias),
                f"`{alias.text}` already means something else in `{facet.name}`",
                "already taken",
                secondary=[Label(facet.unit.span(taken[alias.text]), "here")],
                suggestions=[advise("choose another alias")],
            )
        taken[alias.text] = alias


def _check_defaults(index: Index, unit: Unit, params: dict[str, ParamSymbol], owner: str) -> None:
    context = Context(index, unit, [])
    for param in params.values():
        if param.node.default is None:
            continue
        scope = Scope(None, unit, constant="a default")
        value, type = check_value(
            context, scope, param.node.default, param.type, f"`{param.name}` of {owner}"
        )
        if type != UNKNOWN:
            param.default = value


def _check_schema_cycles(index: Index) -> None:
    """A schema whose every value would hold another value of itself can have no value at all."""
    needs = {
        symbol.qname: [
            (field, field.type.name)
            for field in symbol.fields.values()
            if isinstance(field.type, SchemaRef)
        ]
        for symbol in index.symbols.values()
        if isinstance(symbol, SchemaSymbol)
    }
    done: set[str] = set()
    for start in needs:
        path: list[tuple[str, int]] = [(start, 0)]
        on_path = {start}
        while path:
            name, position = path.pop()
            fields = needs[name]
            if name in done or position == len(fields):
                done.add(name)
                on_path.discard(name)
                continue
            path.append((name, position + 1))
            field, target = fields[position]
            if target in on_path:
                _report_schema_cycle(index, name, field)
            elif target not in done:
                path.append((target, 0))
                on_path.add(target)


def _report_schema_cycle(index: Index, name: str, field: ParamSymbol) -> None:
    symbol = index.symbols[name]
    index.reporter.report(
        "AFL2019",
        symbol.unit.span(field.node.type),
        f"every `{symbol.name}` would hold another one, without end",
        "contains itself",
        suggestions=[advise("make the field optional (`T?`) or a list (`[T]`)")],
    )
