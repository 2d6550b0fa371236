"""The values of constant expressions, as far as a check needs them."""

from __future__ import annotations

import operator
from collections.abc import Callable

from afl.ir import model as ir
from afl.ir.types import INT, LONG, Type, type_text

Value = str | int | float | bool | None | list["Value"] | dict[str, "Value"]

_Number = int | float
_ARITHMETIC: dict[str, Callable[[_Number, _Number], _Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}
#: The bits of a whole number, beside its sign.
_BITS: dict[Type, int] = {INT: 31, LONG: 63}


class NotConstant(Exception):
    """The expression reads something that only a run knows."""


class Impossible(Exception):
    """The expression is constant and has no value; the message says why."""


def evaluate(expr: ir.Expr) -> Value:
    """The value of an expression without references.

    Raises:
        NotConstant: it has references, or an operator that is not worth evaluating here.
        Impossible: it divides by zero, or its value is too large for its type.
    """
    match expr:
        case ir.Literal(value):
            return value
        case ir.ListExpr(items):
            return [evaluate(item) for item in items]
        case ir.MapExpr(items):
            return {item.key: evaluate(item.value) for item in items}
        case ir.UnaryExpr(op, operand):
            inner = evaluate(operand)
            if op == "!" and isinstance(inner, bool):
                return not inner
            if op == "-" and isinstance(inner, int | float):
                return -inner
        case ir.ChainExpr(first, rest, type):
            result = evaluate(first)
            for link in rest:
                result = _apply(link.op, result, link.operand)
                _check_range(result, type)
            return result
        case ir.CompareExpr("==", left, right):
            return evaluate(left) == evaluate(right)
        case ir.CompareExpr("!=", left, right):
            return evaluate(left) != evaluate(right)
        case _:
            pass
    raise NotConstant


def _check_range(value: Value, type: Type) -> None:
    bits = _BITS.get(type)
    if bits is not None and isinstance(value, int) and not -(1 << bits) <= value < 1 << bits:
        raise Impossible(f"its value is out of range for `{type_text(type)}`")


def _apply(op: str, left: Value, operand: ir.Expr) -> Value:
    if op == "&&":
        return bool(left) and evaluate(operand)
    if op == "||":
        return bool(left) or evaluate(operand)
    if op == "??":
        return evaluate(operand) if left is None else left
    right = evaluate(operand)
    if op == "++":
        if isinstance(left, str) and isinstance(right, str):
            return left + right
        raise NotConstant
    if isinstance(left, bool | str | list | dict) or isinstance(right, bool | str | list | dict):
        raise NotConstant
    if left is None or right is None:
        raise NotConstant
    if op in ("/", "%") and right == 0:
        raise Impossible("it divides by zero")
    try:
        return _ARITHMETIC[op](left, right)
    except OverflowError:
        raise Impossible("its value is out of range") from None


def boolean(expr: ir.Expr) -> bool | None:
    """The value of a condition that does not depend on the run, else None."""
    try:
        value = evaluate(expr)
    except (NotConstant, Impossible):
        return None
    return value if isinstance(value, bool) else None


def number(expr: ir.Expr) -> int | float | None:
    """The value of a number that does not depend on the run, else None."""
    try:
        value = evaluate(expr)
    except (NotConstant, Impossible):
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
