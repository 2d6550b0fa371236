"""Tags of doc comments: `@param` and `@return` must name something."""

from __future__ import annotations

import re

from afl.lang import tree
from afl.lang.checker.symbols import FacetSymbol, Index, SchemaSymbol, Unit
from afl.lang.diagnostics.model import Suggestion
from afl.lang.diagnostics.reporter import replace
from afl.lang.diagnostics.suggest import nearest

_TAG = re.compile(r"(?<!\w)@(param|return)s?[ \t]+([A-Za-z_][A-Za-z0-9_]*)")

_NOUNS = {"param": "parameter or a field", "return": "return"}


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
        known, others = (params, returns) if tag == "param" else (returns, params)
        if name in known:
            continue
        span = unit.source.span(found.start(2), found.end(2))
        suggestions: list[Suggestion] = []
        guess = nearest(name, known)
        if name in others:
            other = "return" if tag == "param" else "param"
            whole = unit.source.span(found.start(), found.end())
            suggestions.append(replace(whole, f"@{other} {name}", f"write `@{other} {name}`"))
        elif guess:
            suggestions.append(replace(span, guess, f"did you mean `{guess}`?"))
        index.reporter.report(
            "AFL9001",
            span,
            f"`@{tag} {name}` names nothing that is declared here",
            "unknown name",
            notes=[f"the word behind `@{tag}` is the name of a {_NOUNS[tag]}"],
            suggestions=suggestions,
        )
