"""Expressions and types."""

from __future__ import annotations

from afl.lang.diagnostics.reporter import advise, replace
from afl.lang.parser.cursor import Cursor
from afl.lang.parser.literals import read_double, read_duration, read_int, read_string
from afl.lang.tokens import BAD, DOUBLE, DURATION, INT, RESERVED, STRING, TEXT, WORD
from afl.lang.tree import (
    BadExpr,
    BoolLit,
    Chain,
    ChainLink,
    Compare,
    Expr,
    FieldAccess,
    IndexAccess,
    InputRef,
    ListLit,
    ListType,
    MapEntry,
    MapLit,
    MapType,
    Name,
    NamedType,
    NameRef,
    NullLit,
    OptionalType,
    Paren,
    Postfix,
    TypeNode,
    Unary,
)

_COMPARISON = 2
_LEVELS = {
    "||": 0,
    "&&": 1,
    "==": 2,
    "!=": 2,
    "<": 2,
    "<=": 2,
    ">": 2,
    ">=": 2,
    "in": 2,
    "??": 3,
    "++": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "%": 6,
}
_WORD_OPERATORS = frozenset({"not", "contains", "startsWith", "endsWith"})
#: What can begin an expression and cannot go on with one.
_ATOM_STARTS = frozenset({STRING, TEXT, INT, DOUBLE, DURATION, WORD, "$", "#{", "true", "false"})
_FOREIGN_WORDS = {"True": "true", "False": "false", "None": "null", "nil": "null"}


def parse_expr(cursor: Cursor, level: int = 0) -> Expr:
    """An expression whose operators bind at least as strongly as `level`."""
    cursor.enter()
    try:
        left = _parse_unary(cursor)
        while True:
            found = _operator_level(cursor)
            if found is None or found < level:
                return left
            if found == _COMPARISON:
                left = _parse_comparison(cursor, left)
            else:
                left = _parse_chain(cursor, left, found)
    finally:
        cursor.leave()


def _operator_level(cursor: Cursor) -> int | None:
    kind = cursor.kinds[cursor.pos]
    if kind == WORD and cursor.tokens.text(cursor.pos) in _WORD_OPERATORS:
        return _COMPARISON
    return _LEVELS.get(kind)


def _parse_chain(cursor: Cursor, first: Expr, level: int) -> Expr:
    rest = []
    height = cursor.height
    while _LEVELS.get(cursor.kinds[cursor.pos]) == level:
        index = cursor.take()
        operand = parse_expr(cursor, level + 1)
        height = max(height, cursor.height)
        rest.append(ChainLink(cursor.kinds[index], cursor.starts[index], operand))
    cursor.grow(height)
    return Chain(first.start, cursor.end(), first, rest)


def _parse_comparison(cursor: Cursor, left: Expr) -> Expr:
    result: Expr = _one_comparison(cursor, left)
    if _operator_level(cursor) != _COMPARISON:
        return result
    cursor.complain(
        "AFL0107",
        cursor.span_of(cursor.pos),
        "comparisons cannot be chained",
        "second comparison",
        suggestions=[advise("join two comparisons with `&&`")],
    )
    while _operator_level(cursor) == _COMPARISON:
        result = BadExpr(result.start, _one_comparison(cursor, result).end)
    return result


def _one_comparison(cursor: Cursor, left: Expr) -> Compare:
    index = cursor.take()
    op = cursor.tokens.text(index)
    op_end = cursor.ends[index]
    if op == "not":
        op_end = cursor.ends[cursor.expect("in", "after `not`")]
        op = "not in"
    height = cursor.height
    right = parse_expr(cursor, _COMPARISON + 1)
    cursor.grow(max(height, cursor.height))
    return Compare(left.start, right.end, op, cursor.starts[index], op_end, left, right)


def _parse_unary(cursor: Cursor) -> Expr:
    kind = cursor.kinds[cursor.pos]
    if kind == "-" or kind == "!":
        index = cursor.take()
        with cursor.nesting():
            operand = _parse_unary(cursor)
        cursor.grow(cursor.height)
        return Unary(cursor.starts[index], operand.end, kind, operand)
    return _parse_postfix(cursor)


def _parse_postfix(cursor: Cursor) -> Expr:
    base = _parse_atom(cursor)
    kinds = cursor.kinds
    if kinds[cursor.pos] != "[" and kinds[cursor.pos] != ".":
        return base
    accessors: list[FieldAccess | IndexAccess] = []
    height = cursor.height
    while True:
        start = cursor.starts[cursor.pos]
        if kinds[cursor.pos] == "[":
            opening = cursor.take()
            index = parse_expr(cursor)
            height = max(height, cursor.height)
            close(cursor, opening, "]")
            accessors.append(IndexAccess(start, cursor.end(), index))
        elif kinds[cursor.pos] == ".":
            cursor.take()
            name = cursor.expect_label("a field name after the dot")
            accessors.append(FieldAccess(start, name.end, name))
        else:
            cursor.grow(height)
            return Postfix(base.start, cursor.end(), base, accessors)


def close(cursor: Cursor, opening: int, sign: str) -> None:
    """The bracket that closes the one at token `opening`."""
    if cursor.accept(sign):
        return
    if cursor.kinds[cursor.pos] == BAD:
        raise cursor.lost(f"`{sign}`")
    raise cursor.lost(f"`{sign}`", "to close the bracket opened before")


def _parse_atom(cursor: Cursor) -> Expr:
    index = cursor.pos
    kind = cursor.kinds[index]
    start, end = cursor.starts[index], cursor.ends[index]
    cursor.height = 0
    if kind == "$":
        return _parse_input(cursor)
    if kind == WORD:
        return _parse_name(cursor)
    if kind in (STRING, TEXT):
        return read_string(cursor)
    if kind == INT:
        return read_int(cursor)
    if kind == DOUBLE:
        return read_double(cursor)
    if kind == DURATION:
        return read_duration(cursor)
    if kind == "[":
        return _parse_list(cursor)
    if kind == "#{":
        return _parse_map(cursor)
    if kind == "(":
        cursor.take()
        inner = parse_expr(cursor)
        cursor.grow(cursor.height)
        close(cursor, index, ")")
        return Paren(start, cursor.end(), inner)
    if kind == "true" or kind == "false":
        cursor.take()
        return BoolLit(start, end, kind == "true")
    if kind == "null":
        cursor.take()
        return NullLit(start, end)
    if kind == BAD:
        cursor.losses += 1
        cursor.take()
        return BadExpr(start, end)
    if kind == "{":
        raise _bare_brace(cursor)
    raise cursor.lost("an expression")


def _bare_brace(cursor: Cursor) -> Exception:
    span = cursor.span_of(cursor.pos)
    cursor.complain(
        "AFL0101",
        span,
        "expected an expression, found `{`",
        "expected an expression",
        suggestions=[replace(span, "#{", "a map is written `#{key: value}`")],
    )
    return cursor.lost("an expression")


def _parse_input(cursor: Cursor) -> Expr:
    index = cursor.take()
    if cursor.kinds[cursor.pos] != ".":
        raise cursor.lost("`.`", "and the name of an input after `$`")
    path = []
    while cursor.accept("."):
        path.append(cursor.expect_label("a name after the dot"))
    return InputRef(cursor.starts[index], cursor.end(), path)


def _parse_name(cursor: Cursor) -> Expr:
    index = cursor.take()
    text = cursor.tokens.text(index)
    start, end = cursor.starts[index], cursor.ends[index]
    if text in _FOREIGN_WORDS and cursor.kinds[cursor.pos] != ".":
        right = _FOREIGN_WORDS[text]
        span = cursor.span_of(index)
        cursor.complain(
            "AFL0101",
            span,
            f"expected an expression, found `{text}`",
            f"AFL writes `{right}`",
            suggestions=[replace(span, right, f"write `{right}`", safe=True)],
        )
        return BadExpr(start, end)
    path = [Name(start, end, text)]
    while cursor.kinds[cursor.pos] == ".":
        cursor.take()
        path.append(cursor.expect_label("a name after the dot"))
    if cursor.kinds[cursor.pos] == "(":
        cursor.complain(
            "AFL0101",
            cursor.span_of(cursor.pos),
            "a call cannot stand inside an expression",
            "call",
            suggestions=[
                advise(
                    "make the call a step of its own, `s = Facet(...)`, and use its results here"
                )
            ],
        )
        cursor.skip_group()
        return BadExpr(start, cursor.end())
    return NameRef(start, cursor.end(), path)


def missing_comma(cursor: Cursor) -> None:
    place = cursor.source.span(cursor.end(), cursor.end())
    cursor.complain(
        "AFL0102",
        cursor.span_of(cursor.pos),
        f"a comma is missing before {cursor.describe(cursor.pos)}",
        "next element",
        suggestions=[replace(place, ",", "add a comma", safe=True)],
    )


def _parse_list(cursor: Cursor) -> Expr:
    opening = cursor.take()
    items = []
    height = 0
    while cursor.kinds[cursor.pos] != "]":
        items.append(parse_expr(cursor))
        height = max(height, cursor.height)
        if cursor.kinds[cursor.pos] in _ATOM_STARTS:
            missing_comma(cursor)
        elif not cursor.accept(","):
            break
    cursor.grow(height)
    close(cursor, opening, "]")
    return ListLit(cursor.starts[opening], cursor.end(), items)


def _parse_map(cursor: Cursor) -> Expr:
    opening = cursor.take()
    entries = []
    height = 0
    while cursor.kinds[cursor.pos] != "}":
        index = cursor.pos
        start = cursor.starts[index]
        if cursor.kinds[index] == STRING or cursor.kinds[index] == TEXT:
            key = read_string(cursor).value
        else:
            key = cursor.expect_label("a key").text
        cursor.expect(":", "after the key")
        value = parse_expr(cursor)
        height = max(height, cursor.height)
        entries.append(MapEntry(start, value.end, key, cursor.ends[index], value))
        if cursor.kinds[cursor.pos + 1 : cursor.pos + 2] == [":"]:
            missing_comma(cursor)
        elif not cursor.accept(","):
            break
    cursor.grow(height)
    close(cursor, opening, "}")
    return MapLit(cursor.starts[opening], cursor.end(), entries)


def parse_type(cursor: Cursor) -> TypeNode:
    with cursor.nesting():
        result = _parse_simple_type(cursor)
    if cursor.accept("?"):
        return OptionalType(result.start, cursor.end(), result)
    return result


def _parse_simple_type(cursor: Cursor) -> TypeNode:
    index = cursor.pos
    kind = cursor.kinds[index]
    start = cursor.starts[index]
    if kind == "[":
        cursor.take()
        of = parse_type(cursor)
        close(cursor, index, "]")
        return ListType(start, cursor.end(), of)
    if kind == "{":
        cursor.take()
        key = parse_type(cursor)
        cursor.expect(":", "between the key type and the value type")
        of = parse_type(cursor)
        close(cursor, index, "}")
        return MapType(start, cursor.end(), key, of)
    if kind in RESERVED:
        raise cursor.lost("a type")
    name = cursor.expect_qname("a type")
    return NamedType(start, name.end, name)
