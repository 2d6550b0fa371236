"""A file as a whole."""

from __future__ import annotations

from afl.lang.diagnostics.reporter import Enough, Reporter, advise
from afl.lang.lexer import tokenize
from afl.lang.parser.cursor import Cursor, Lost
from afl.lang.parser.declarations import at_declaration, parse_declaration, parse_use
from afl.lang.parser.docs import DocComments
from afl.lang.source import Source
from afl.lang.tokens import EOF, TokenStream
from afl.lang.tree import Declaration, File, Namespace, Use

#: After so many errors the rest of a file is left unread.
MAX_ERRORS = 50


def parse(source: Source) -> File:
    """The tree of a source: what could be read of it. Mistakes are in its `diagnostics`."""
    reporter = Reporter(limit=MAX_ERRORS)
    file = File(source, TokenStream(source, [EOF], [0], [0], []), [], reporter.diagnostics, set())
    try:
        file.tokens = tokenize(source, reporter)
        docs = DocComments(file.tokens)
        _parse_all(Cursor(file.tokens, reporter), docs, file)
        if not reporter.diagnostics:
            docs.report_idle(reporter)
    except Enough:
        file.complete = False
        end = reporter.diagnostics[-1].primary.span.end
        reporter.close(source.span(end, end))
    return file


def _parse_all(cursor: Cursor, docs: DocComments, file: File) -> None:
    while cursor.kinds[cursor.pos] != EOF:
        _parse_top(cursor, docs, file)


def _parse_top(cursor: Cursor, docs: DocComments, file: File) -> None:
    try:
        if cursor.accept(";"):
            return
        if cursor.stray_closings and cursor.accept("}"):
            cursor.stray_closings -= 1
            return
        if cursor.kinds[cursor.pos] == "namespace":
            _parse_namespace(cursor, docs, file)
        elif at_declaration(cursor) or cursor.kinds[cursor.pos] == "use":
            start = cursor.pos
            kind = cursor.kinds[start]
            if kind == "use":
                item: Use | Declaration = parse_use(cursor)
            else:
                item = parse_declaration(cursor, docs, file.broken)
            file.items.append(item)
            cursor.reporter.report(
                "AFL0108",
                cursor.span_of(start),
                f"`{kind}` stands outside a namespace",
                "needs a namespace around it",
                suggestions=[
                    advise("wrap the declarations of this file in `namespace name { ... }`")
                ],
            )
        else:
            raise cursor.lost("`namespace`")
    except Lost:
        _skip_to_declaration(cursor)


def _skip_to_declaration(cursor: Cursor) -> None:
    """Move on at least one token, to the next declaration or `}`."""
    start = cursor.pos
    while True:
        cursor.skip_to(frozenset({";"}))
        kind = cursor.kinds[cursor.pos]
        if kind == EOF or (cursor.pos > start and (at_declaration(cursor) or kind == "namespace")):
            return
        if cursor.pos == start and (at_declaration(cursor) or kind == "namespace"):
            # whoever got lost here has not read this token: it starts something new
            return
        cursor.take()


def _parse_namespace(cursor: Cursor, docs: DocComments, file: File) -> None:
    doc = docs.take(cursor.pos)
    start = cursor.starts[cursor.take()]
    name = cursor.expect_qname("the name of the namespace")
    opening = cursor.expect("{", "after the name of the namespace")
    namespace = Namespace(start, 0, doc, name, [], [], [])
    file.items.append(namespace)
    while True:
        kind = cursor.kinds[cursor.pos]
        if kind == "}":
            cursor.take()
            break
        if kind == EOF:
            cursor.unclosed(opening)
            break
        if kind == "namespace":
            _refuse_inner(cursor)
            break
        if kind == ";":
            cursor.take()
        else:
            _parse_item(cursor, docs, file, namespace)
    namespace.end = cursor.end()


def _refuse_inner(cursor: Cursor) -> None:
    """Reports a namespace inside a namespace, which is then read as if it stood beside."""
    cursor.complain(
        "AFL0109",
        cursor.span_of(cursor.pos),
        "a namespace cannot stand inside another one",
        "inner namespace",
        suggestions=[
            advise(
                "close the outer namespace first, and write the inner name with dots: `outer.inner`"
            )
        ],
    )
    cursor.stray_closings += 1


def _parse_item(cursor: Cursor, docs: DocComments, file: File, namespace: Namespace) -> None:
    before = cursor.pos
    try:
        if cursor.kinds[before] == "use":
            use = parse_use(cursor)
            namespace.uses.append(use)
            namespace.items.append(use)
        elif at_declaration(cursor):
            declaration = parse_declaration(cursor, docs, file.broken)
            namespace.declarations.append(declaration)
            namespace.items.append(declaration)
        else:
            raise cursor.lost("a declaration or `}`")
    except Lost:
        _skip_in_namespace(cursor, before)


def _skip_in_namespace(cursor: Cursor, before: int) -> None:
    """To the next declaration or to the brace that closes the namespace."""
    if cursor.pos == before:
        cursor.take()
    while True:
        cursor.skip_to(frozenset())
        kind = cursor.kinds[cursor.pos]
        if kind in (EOF, "}", "use", "namespace") or at_declaration(cursor):
            return
        cursor.take()
