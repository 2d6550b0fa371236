"""What the operators of AFL do to the values of a run.

A value is what JSON holds. A Duration is its whole milliseconds and an enum member its name, so a
value alone does not tell a Duration from a number: where it matters, the static type does. `Json`
operands can be anything, so every operator looks at what it is given.

A Boolean is not a number, though Python takes it for one: kinds are compared by `type`, never by
`isinstance`.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable
from typing import Any

from afl.base.durations import MAX_DURATION_MS, format_duration
from afl.base.errors import AflError
from afl.ir.types import DOUBLE, DURATION, INT, LONG, OptionalOf, Type, type_text
from afl.ir.values import Json

Binary = Callable[[Json, Json], Json]
Predicate = Callable[[Json, Json], bool]

_NUMBERS = frozenset((int, float))
_COMPUTE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}
_WORDS = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "%": "take the remainder of",
    "++": "join",
}
#: The smallest and the largest whole number of each type.
INTEGER_BOUNDS: dict[Type | None, tuple[int, int]] = {
    INT: (-(2**31), 2**31 - 1),
    LONG: (-(2**63), 2**63 - 1),
    DURATION: (-MAX_DURATION_MS, MAX_DURATION_MS),
}
#: Characters of a String that a message repeats.
_MOST_SHOWN = 40


class EvaluationError(AflError):
    """An expression has no value."""

    code = "runtime.evaluation"


# Values in messages


def kind_of(value: object) -> str:
    """The kind of a value in a message: `Int`, `map`, `null`."""
    match value:
        case None:
            return "null"
        case bool():
            return "Boolean"
        case int():
            low, high = INTEGER_BOUNDS[INT]
            return "Int" if low <= value <= high else "Long"
        case float():
            return "Double"
        case str():
            return "String"
        case list():
            return "list"
        case dict():
            return "map"
    return f"Python {type(value).__name__}"


def described(value: object) -> str:
    """A value in a message: short, whatever it is."""
    match value:
        case None:
            return "null"
        case bool():
            return f"the Boolean {str(value).lower()}"
        # An integer of many digits cannot even be printed.
        case int() if value.bit_length() > 64:
            return "a huge number"
        case int() | float():
            return f"the {kind_of(value)} {value!r}"
        case str():
            return f"the String {quoted(value)}"
        case list():
            return f"a list of {len(value)}" if value else "an empty list"
    return f"a {kind_of(value)}"


def quoted(text: str) -> str:
    """A String in quotes, cut when it is long."""
    # Half a surrogate pair cannot be printed.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    cut = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
    return json.dumps(cut, ensure_ascii=False)


def listed(words: list[str], last: str = "and") -> str:
    """Names in a message: `a`, `b` and `c`."""
    *most, end = (f"`{word}`" for word in words)
    return f"{', '.join(most)} {last} {end}" if most else end


def cannot(op: str, left: Json, right: Json) -> EvaluationError:
    """The error of an operator that cannot take its operands."""
    return EvaluationError(f"cannot {_WORDS[op]} {kind_of(left)} and {kind_of(right)}")


def bare(of: Type | None) -> Type | None:
    """The type without its `?`: an operator only gets to see values that are there."""
    return of.of if isinstance(of, OptionalOf) else of


# Arithmetic


def arithmetic(op: str, chain: Type, *, whole: bool = False, last: bool = True) -> Binary:
    """`+ - * / %` as a link of a chain with that static type.

    The type of the chain bounds what each of its links gives, as it does for constants. `whole`
    says that the link gives a Duration, `last` that it is the value of the chain.
    """
    compute = _COMPUTE[op]
    settle = _settler(chain, whole=whole, last=last)
    if bare(chain) == DOUBLE:
        low, high = 1, 0  # never at once: on the way whole numbers have no bound, at the end none
    else:
        low, high = INTEGER_BOUNDS.get(bare(chain), INTEGER_BOUNDS[LONG])

    def apply(left: Json, right: Json) -> Json:
        if type(left) not in _NUMBERS or type(right) not in _NUMBERS:
            raise cannot(op, left, right)
        try:
            result = compute(left, right)
            if type(result) is int and low <= result <= high:
                return result
            return settle(result)
        except ZeroDivisionError:
            raise EvaluationError("division by zero") from None
        except OverflowError:
            raise EvaluationError("the result is out of range") from None

    return apply


def _settler(chain: Type, *, whole: bool, last: bool) -> Callable[[int | float], int | float]:
    """Brings what a link computed into its form, or refuses it."""
    of = bare(chain)
    unbounded = of == DOUBLE
    low, high = INTEGER_BOUNDS.get(of, INTEGER_BOUNDS[LONG])
    name = type_text(of if of is not None and of in INTEGER_BOUNDS else LONG)

    def settle(result: int | float) -> int | float:
        if type(result) is float:
            if not math.isfinite(result):
                raise OverflowError
            if not whole:
                return result
            result = round(result)
        if unbounded:
            return float(result) if last else result
        if not low <= result <= high:
            raise EvaluationError(f"the result is out of range for {name}")
        return result

    return settle


def negate(value: Json) -> Json:
    """`-` in front of a number or a Duration."""
    if type(value) is float:
        return -value
    if type(value) is not int:
        raise EvaluationError(f"`-` takes a number, not {described(value)}")
    if value == INTEGER_BOUNDS[LONG][0]:
        raise EvaluationError("the result is out of range for Long")
    return -value


def invert(value: Json) -> Json:
    """`!` in front of a Boolean."""
    if type(value) is not bool:
        raise EvaluationError(f"`!` takes a Boolean, not {described(value)}")
    return not value


# Joining


def joining(left_type: Type | None, right_type: Type | None) -> Binary:
    """`++` of operands with those static types, where they are known."""
    left_type, right_type = bare(left_type), bare(right_type)

    def apply(left: Json, right: Json) -> Json:
        if type(left) is str:
            text = right if type(right) is str else _text(right, right_type)
            if text is not None:
                return left + text
        elif type(right) is str:
            text = _text(left, left_type)
            if text is not None:
                return text + right
        elif type(left) is list and type(right) is list:
            return left + right
        elif _text(left, None) is not None and _text(right, None) is not None:
            raise EvaluationError(
                f"`++` joins Strings, and neither {described(left)} nor {described(right)} is one"
            )
        raise cannot("++", left, right)

    return apply


def _text(value: Json, of: Type | None) -> str | None:
    """A value as `++` writes it, or None if it cannot be joined."""
    if type(value) is int:
        if of == DURATION:
            return f"{'-' if value < 0 else ''}{format_duration(abs(value))}"
        return repr(float(value)) if of == DOUBLE else str(value)
    if type(value) is float:
        return repr(value)
    if type(value) is bool:
        return "true" if value else "false"
    return value if type(value) is str else None


# Comparing


def equal(left: Json, right: Json) -> bool:
    """Whether two values are the same: `1` and `1.0` are, `1` and `true` are not."""
    kind = type(left)
    if kind is not type(right):
        return kind in _NUMBERS and type(right) in _NUMBERS and left == right
    if kind is list:
        return _equal_lists(left, right)  # type: ignore[arg-type]  # by their kind
    if kind is dict:
        return _equal_maps(left, right)  # type: ignore[arg-type]  # by their kind
    return left == right


def _equal_lists(left: list[Json], right: list[Json]) -> bool:
    return len(left) == len(right) and all(map(equal, left, right))


def _equal_maps(left: dict[str, Json], right: dict[str, Json]) -> bool:
    return left.keys() == right.keys() and all(
        equal(value, right[key]) for key, value in left.items()
    )


def _different(left: Json, right: Json) -> bool:
    return not equal(left, right)


def _ordering(op: str, compare: Callable[[Any, Any], Any]) -> Predicate:
    def apply(left: Json, right: Json) -> bool:
        if (type(left) in _NUMBERS and type(right) in _NUMBERS) or (
            type(left) is str and type(right) is str
        ):
            return compare(left, right) is True
        raise EvaluationError(f"cannot order {kind_of(left)} and {kind_of(right)} with `{op}`")

    return apply


def _is_in(item: Json, container: Json) -> bool:
    if type(container) is str:
        raise EvaluationError(f"`in` takes a list or a map, not {described(container)}")
    return _holds("in", container, item)


def _is_not_in(item: Json, container: Json) -> bool:
    return not _is_in(item, container)


def _contains(container: Json, item: Json) -> bool:
    return _holds("contains", container, item)


def _holds(op: str, container: Json, item: Json) -> bool:
    if isinstance(container, list):
        return any(equal(item, other) for other in container)
    if not isinstance(container, str | dict):
        wanted = "a list or a map" if op == "in" else "a list, a map or a String"
        raise EvaluationError(f"`{op}` takes {wanted}, not {described(container)}")
    if item is None:
        return False  # a String that may be null can be looked for, and null is nowhere
    if not isinstance(item, str):
        raise EvaluationError(f"a {kind_of(container)} holds Strings, not {described(item)}")
    return item in container


def _affix(op: str, test: Callable[[str, str], bool]) -> Predicate:
    def apply(left: Json, right: Json) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            return test(left, right)
        wrong = right if isinstance(left, str) else left
        raise EvaluationError(f"`{op}` takes Strings, not {described(wrong)}")

    return apply


#: Every comparison of the language.
COMPARISONS: dict[str, Predicate] = {
    "==": equal,
    "!=": _different,
    "<": _ordering("<", operator.lt),
    "<=": _ordering("<=", operator.le),
    ">": _ordering(">", operator.gt),
    ">=": _ordering(">=", operator.ge),
    "in": _is_in,
    "not in": _is_not_in,
    "contains": _contains,
    "startsWith": _affix("startsWith", str.startswith),
    "endsWith": _affix("endsWith", str.endswith),
}
