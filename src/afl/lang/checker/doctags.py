"""Tags of doc comments: `@param` and `@return` must name something."""

from __future__ import annotations

import re

from afl.lang import tree
from afl.lang.checker.symbols import FacetSymbol, Index, SchemaSymbol, Unit
from afl.lang.diagnostics.reporter import advise
from afl.lang.diagnostics.suggest import nearest

_TAG = re.compile(r"@(param|return)s?[ \t]+([A-Za-z_][A-Za-z0-9_]*)")


def check_doc_tags(index: Index) -> None:
    for symbol in index.symbols.values():
        doc = symbol.node.doc
        if doc is None or symbol.unit.builtin:
            continue
        match symbol:
            case FacetSymbol():
                _check(index, symbol.unit, doc, {*symbol.params}, {*symbol.returns})
            case SchemaSymbol():
                _check(index, symbol.unit, doc, {*symbol.fields}, set())
            case _:
                _check(index, symbol.unit, doc, set(), set())


def _check(index: Index, unit: Unit, doc: tree.Doc, params: set[str], returns: set[str]) -> None:
    for found in _TAG.finditer(unit.source.text, doc.start, doc.end):
        tag, name = found.groups()
        known = params if tag == "param" else returns
        if name not in known:
            guess = nearest(name, known)
            index.reporter.report(
                "AFL9001",
                unit.source.span(found.start(2), found.end(2)),
                f"`@{tag} {name}` names nothing that is declared here",
                "unknown name",
                suggestions=[advise(f"did you mean `{guess}`?")] if guess else [],
            )
