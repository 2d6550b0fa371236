"""Constants are worth the same here and in the checker."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.ir import model as ir
from afl.ir.types import DOUBLE, LONG
from afl.ir.values import Json
from afl.lang.checker.constants import Impossible, evaluate
from afl.runtime.expressions import EvaluationError, constant
from tests.runtime.expressing import (
    LONGEST,
    expression,
    outcome,
    same,
)

CONSTANTS: list[tuple[str, Json]] = [
    ("7 / 2", 3.5),
    ("6 / 2", 3.0),
    ("1 + 2 * 3", 7),
    ("10 - 2 - 3", 5),
    ("7 % 3", 1),
    ("-7 % 3", 2),
    ("7 % -3", -2),
    ("7.5 % 2", 1.5),
    ("1 + 2.0", 3.0),
    ("-(1 + 2)", -3),
    ("-2147483648", -(2**31)),
    ("9223372036854775807 - 1", LONGEST - 1),
    ("2147483647 + 1 + 5000000000", 7147483648),
    ("9223372036854775807 * 2 * 0.5", 9.223372036854775807e18),
    ("9007199254740993 - 1 + 0.0", 9007199254740992.0),
    ("-9223372036854775808", -(2**63)),
    ("1h30m + 30s", 5_430_000),
    ("2 * 15s", 30_000),
    ("1m - 90s", -30_000),
    ("1m % 7s", 4_000),
    ("1m / 30s", 2.0),
    ("-30s", -30_000),
    ("true && false", False),
    ("true && true && true", True),
    ("false || true", True),
    ("false || false", False),
    ("!true", False),
    ("null ?? 5", 5),
    ("1 == 1.0", True),
    ("2 != 2", False),
    ('"a" == "a"', True),
    ("[1, 2] == [1.0, 2.0]", True),
    ("#{a: 1} == #{a: 2}", False),
    ("30s == 30000ms", True),
    ("null == null", True),
    ('"a" ++ "b" ++ "c"', "abc"),
    ('["a", "b"]', ["a", "b"]),
    ('#{a: 1, "b c": [2]}', {"a": 1, "b c": [2]}),
    ('""', ""),
    ("2.5e-3", 0.0025),
]


@pytest.mark.parametrize(("text", "expected"), CONSTANTS)
def test_a_constant_is_what_the_checker_takes_it_for(text: str, expected: Json) -> None:
    expr = expression(text)
    assert same(constant(expr), expected)
    assert same(constant(expr), evaluate(expr))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("1.5 / 0.0", "division by zero"),
        ("1m / 0", "division by zero"),
        ("1m / 0s", "division by zero"),
        ("2147483647 + 1", "the result is out of range for Int"),
        ("-2147483648 - 1", "the result is out of range for Int"),
        ("65536 * 65536 / 2 + 9223372036854775807 * 2", "the result is out of range for Long"),
        ("9223372036854775807 + 1", "the result is out of range for Long"),
    ],
)
def test_what_the_checker_finds_impossible_has_no_value(text: str, message: str) -> None:
    expr = expression(text)
    with pytest.raises(Impossible):
        evaluate(expr)
    with pytest.raises(EvaluationError) as raised:
        constant(expr)
    assert raised.value.message == message


numbers = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-20, 20),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)


@given(first=numbers, rest=st.lists(st.tuples(st.sampled_from("+-*/%"), numbers), min_size=1))
def test_arithmetic_agrees_with_the_checker(
    first: int | float, rest: list[tuple[str, int | float]]
) -> None:
    all_whole = all(isinstance(n, int) for n in (first, *(n for _, n in rest)))
    chain = LONG if all_whole and all(op != "/" for op, _ in rest) else DOUBLE

    def literal(value: int | float) -> ir.Literal:
        return ir.Literal(value, LONG if isinstance(value, int) else DOUBLE)

    expr = ir.ChainExpr(
        literal(first), tuple(ir.Link(op, literal(value)) for op, value in rest), chain
    )
    try:
        expected = evaluate(expr)
    except Impossible:
        expected = None
    found = outcome(expr)
    if expected is None or (isinstance(expected, float) and not math.isfinite(expected)):
        assert isinstance(found, EvaluationError)
    elif isinstance(found, EvaluationError):
        # a value on the way was not finite, though a remainder or a quotient of it is
        assert found.message == "the result is out of range"
    else:
        assert found == expected


@pytest.mark.parametrize("text", ["30s / 7", "1s * 0.3333", "1.5 * 3ms"])
def test_a_constant_duration_is_what_the_checker_takes_it_for_in_whole_ms(text: str) -> None:
    expr = expression(text)
    exact = evaluate(expr)
    assert isinstance(exact, float)
    assert same(constant(expr), round(exact))
