"""All passes, in order, and the program that comes out."""

from __future__ import annotations

from collections.abc import Sequence

from afl.ir import model as ir
from afl.ir.types import EnumRef, ListOf, MapOf, OptionalOf, SchemaRef
from afl.lang import tree
from afl.lang.checker.bodies import check_facet, compile_params
from afl.lang.checker.collect import collect, report_unneeded_uses
from afl.lang.checker.doctags import check_doc_tags
from afl.lang.checker.policies import declared_effect
from afl.lang.checker.recursion import check_recursion, report_idle_steps
from afl.lang.checker.schedules import check_implicits, check_schedule
from afl.lang.checker.scope import Context, Place
from afl.lang.checker.signatures import resolve_signatures
from afl.lang.checker.symbols import EnumSymbol, Index, ScheduleSymbol, SchemaSymbol
from afl.lang.diagnostics.reporter import Reporter


def check_files(files: Sequence[tree.File], reporter: Reporter) -> ir.Program:
    """Checks parsed files as one program. The result is of use only if no error was reported."""
    index = collect(files, reporter)
    resolve_signatures(index)
    for facet in index.facets():
        facet.effect = declared_effect(facet)
    check_implicits(index)
    places: list[Place] = []
    contexts: dict[str, Context] = {}
    facets = []
    for facet in index.facets():
        context = contexts[facet.qname] = Context(index, facet.unit, places)
        facets.append(check_facet(context, facet))
    schedules = _schedules(index, places)
    check_recursion(index, contexts)
    if not any(file.diagnostics for file in files):
        # what looks unused may be used in a part that could not be read
        if not any(diagnostic.is_error for diagnostic in reporter.diagnostics):
            report_idle_steps(index, contexts)
        report_unneeded_uses(index)
        check_doc_tags(index)
    called = {call.callee for context in contexts.values() for call in context.calls}
    called |= {tool.name for facet in facets if facet.prompt for tool in facet.prompt.tools}
    unused = {
        facet.qname for facet in index.facets() if facet.unit.builtin and facet.qname not in called
    }
    return _program(
        index,
        [facet for facet in facets if facet.name not in unused],
        schedules,
        [place for place in places if place.id not in unused],
    )


def _schedules(index: Index, places: list[Place]) -> list[ir.Schedule]:
    result = []
    for symbol in index.symbols.values():
        if isinstance(symbol, ScheduleSymbol):
            schedule = check_schedule(Context(index, symbol.unit, places), symbol)
            if schedule is not None:
                result.append(schedule)
    return result


def _built_in_types(index: Index, facets: list[ir.Facet]) -> set[str]:
    """The built-in schemas that a program uses."""
    types = [param.type for facet in facets for param in (*facet.params, *facet.returns)]
    types += [
        param.type
        for symbol in index.symbols.values()
        if isinstance(symbol, SchemaSymbol) and not symbol.unit.builtin
        for param in compile_params(symbol.fields)
    ]
    found: set[str] = set()
    while types:
        match types.pop():
            case ListOf(of) | MapOf(of) | OptionalOf(of):
                types.append(of)
            case SchemaRef(name) | EnumRef(name) if name not in found:
                symbol = index.symbols.get(name)
                if symbol is not None and symbol.unit.builtin:
                    found.add(name)
                    if isinstance(symbol, SchemaSymbol):
                        types += [param.type for param in compile_params(symbol.fields)]
    return found


def _program(
    index: Index, facets: list[ir.Facet], schedules: list[ir.Schedule], places: list[Place]
) -> ir.Program:
    schemas = []
    enums = []
    docs = {}
    held = {facet.name for facet in facets} | _built_in_types(index, facets)
    for qname, symbol in sorted(index.symbols.items()):
        if symbol.unit.builtin and qname not in held:
            continue
        if symbol.node.doc is not None:
            docs[qname] = symbol.node.doc.text
        if isinstance(symbol, SchemaSymbol):
            schemas.append(ir.Schema(qname, compile_params(symbol.fields)))
        elif isinstance(symbol, EnumSymbol):
            enums.append(ir.Enum(qname, symbol.members))
        if isinstance(symbol, SchemaSymbol | EnumSymbol):
            node = symbol.node
            places.append(Place(qname, symbol.unit.source, node.start, node.end))
    return ir.Program(
        tuple(sorted(facets, key=lambda facet: facet.name)),
        tuple(schemas),
        tuple(enums),
        tuple(sorted(schedules, key=lambda schedule: schedule.name)),
        {place.id: place.to_span() for place in places},
        docs,
    )
