"""The values of constant expressions, as far as a check needs them."""

from __future__ import annotations

import operator
from collections.abc import Callable

from afl.ir import model as ir

Value = str | int | float | bool | None | list["Value"] | dict[str, "Value"]

_Number = int | float
_ARITHMETIC: dict[str, Callable[[_Number, _Number], _Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}


class NotConstant(Exception):
    """The expression reads something that only a run knows."""


class Impossible(Exception):
    """The expression is constant and has no value; the message says why."""


def evaluate(expr: ir.Expr) -> Value:
    """The value of an expression without references.

    Raises:
        NotConstant: it has references, or an operator that is not worth evaluating here.
        Impossible: it divides by zero.
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
        case ir.ChainExpr(first, rest):
            result = evaluate(first)
            for link in rest:
                result = _apply(link.op, result, link.operand)
            return result
        case ir.CompareExpr("==", left, right):
            return evaluate(left) == evaluate(right)
        case ir.CompareExpr("!=", left, right):
            return evaluate(left) != evaluate(right)
        case _:
            pass
    raise NotConstant


def _apply(op: str, left: Value, operand: ir.Expr) -> Value:
    if op == "&&":
        return bool(left) and evaluate(operand)
    if op == "||":
        return bool(left) or evaluate(operand)
    if op == "??":
        return evaluate(operand) if left is None else left
    right = evaluate(operand)
    if op == "++" and isinstance(left, str) and isinstance(right, str):
        return left + right
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
