"""Names, types and expressions."""

from __future__ import annotations

from afl.lang.formatter.brackets import write_enclosed, write_list
from afl.lang.formatter.tokens_out import TokenWriter
from afl.lang.tree import (
    BadExpr,
    BadType,
    Chain,
    Compare,
    Expr,
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
    OptionalType,
    Paren,
    Postfix,
    TypeNode,
    Unary,
)


def write_name(out: TokenWriter, name: Name) -> None:
    """A name, dotted or not."""
    out.joined(2 * name.text.count(".") + 1)


def write_type(out: TokenWriter, node: TypeNode) -> None:
    """A type. Types are never broken over lines."""
    match node:
        case NamedType(name=name):
            write_name(out, name)
        case ListType(of=of):
            out.token("[")
            write_type(out, of)
            out.token("]")
        case MapType(key=key, of=of):
            out.token("{")
            write_type(out, key)
            out.token(":")
            out.space()
            write_type(out, of)
            out.token("}")
        case OptionalType(of=of):
            write_type(out, of)
            out.token("?")
        case BadType():
            raise AssertionError("a file with errors cannot be formatted")


def write_expr(out: TokenWriter, node: Expr) -> None:
    """An expression; a long chain is broken before its operators."""
    match node:
        case InputRef(path=path):
            out.joined(2 * len(path) + 1)
        case NameRef(path=path):
            out.joined(2 * len(path) - 1)
        case ListLit(items=items):
            write_list(out, ("[", "]"), items, write_expr)
        case MapLit(entries=entries):
            write_list(out, ("#{", "}"), entries, _write_entry)
        case Paren(inner=inner):
            write_enclosed(out, ("(", ")"), lambda: write_expr(out, inner))
        case Unary(op=op, operand=operand):
            out.token(op)
            write_expr(out, operand)
        case Chain():
            _write_chain(out, node)
        case Compare():
            _write_comparison(out, node)
        case Postfix():
            _write_postfix(out, node)
        case BadExpr():
            raise AssertionError("a file with errors cannot be formatted")
        case _:
            out.token()


def _write_entry(out: TokenWriter, entry: MapEntry) -> None:
    out.token()
    out.token(":")
    out.space()
    write_expr(out, entry.value)


def _write_chain(out: TokenWriter, chain: Chain) -> None:
    with out.group():
        write_expr(out, chain.first)
        with out.indented():
            for link in chain.rest:
                out.line(" ")
                out.token(link.op)
                out.space()
                write_expr(out, link.operand)


def _write_comparison(out: TokenWriter, node: Compare) -> None:
    with out.group():
        write_expr(out, node.left)
        with out.indented():
            out.line(" ")
            for _ in node.op.split():
                out.token()
                out.space()
            write_expr(out, node.right)


def _write_postfix(out: TokenWriter, node: Postfix) -> None:
    write_expr(out, node.base)
    for accessor in node.accessors:
        if isinstance(accessor, IndexAccess):
            _write_index(out, accessor)
        else:
            out.token(".")
            out.token()


def _write_index(out: TokenWriter, accessor: IndexAccess) -> None:
    """An index; one without operators or brackets is never broken over lines."""
    index = accessor.index
    if isinstance(index, Chain | Compare | ListLit | MapLit | Paren | Postfix | Unary):
        write_enclosed(out, ("[", "]"), lambda: write_expr(out, index))
    else:
        out.token("[")
        write_expr(out, index)
        out.token("]")
