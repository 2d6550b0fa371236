"""From a name as written to what it means, with a complaint when it means nothing or two things."""

from __future__ import annotations

from afl.ir.types import PRIMITIVES
from afl.lang import tree
from afl.lang.checker.symbols import (
    AnySymbol,
    EnumSymbol,
    FacetSymbol,
    ImplicitSymbol,
    Index,
    ScheduleSymbol,
    SchemaSymbol,
    Unit,
)
from afl.lang.diagnostics.model import Label, Suggestion
from afl.lang.diagnostics.reporter import advise, replace
from afl.lang.diagnostics.suggest import nearest

_KIND_WORDS = {
    EnumSymbol: "an enum",
    ScheduleSymbol: "a schedule",
    ImplicitSymbol: "an implicit",
    SchemaSymbol: "a schema",
}
#: What other languages call the built-in types.
_OTHER_NAMES = {
    "str": "String",
    "text": "String",
    "integer": "Int",
    "bool": "Boolean",
    "float": "Double",
    "number": "Double",
    "decimal": "Double",
    "any": "Json",
    "object": "Json",
    "timedelta": "Duration",
}


def find(index: Index, unit: Unit, name: tree.Name, code: str, what: str) -> AnySymbol | None:
    """The symbol of a name. `code` and `what` are for the complaint that there is none."""
    found = index.candidates(unit, name.text)
    if len(found) == 1:
        return found[0]
    if found:
        _report_ambiguous(index, unit, name, found)
    elif not _excused(index, unit, name.text):
        index.reporter.report(
            code,
            unit.span(name),
            f"there is no {what} `{name.text}`",
            f"unknown {what}",
            suggestions=_suggest(index, unit, name, types=what == "type"),
        )
    return None


def _excused(index: Index, unit: Unit, name: str) -> bool:
    """Whether the name is missing because of something that is reported already."""
    if name.rpartition(".")[2] in index.broken:
        return True
    head = name.rpartition(".")[0]
    return unit.blind and (not head or head in _unknown_uses(index, unit))


def _unknown_uses(index: Index, unit: Unit) -> set[str]:
    return {use.name.text for use in unit.node.uses} - index.namespaces.keys()


def find_callable(index: Index, unit: Unit, name: tree.Name) -> FacetSymbol | SchemaSymbol | None:
    """What a step may call: a facet of any kind, or a schema."""
    symbol = find(index, unit, name, "AFL1005", "facet")
    if symbol is None or (isinstance(symbol, FacetSymbol) and not symbol.is_policy):
        return symbol
    if isinstance(symbol, SchemaSymbol):
        return symbol
    kind = "a policy" if isinstance(symbol, FacetSymbol) else _KIND_WORDS[type(symbol)]
    hint = (
        f"policies go behind `with`: `s = Facet(...) with {symbol.name}(...)`"
        if isinstance(symbol, FacetSymbol)
        else "a step calls a facet, an event facet, a workflow or a schema"
    )
    index.reporter.report(
        "AFL1008",
        unit.span(name),
        f"`{name.text}` is {kind} and cannot be called",
        "not callable",
        suggestions=[advise(hint)],
    )
    return None


def _report_ambiguous(index: Index, unit: Unit, name: tree.Name, found: list[AnySymbol]) -> None:
    names = sorted(symbol.qname for symbol in found)
    index.reporter.report(
        "AFL1006",
        unit.span(name),
        f"`{name.text}` can mean {_either(names)}",
        "ambiguous",
        secondary=[
            Label(symbol.unit.span(symbol.node.name), f"`{symbol.qname}`") for symbol in found
        ],
        suggestions=[
            replace(unit.span(name), full, f"write the full name: `{full}`") for full in names[:2]
        ],
    )


def _either(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]])


def _suggest(index: Index, unit: Unit, name: tree.Name, *, types: bool) -> list[Suggestion]:
    short = name.text.rpartition(".")[2]
    elsewhere = index.by_short_name.get(short, [])
    if elsewhere:
        qname = sorted(elsewhere)[0]
        return [replace(unit.span(name), qname, f"did you mean `{qname}`?")]
    if "." in name.text:
        guess = nearest(name.text, index.symbols)
    else:
        guess = _OTHER_NAMES.get(name.text.lower()) if types else None
        guess = guess or nearest(name.text, {*index.visible(unit), *(PRIMITIVES if types else ())})
        if guess is not None:
            # so that its `use` is not called unneeded
            index.candidates(unit, guess)
    if guess is None:
        guess = nearest(short, index.by_short_name)
        guess = sorted(index.by_short_name[guess])[0] if guess else None
    return [replace(unit.span(name), guess, f"did you mean `{guess}`?")] if guess else []
