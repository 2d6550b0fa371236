"""The types that operators take and give."""

from __future__ import annotations

from afl.ir.types import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    INT,
    JSON,
    LONG,
    STRING,
    EnumRef,
    FacetRef,
    ListOf,
    MapOf,
    Type,
)
from afl.lang import tree
from afl.lang.checker.mismatch import enum_remedy, report_whole_step
from afl.lang.checker.scope import Context
from afl.lang.checker.types import (
    NULL,
    UNKNOWN,
    bare,
    comparable,
    is_dynamic,
    is_numeric,
    is_ordered,
    join,
    may_be_null,
    show,
    wider,
)
from afl.lang.diagnostics.model import Suggestion
from afl.lang.diagnostics.reporter import advise, replace

_WORDS = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "%": "take the remainder of",
}


def unary(context: Context, node: tree.Unary, type: Type) -> Type:
    if is_dynamic(type):
        return type
    if _refuse_step(context, node.operand, node.op, type):
        return UNKNOWN
    if node.op == "!" and type == BOOLEAN:
        return BOOLEAN
    if node.op == "-" and (is_numeric(type) or type == DURATION):
        return type
    wanted = "a Boolean" if node.op == "!" else "a number"
    _refuse(context, node.operand, node.op, wanted, type)
    return UNKNOWN


def binary(
    context: Context, chain: tree.Chain, link: tree.ChainLink, left: Type, right: Type
) -> Type:
    """The type of `left op right`."""
    op = link.op
    operands = ((chain.first, left), (link.operand, right))
    refused = [_refuse_step(context, node, op, type) for node, type in operands]
    if any(refused):
        return BOOLEAN if op in ("&&", "||") else UNKNOWN
    if op in ("&&", "||"):
        for node, type in operands:
            if type != BOOLEAN and not is_dynamic(type):
                _refuse(context, node, op, "Booleans", type)
        return BOOLEAN
    for node, type in operands:
        if may_be_null(type):
            _refuse_null(context, node, op, type)
            return UNKNOWN
    if op == "++":
        return _concat(context, chain, link, left, right)
    if left == UNKNOWN or right == UNKNOWN:
        return UNKNOWN
    result = _arithmetic(op, left, right)
    if result is None:
        _refuse_arithmetic(context, chain, link, left, right)
        return UNKNOWN
    return result


def _arithmetic(op: str, left: Type, right: Type) -> Type | None:
    if is_dynamic(left) or is_dynamic(right):
        known = right if is_dynamic(left) else left
        if not (is_dynamic(known) or is_numeric(known) or known == DURATION):
            return None
        # a Duration by a number is a Duration, by a Duration it is a number
        return DOUBLE if op == "/" and left != DURATION else JSON
    if is_numeric(left) and is_numeric(right):
        return DOUBLE if op == "/" else wider(left, right)
    if left == DURATION and right == DURATION:
        return {"+": DURATION, "-": DURATION, "/": DOUBLE, "%": DURATION}.get(op)
    if left == DURATION and is_numeric(right) and op in ("*", "/"):
        return DURATION
    if is_numeric(left) and right == DURATION and op == "*":
        return DURATION
    return None


def _refuse_arithmetic(
    context: Context, chain: tree.Chain, link: tree.ChainLink, left: Type, right: Type
) -> None:
    source = context.unit.source
    sign = source.span(link.op_start, link.op_start + len(link.op))
    suggestions: list[Suggestion] = []
    if link.op == "+" and (STRING in (left, right) or isinstance(left, ListOf)):
        what = "lists" if isinstance(left, ListOf) else "strings"
        suggestions.append(replace(sign, "++", f"join {what} with `++`"))
    context.reporter.report(
        "AFL2006",
        sign,
        f"cannot {_WORDS[link.op]} `{show(left)}` and `{show(right)}`",
        f"`{show(left)}` {link.op} `{show(right)}`",
        suggestions=suggestions,
    )


def _concat(
    context: Context, chain: tree.Chain, link: tree.ChainLink, left: Type, right: Type
) -> Type:
    if isinstance(left, ListOf) or isinstance(right, ListOf):
        joined = join(left, right)
        if joined is not None:
            return joined
    elif is_dynamic(left) and is_dynamic(right):
        return left
    elif left == STRING or right == STRING or is_dynamic(left) or is_dynamic(right):
        if _joinable(left) and _joinable(right):
            return STRING
    elif _joinable(left) and _joinable(right):
        sign = context.unit.source.span(link.op_start, link.op_start + 2)
        suggestions = [replace(sign, "+", "to add, write `+`")] if is_numeric(left) else []
        context.reporter.report(
            "AFL2006",
            sign,
            "`++` joins strings, and neither side is one",
            f"`{show(left)}` ++ `{show(right)}`",
            suggestions=suggestions,
        )
        return UNKNOWN
    sign = context.unit.source.span(link.op_start, link.op_start + 2)
    context.reporter.report(
        "AFL2006",
        sign,
        f"cannot join `{show(left)}` and `{show(right)}`",
        f"`{show(left)}` ++ `{show(right)}`",
        notes=[
            "`++` joins a String with a String, a number, a Boolean or an enum member, or two lists"
        ],
    )
    return UNKNOWN


def _joinable(type: Type) -> bool:
    return (
        type in (STRING, BOOLEAN, DURATION)
        or is_numeric(type)
        or is_dynamic(type)
        or isinstance(type, EnumRef)
    )


def compare(context: Context, node: tree.Compare, left: Type, right: Type) -> None:
    """Reports operands that a comparison cannot take. The result is a Boolean in any case."""
    if UNKNOWN in (left, right):
        return
    operands = ((node.left, left), (node.right, right))
    refused = [_refuse_step(context, operand, node.op, type) for operand, type in operands]
    if any(refused):
        return
    if node.op in ("==", "!="):
        _equality(context, node, left, right)
    elif node.op in ("in", "not in"):
        _containment(context, node, item=left, container=right)
    elif node.op == "contains":
        _containment(context, node, item=right, container=left)
    elif node.op in ("startsWith", "endsWith"):
        for operand, type in operands:
            if type != STRING and not is_dynamic(type):
                _refuse(context, operand, node.op, "Strings", type)
    else:
        _order(context, node, left, right)


def _equality(context: Context, node: tree.Compare, left: Type, right: Type) -> None:
    if NULL in (left, right):
        other = right if left == NULL else left
        if other != NULL and not may_be_null(other) and not is_dynamic(other):
            context.reporter.report(
                "AFL2020",
                context.span(node),
                f"`{show(other)}` is never null, so this is always {_constant(node.op)}",
                f"always {_constant(node.op)}",
            )
    elif not comparable(left, right):
        _report_unrelated(context, node, left, right)


def _constant(op: str) -> str:
    return "false" if op == "==" else "true"


def _report_unrelated(context: Context, node: tree.Compare, left: Type, right: Type) -> None:
    remedy: list[Suggestion] = []
    for operand, other in ((node.left, bare(right)), (node.right, bare(left))):
        if isinstance(other, EnumRef):
            remedy += enum_remedy(context, operand, other)
    context.reporter.report(
        "AFL2011",
        context.span(node),
        f"`{show(left)}` and `{show(right)}` are never equal",
        f"`{show(left)}` {node.op} `{show(right)}`",
        suggestions=remedy,
    )


def _order(context: Context, node: tree.Compare, left: Type, right: Type) -> None:
    for operand, type in ((node.left, left), (node.right, right)):
        if may_be_null(type):
            _refuse_null(context, operand, node.op, type)
            return
    ordered = is_ordered(left) and is_ordered(right)
    if not ordered or not comparable(left, right):
        context.reporter.report(
            "AFL2006",
            context.span(node),
            f"cannot order `{show(left)}` and `{show(right)}` with `{node.op}`",
            f"`{show(left)}` {node.op} `{show(right)}`",
            notes=["numbers, Strings and Durations have an order, each among themselves"],
        )


def _containment(context: Context, node: tree.Compare, item: Type, container: Type) -> None:
    container_node = node.left if node.op == "contains" else node.right
    if may_be_null(container):
        _refuse_null(context, container_node, node.op, container)
        return
    if is_dynamic(container):
        return
    if isinstance(container, ListOf):
        if not comparable(item, container.of):
            _report_never_in(context, node, item, container)
        return
    if isinstance(container, MapOf) or (container == STRING and node.op == "contains"):
        if bare(item) != STRING and not is_dynamic(item):
            _report_never_in(context, node, item, container)
        return
    wanted = "a list, a map or a String" if node.op == "contains" else "a list or a map"
    _refuse(context, container_node, node.op, wanted, container)


def _report_never_in(context: Context, node: tree.Compare, item: Type, container: Type) -> None:
    left, right = (container, item) if node.op == "contains" else (item, container)
    notes = ["only the keys of a map are searched"] if isinstance(container, MapOf) else []
    context.reporter.report(
        "AFL2011",
        context.span(node),
        f"there is never `{show(item)}` in `{show(container)}`",
        f"`{show(left)}` {node.op} `{show(right)}`",
        notes=notes,
    )


def index(
    context: Context, node: tree.IndexAccess, type: Type, index_type: Type, shown: str
) -> Type:
    """The type of `value[index]`."""
    if may_be_null(index_type):
        _refuse_null(context, node.index, "[...]", index_type)
        index_type = UNKNOWN
    elif _refuse_step(context, node.index, "[...]", index_type):
        index_type = UNKNOWN
    if isinstance(type, ListOf):
        if index_type not in (INT, LONG) and not is_dynamic(index_type):
            _wrong_index(context, node, "a list is indexed by an Int", index_type)
        return type.of
    if isinstance(type, MapOf):
        if index_type != STRING and not is_dynamic(index_type):
            _wrong_index(context, node, "a map is indexed by a String", index_type)
        return type.of
    if is_dynamic(type):
        return type
    context.reporter.report(
        "AFL2009",
        context.span(node),
        f"`{shown}` is `{show(type)}`, which cannot be indexed",
        "only lists and maps have an index",
    )
    return UNKNOWN


def _wrong_index(context: Context, node: tree.IndexAccess, message: str, type: Type) -> None:
    context.reporter.report("AFL2009", context.span(node.index), message, f"this is `{show(type)}`")


def _refuse_step(context: Context, node: tree.Expr, op: str, type: Type) -> bool:
    if isinstance(type, FacetRef):
        report_whole_step(context, node, type, f"`{op}` takes values, and this is a whole step")
    return isinstance(type, FacetRef)


def _refuse(context: Context, node: tree.Expr, op: str, wanted: str, type: Type) -> None:
    if may_be_null(type):
        _refuse_null(context, node, op, type)
        return
    context.reporter.report(
        "AFL2006",
        context.span(node),
        f"`{op}` takes {wanted}, not `{show(type)}`",
        f"this is `{show(type)}`",
    )


def _refuse_null(context: Context, node: tree.Expr, op: str, type: Type) -> None:
    context.reporter.report(
        "AFL2005",
        context.span(node),
        f"`{op}` cannot take a value that may be null",
        f"this is `{show(type)}`",
        suggestions=[advise("give a default with `??`, or test it for null first")],
    )
