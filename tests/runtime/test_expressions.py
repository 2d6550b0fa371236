from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.base.durations import parse_duration
from afl.base.errors import AflError
from afl.ir import model as ir
from afl.ir.types import DOUBLE, DURATION, INT, JSON, LONG, STRING, ListOf, Type
from afl.ir.values import Json
from afl.runtime.expressions import EvaluationError, compile_expr, constant
from tests.runtime.expressing import (
    LONGEST,
    Values,
    expression,
    outcome,
    run,
    same,
)


@pytest.mark.parametrize(
    ("text", "inputs", "expected"),
    [
        ("$.n + 1", {"n": 2}, 3),
        ("$.n / 2", {"n": 7}, 3.5),
        ("$.x * $.n", {"x": 1.5, "n": 2}, 3.0),
        ("$.j + 1", {"j": 2}, 3),
        ("$.j + 1", {"j": 2.5}, 3.5),
        ("$.j - $.k", {"j": 1, "k": 2}, -1),
        ("-$.j", {"j": 3}, -3),
        ("-$.x", {"x": 2.5}, -2.5),
        ("!$.j", {"j": False}, True),
        # Durations stay whole milliseconds, link by link
        ("$.wait / 7", {"wait": 30_000}, 4_286),
        ("$.wait / 7 * 7", {"wait": 30_000}, 30_002),
        ("($.wait / 7) * 7", {"wait": 30_000}, 30_002),
        ("$.wait * 1.5", {"wait": 3}, 4),
        ("1.5 * $.n * $.wait", {"n": 1, "wait": 10}, 15),
        ("7 / $.n * $.wait", {"n": 2, "wait": 30_000}, 105_000),
        ("$.wait / 7 / 2s", {"wait": 30_000}, 2.143),
        ("$.wait * $.j", {"wait": 1_000, "j": 0.5}, 500),
        ("$.wait / $.j", {"wait": 1_000, "j": 4}, 250.0),
        ("$.wait % 7s", {"wait": 60_000}, 4_000),
        # null
        ('$.maybe ?? "none"', {"maybe": None}, "none"),
        ('$.maybe ?? "none"', {"maybe": ""}, ""),
        ("$.share ?? 1", {"share": None}, 1.0),
        ("$.share ?? 1", {"share": 0.5}, 0.5),
        ("$.j ?? $.k ?? 3", {"j": None, "k": False}, False),
        ("$.j ?? $.k", {"j": None, "k": None}, None),
        # equality
        ("$.j == $.k", {"j": 1, "k": True}, False),
        ("$.j == $.k", {"j": 1, "k": 1.0}, True),
        ("$.j == $.k", {"j": [1, {"a": [0]}], "k": [1.0, {"a": [0.0]}]}, True),
        ("$.j == $.k", {"j": [1], "k": [True]}, False),
        ("$.j == $.k", {"j": {"a": 1}, "k": {"a": True}}, False),
        ("$.j == $.k", {"j": {"a": 1}, "k": {"b": 1}}, False),
        ("$.j == $.k", {"j": [1], "k": [1, 2]}, False),
        ("$.j != $.k", {"j": None, "k": 0}, True),
        ("$.maybe == null", {"maybe": None}, True),
        ("$.level == high", {"level": "high"}, True),
        # order
        ("$.n < 3", {"n": 2}, True),
        ("$.n <= 2.5", {"n": 3}, False),
        ("$.s > $.j", {"s": "b", "j": "a"}, True),
        ("$.wait >= 30s", {"wait": 30_000}, True),
        # membership
        ("$.s in $.names", {"s": "a", "names": ["b", "a"]}, True),
        ("$.s not in $.names", {"s": "a", "names": ["b", "a"]}, False),
        ("$.j in $.nums", {"j": True, "nums": [1]}, False),
        ("$.j in $.nums", {"j": 1.0, "nums": [1]}, True),
        ("$.s in $.limits", {"s": "a", "limits": {"a": 1}}, True),
        ("$.maybe in $.limits", {"maybe": None, "limits": {"a": 1}}, False),
        ("$.names contains $.s", {"s": "c", "names": ["b", "a"]}, False),
        ("$.limits contains $.s", {"s": "a", "limits": {"a": 1}}, True),
        ('$.s contains "el"', {"s": "hello"}, True),
        ("$.s contains $.maybe", {"s": "hello", "maybe": None}, False),
        ('$.s startsWith "he"', {"s": "hello"}, True),
        ('$.s endsWith "he"', {"s": "hello"}, False),
        ("$.level in [low, high]", {"level": "high"}, True),
        # joining
        ('"n is " ++ $.n + 1 ++ "!"', {"n": 1}, "n is 2!"),
        ('$.n ++ ""', {"n": -5}, "-5"),
        ('"" ++ $.x', {"x": 2.0}, "2.0"),
        ('"" ++ $.x', {"x": 0.1}, "0.1"),
        ('"" ++ $.yes ++ !$.yes', {"yes": True}, "truefalse"),
        ('"" ++ $.level', {"level": "low"}, "low"),
        ('"" ++ $.wait', {"wait": 5_400_000}, "1h30m"),
        ('$.wait ++ " left"', {"wait": 0}, "0ms left"),
        ('"" ++ (10s - $.wait)', {"wait": 15_000}, "-5s"),
        ('"" ++ -$.wait', {"wait": 15_000}, "-15s"),
        ('"" ++ ($.later ?? 1s)', {"later": None}, "1s"),
        ('"" ++ 90s', {}, "1m30s"),
        ('"" ++ $.j', {"j": 90_000}, "90000"),
        ('"" ++ [1.5, 2][0]', {}, "1.5"),
        ("$.names ++ [$.s]", {"names": ["a"], "s": "b"}, ["a", "b"]),
        ("$.j ++ $.k", {"j": [1], "k": ["b"]}, [1, "b"]),
        ("$.j ++ $.k", {"j": "a", "k": 2}, "a2"),
        # reading
        ("$.names[1]", {"names": ["a", "b"]}, "b"),
        ("$.names[$.n - 1]", {"names": ["a", "b"], "n": 1}, "a"),
        ('$.limits["a b"]', {"limits": {"a b": 1}}, 1),
        ("$.limits.a", {"limits": {"a": 1}}, 1),
        ("$.j.items[0].name", {"j": {"items": [{"name": "x"}]}}, "x"),
        ("$.j[$.k]", {"j": {"a": None}, "k": "a"}, None),
        ("[1, 2, 3][2]", {}, 3),
        ("#{a: [$.n]}.a", {"n": 4}, [4]),
        ("[$.n, $.n + 1]", {"n": 4}, [4, 5]),
    ],
)
def test_operators(text: str, inputs: dict[str, Json], expected: Json) -> None:
    assert same(run(text, **inputs), expected)


@pytest.mark.parametrize(
    ("text", "inputs", "message"),
    [
        ("$.j + 1", {"j": "1"}, "cannot add String and Int"),
        ("$.j + $.k", {"j": "a", "k": None}, "cannot add String and null"),
        ("$.j - 1", {"j": [1]}, "cannot subtract list and Int"),
        ("$.j * 1", {"j": True}, "cannot multiply Boolean and Int"),
        ("$.j / 2.5", {"j": {}}, "cannot divide map and Double"),
        (
            "$.j % 5000000000",
            {"j": None},
            "cannot take the remainder of null and Long",
        ),
        ("$.n / $.n", {"n": 0}, "division by zero"),
        ("$.n % $.n", {"n": 0}, "division by zero"),
        ("$.n * 2", {"n": 2**30}, "the result is out of range for Int"),
        ("$.big + 1", {"big": LONGEST}, "the result is out of range for Long"),
        ("$.j + 1", {"j": LONGEST}, "the result is out of range for Long"),
        ("$.wait * 2", {"wait": LONGEST}, "the result is out of range for Duration"),
        ("$.wait * $.x", {"wait": 1, "x": 1e300}, "the result is out of range for Duration"),
        ("$.x * 10", {"x": 1e308}, "the result is out of range"),
        ("$.j * 10", {"j": 1e308}, "the result is out of range"),
        ("-$.big", {"big": -(2**63)}, "the result is out of range for Long"),
        ("-$.j", {"j": True}, "`-` takes a number, not the Boolean true"),
        ("!$.j", {"j": 0}, "`!` takes a Boolean, not the Int 0"),
        ("$.yes && $.j", {"yes": True, "j": 1}, "`&&` takes Booleans, not the Int 1"),
        ("$.j || $.yes", {"yes": True, "j": None}, "`||` takes Booleans, not null"),
        ("$.j < 1", {"j": "a"}, "cannot order String and Int with `<`"),
        ("$.j >= $.k", {"j": True, "k": False}, "cannot order Boolean and Boolean with `>=`"),
        ("1 in $.j", {"j": "1"}, '`in` takes a list or a map, not the String "1"'),
        ("1 not in $.j", {"j": 1}, "`in` takes a list or a map, not the Int 1"),
        ("$.j in $.limits", {"j": 1, "limits": {}}, "a map holds Strings, not the Int 1"),
        ("$.s contains $.j", {"s": "a", "j": []}, "a String holds Strings, not an empty list"),
        (
            "$.j contains 1",
            {"j": None},
            "`contains` takes a list, a map or a String, not null",
        ),
        ("$.j startsWith $.s", {"j": 1, "s": ""}, "`startsWith` takes Strings, not the Int 1"),
        ("$.s endsWith $.j", {"j": [1, 2], "s": ""}, "`endsWith` takes Strings, not a list of 2"),
        ('"a" ++ $.j', {"j": None}, "cannot join String and null"),
        ('$.j ++ "a"', {"j": []}, "cannot join list and String"),
        ("[1] ++ $.j", {"j": {}}, "cannot join list and map"),
        (
            '$.j ++ $.k ++ "a"',
            {"j": 1, "k": 2.5},
            "`++` joins Strings, and neither the Int 1 nor the Double 2.5 is one",
        ),
        ("$.names[3]", {"names": ["a", "b"]}, "index 3 is past the end of a list of 2"),
        (
            "$.names[-1]",
            {"names": ["a"]},
            "index -1 is negative; the first element has the index 0",
        ),
        ("$.j[true]", {"j": [1]}, "a list is indexed by an Int, not the Boolean true"),
        ("$.j[0.0]", {"j": [1]}, "a list is indexed by an Int, not the Double 0.0"),
        ("$.j[0]", {"j": {"0": 1}}, "a map is indexed by a String, not the Int 0"),
        ('$.limits["x"]', {"limits": {"a": 1}}, 'the key "x" is missing from the map'),
        (
            "$.j[0]",
            {"j": "text"},
            'only lists and maps have an index, and this is the String "text"',
        ),
        (
            "$.j.a.b",
            {"j": {"a": {"c": 1, "d": 2}}},
            "the field `b` is missing from `$.j.a`; it has `c` and `d`",
        ),
        ("$.j.a", {"j": {}}, "the field `a` is missing from `$.j`; it is empty"),
        ("$.j.a.b", {"j": {"a": None}}, "cannot read the field `b` of `$.j.a`, which is null"),
        ("$.j.a", {"j": [1]}, "cannot read the field `a` of `$.j`, which is a list of 1"),
        (
            "$.j.a",
            {"j": "a" * 99},
            'cannot read the field `a` of `$.j`, which is the String "' + "a" * 40 + '…"',
        ),
        ("$.j[0].a", {"j": [{"b": 1}]}, "the field `a` is missing from the value; it has `b`"),
        ("$.j[0].a", {"j": [None]}, "cannot read the field `a` of null"),
    ],
)
def test_what_has_no_value_says_why(text: str, inputs: dict[str, Json], message: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        run(text, **inputs)
    assert raised.value.message == message


def test_an_evaluation_error_is_one_of_ours() -> None:
    assert issubclass(EvaluationError, AflError)
    assert EvaluationError.code == "runtime.evaluation"


@pytest.mark.parametrize(
    ("text", "inputs", "read"),
    [
        ("$.yes && $.j", {"yes": False}, ["yes"]),
        ("$.yes || $.j", {"yes": True}, ["yes"]),
        ("$.maybe ?? $.s", {"maybe": "a"}, ["maybe"]),
        ("$.yes && $.j", {"yes": True, "j": True}, ["yes", "j"]),
    ],
)
def test_operands_after_the_one_that_decides_are_not_read(
    text: str, inputs: dict[str, Json], read: list[str]
) -> None:
    scope = Values(inputs)
    compile_expr(expression(text))(scope)
    assert scope.read == read


def test_values_of_a_run_are_not_changed() -> None:
    names: list[Json] = ["a"]
    assert run('$.names ++ ["b"]', names=names) == ["a", "b"]
    assert names == ["a"]


def test_a_list_is_a_new_one_each_time() -> None:
    compiled = compile_expr(expression("[1, 2]"))
    first = compiled(Values())
    assert first == compiled(Values())
    assert first is not compiled(Values())


def test_a_chain_may_be_long() -> None:
    links = tuple(ir.Link("+", ir.Literal(1, INT)) for _ in range(20_000))
    assert constant(ir.ChainExpr(ir.Literal(0, INT), links, INT)) == 20_000


# Laws

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


def compared(op: str, left: Json, right: Json) -> Json:
    expr = ir.CompareExpr(op, ir.Input("a", ()), ir.Input("b", ()))
    return compile_expr(expr)(Values({"a": left, "b": right}))


def strict(value: Json) -> object:
    """A value that Python compares as the language does."""
    match value:
        case bool():
            return ("Boolean", value)
        case list():
            return [strict(item) for item in value]
        case dict():
            return {key: strict(item) for key, item in value.items()}
    return value


@given(left=values, right=values)
def test_equality_is_deep_and_keeps_booleans_from_numbers(left: Json, right: Json) -> None:
    assert compared("==", left, right) is (strict(left) == strict(right))
    assert compared("!=", left, right) is (strict(left) != strict(right))
    assert compared("==", left, left) is True
    assert compared("in", left, [right]) is compared("==", left, right)
    assert compared("contains", [right, left], left) is True


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_the_text_of_a_duration_can_be_read_again(ms: int) -> None:
    expr = ir.ChainExpr(ir.Literal("", STRING), (ir.Link("++", ir.Literal(ms, DURATION)),), STRING)
    text = constant(expr)
    assert isinstance(text, str)
    assert parse_duration(text.lstrip("-")) == abs(ms)
    assert text.startswith("-") == (ms < 0)


@given(
    op=st.sampled_from(["+", "-", "*", "/", "%", "++", "&&", "||", "??"]),
    chain=st.sampled_from([INT, LONG, DOUBLE, DURATION, STRING, JSON, ListOf(JSON)]),
    operands=st.lists(values, min_size=2, max_size=3),
)
def test_no_operator_fails_in_another_way(op: str, chain: Type, operands: list[Json]) -> None:
    first, *rest = [ir.Input(str(position), ()) for position in range(len(operands))]
    expr = ir.ChainExpr(first, tuple(ir.Link(op, operand) for operand in rest), chain)
    scope = Values({str(position): value for position, value in enumerate(operands)})
    result = outcome(expr, scope)
    if isinstance(result, EvaluationError):
        assert result.message
    elif type(result) is int and op in "+-*/%":
        assert -(2**63) <= result < 2**63
    else:
        assert not isinstance(result, float) or math.isfinite(result)


@given(
    op=st.sampled_from(
        ["==", "!=", "<", "<=", ">", ">=", "in", "not in", "contains", "startsWith", "endsWith"]
    ),
    left=values,
    right=values,
)
def test_every_comparison_gives_a_boolean_or_says_why_not(op: str, left: Json, right: Json) -> None:
    expr = ir.CompareExpr(op, ir.Input("a", ()), ir.Input("b", ()))
    result = outcome(expr, Values({"a": left, "b": right}))
    assert isinstance(result, bool | EvaluationError)
