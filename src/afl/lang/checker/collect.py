"""First pass: what is declared where, and which namespaces are used."""

from __future__ import annotations

from collections.abc import Sequence

from afl.lang import tree
from afl.lang.checker.prelude import prelude
from afl.lang.checker.symbols import (
    BUILTIN,
    AnySymbol,
    EnumSymbol,
    FacetSymbol,
    ImplicitSymbol,
    Index,
    ScheduleSymbol,
    SchemaSymbol,
    Unit,
    UseSymbol,
)
from afl.lang.diagnostics.model import Label
from afl.lang.diagnostics.reporter import Reporter, advise, replace
from afl.lang.diagnostics.suggest import nearest

_RESERVED_ROOTS = (BUILTIN, "sys")


def collect(files: Sequence[tree.File], reporter: Reporter) -> Index:
    """An index of all declarations. Mistakes in names of declarations and in `use` are reported."""
    index = Index(reporter)
    for file in (prelude(), *files):
        index.broken |= file.broken
        for namespace in file.namespaces:
            _add_namespace(index, file, namespace, builtin=file is prelude())
    for unit in index.units:
        _resolve_uses(index, unit)
    return index


def _add_namespace(index: Index, file: tree.File, node: tree.Namespace, *, builtin: bool) -> None:
    unit = Unit(file.source, node.name.text, node, builtin=builtin)
    root = unit.namespace.split(".")[0]
    if root in _RESERVED_ROOTS and not builtin:
        index.reporter.report(
            "AFL1020",
            unit.span(node.name),
            f"the namespace `{root}` belongs to the language",
            "reserved",
            suggestions=[advise("choose another name")],
        )
        return
    index.units.append(unit)
    index.namespaces.setdefault(unit.namespace, set())
    for declaration in node.declarations:
        _add_declaration(index, unit, declaration)


def _add_declaration(index: Index, unit: Unit, node: tree.Declaration) -> None:
    name = node.name.text
    qname = f"{unit.namespace}.{name}"
    first = index.symbols.get(qname)
    if first is not None:
        index.reporter.report(
            "AFL1004",
            unit.span(node.name),
            f"`{name}` is declared twice in namespace `{unit.namespace}`",
            "second declaration",
            secondary=[Label(first.unit.span(first.node.name), "first declared here")],
            suggestions=[advise("rename one of them")],
        )
        return
    if not unit.builtin and _hides_policy(index, name, node):
        index.reporter.report(
            "AFL1018",
            unit.span(node.name),
            f"`{name}` is the name of a built-in policy",
            "hides the policy",
            notes=["`with " + name + "(...)` would then mean this declaration, and do nothing"],
            suggestions=[advise("choose another name")],
        )
    symbol = _symbol(qname, unit, node)
    index.symbols[qname] = symbol
    index.namespaces[unit.namespace].add(name)
    index.by_short_name.setdefault(name, []).append(qname)


def _hides_policy(index: Index, name: str, node: tree.Declaration) -> bool:
    hidden = index.symbols.get(f"{BUILTIN}.{name}")
    return isinstance(hidden, FacetSymbol) and not isinstance(
        node, tree.ImplicitDecl | tree.ScheduleDecl
    )


def _symbol(qname: str, unit: Unit, node: tree.Declaration) -> AnySymbol:
    match node:
        case tree.FacetDecl():
            return FacetSymbol(qname, unit, node)
        case tree.SchemaDecl():
            return SchemaSymbol(qname, unit, node)
        case tree.EnumDecl():
            return EnumSymbol(qname, unit, node)
        case tree.ScheduleDecl():
            return ScheduleSymbol(qname, unit, node)
        case tree.ImplicitDecl():
            return ImplicitSymbol(qname, unit, node)


def _resolve_uses(index: Index, unit: Unit) -> None:
    seen: dict[str, tree.Use] = {}
    for node in unit.node.uses:
        name = node.name.text
        if name in seen:
            index.reporter.report(
                "AFL1003",
                unit.span(node),
                f"`use {name}` is given twice",
                "second one",
                secondary=[Label(unit.span(seen[name]), "first one")],
                suggestions=[replace(unit.span(node), "", "remove it", safe=True)],
            )
            continue
        seen[name] = node
        if name in index.namespaces:
            unit.uses.append(UseSymbol(node, name))
            continue
        unit.blind = True
        inner = sorted(n for n in index.namespaces if n.startswith(f"{name}."))
        guess = inner[0] if inner else nearest(name, (n for n in index.namespaces if n != BUILTIN))
        suggestions = []
        if guess:
            suggestions.append(replace(unit.span(node.name), guess, f"did you mean `{guess}`?"))
        else:
            suggestions.append(advise("add the file that declares it to the command line"))
        index.reporter.report(
            "AFL1001",
            unit.span(node.name),
            f"there is no namespace `{name}`",
            "unknown namespace",
            suggestions=suggestions,
        )


def report_unneeded_uses(index: Index) -> None:
    for unit in index.units:
        for use in unit.uses:
            if not use.needed:
                index.reporter.report(
                    "AFL1002",
                    unit.span(use.node),
                    f"nothing of `{use.namespace}` is used here",
                    "not needed",
                    suggestions=[replace(unit.span(use.node), "", "remove it", safe=True)],
                )
