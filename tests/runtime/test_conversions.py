from __future__ import annotations

import copy
import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.base.errors import AflError
from afl.ir import model as ir
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
    OptionalOf,
    SchemaRef,
    Type,
)
from afl.ir.values import Json
from afl.lang.api import compile_sources
from afl.runtime.conversions import MAX_NESTING, Conversions, WrongValue

SOURCE = """
namespace review {
  enum Level { low, high }
  schema Comment { path: String, line: Int, text: String?, level: Level = low }
  schema Point { x: Double, y: Double, label: String?, tags: [String] = [], layer: Double = 0 }
  schema Tree { name: String, kids: [Tree] = [], next: Tree? }
  schema Endless { more: [Endless] = [#{}] }
  event facet Review(
    diff: String,
    limit: Int = 10,
    ratio: Double = 1,
    wait: Duration = 2 * 15s,
    language: String?,
  ) => (verdict: String, comments: [Comment])
  event facet Nothing()
  facet Show(page: Review)
}
"""


def compiled() -> ir.Program:
    compilation = compile_sources([("review.afl", SOURCE)])
    assert compilation.program is not None, [d.message for d in compilation.errors]
    return compilation.program


PROGRAM = compiled()
CONVERSIONS = Conversions(PROGRAM)
FACETS = {facet.name: facet for facet in PROGRAM.facets}
REVIEW = FACETS["review.Review"]

COMMENT, POINT = SchemaRef("review.Comment"), SchemaRef("review.Point")
TREE, ENDLESS = SchemaRef("review.Tree"), SchemaRef("review.Endless")
LEVEL = EnumRef("review.Level")
STEP = FacetRef("review.Review")


def same(left: object, right: object) -> bool:
    """Equal, and of the same kinds all the way down."""
    return repr(left) == repr(right)


def nested(levels: int) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        ("", STRING, ""),
        ("a\nü\U0001f600", STRING, "a\nü\U0001f600"),
        (2**31 - 1, INT, 2**31 - 1),
        (-(2**63), LONG, -(2**63)),
        (2, DOUBLE, 2.0),
        (2.5, DOUBLE, 2.5),
        (10**30, DOUBLE, 1e30),
        (True, BOOLEAN, True),
        (30_000, DURATION, 30_000),
        (-1, DURATION, -1),
        (None, OptionalOf(INT), None),
        (1, OptionalOf(DOUBLE), 1.0),
        ([], ListOf(INT), []),
        ([1, None], ListOf(OptionalOf(DOUBLE)), [1.0, None]),
        ({"a b": 1}, MapOf(DOUBLE), {"a b": 1.0}),
        ("high", LEVEL, "high"),
        (None, JSON, None),
        ({"a": [1, 2.5, "x", None, True, {}]}, JSON, {"a": [1, 2.5, "x", None, True, {}]}),
        (nested(MAX_NESTING), JSON, nested(MAX_NESTING)),
        ({"anything": 1}, STEP, {"anything": 1}),
        (
            {"line": 3, "path": "a"},
            COMMENT,
            {"path": "a", "line": 3, "text": None, "level": "low"},
        ),
        (
            {"path": "a", "line": 3, "text": None, "level": "high"},
            COMMENT,
            {"path": "a", "line": 3, "text": None, "level": "high"},
        ),
        (
            {"x": 1, "y": 2.5},
            POINT,
            {"x": 1.0, "y": 2.5, "label": None, "tags": [], "layer": 0.0},
        ),
        (
            {"name": "a", "kids": [{"name": "b"}], "next": {"name": "c"}},
            TREE,
            {
                "name": "a",
                "kids": [{"name": "b", "kids": [], "next": None}],
                "next": {"name": "c", "kids": [], "next": None},
            },
        ),
    ],
)
def test_a_value_in_its_normal_form(value: Json, type: Type, expected: Json) -> None:
    before = copy.deepcopy(value)
    assert same(CONVERSIONS.value(value, type), expected)
    assert same(value, before)
    assert same(CONVERSIONS.value(expected, type), expected)


@pytest.mark.parametrize(
    ("value", "type", "path", "message"),
    [
        (1, STRING, "", "a String belongs here, not the Int 1"),
        (None, STRING, "", "a String belongs here, not null"),
        ("12", INT, "", 'an Int belongs here, not the String "12"'),
        (2.0, INT, "", "an Int belongs here, not the Double 2.0"),
        (True, INT, "", "an Int belongs here, not the Boolean true"),
        (2**31, INT, "", "2147483648 is out of range for Int"),
        (5.5, LONG, "", "a Long belongs here, not the Double 5.5"),
        (2**63, LONG, "", "9223372036854775808 is out of range for Long"),
        (10**400, LONG, "", "the number is out of range for Long"),
        (10**400, DOUBLE, "", "the number is out of range for Double"),
        (10**400, STRING, "", "a String belongs here, not a huge number"),
        (False, DOUBLE, "", "a Double belongs here, not the Boolean false"),
        (float("nan"), DOUBLE, "", "a Double must be finite, not nan"),
        (0, BOOLEAN, "", "a Boolean belongs here, not the Int 0"),
        (
            "30s",
            DURATION,
            "",
            'a Duration in whole milliseconds belongs here, not the String "30s"',
        ),
        (-(2**63), DURATION, "", "-9223372036854775808 is out of range for Duration"),
        ({}, ListOf(INT), "", "a list belongs here, not a map"),
        ([1, 2], MapOf(INT), "", "a map belongs here, not a list of 2"),
        ([[0], [1, "x"]], ListOf(ListOf(INT)), "[1][1]", 'an Int belongs here, not the String "x"'),
        (
            {"a": {"b c": 1}},
            MapOf(MapOf(STRING)),
            'a["b c"]',
            "a String belongs here, not the Int 1",
        ),
        (
            "blue",
            LEVEL,
            "",
            'a member of `Level` (`low` or `high`) belongs here, not the String "blue"',
        ),
        (["low"], LEVEL, "", "a member of `Level` (`low` or `high`) belongs here, not a list of 1"),
        ("x", COMMENT, "", 'a map with the fields of `Comment` belongs here, not the String "x"'),
        ("x", STEP, "", 'a step of `Review` belongs here, not the String "x"'),
        ({"path": "a"}, COMMENT, "", "`line` is missing"),
        ({}, COMMENT, "", "`path` and `line` are missing"),
        ({"path": "a", "lines": 1}, COMMENT, "", "there is no `lines` here; did you mean `line`?"),
        (
            {"path": "a", "line": 1, "zzz": 1},
            COMMENT,
            "",
            "there is no `zzz` here; there is `path`, `line`, `text` and `level`",
        ),
        ({"name": "a", "kids": [{}]}, TREE, "kids[0]", "`name` is missing"),
        (
            "\ud800",
            STRING,
            "",
            "a String cannot hold half of a surrogate pair, which is no character",
        ),
        (
            {"\ud800": 1},
            JSON,
            '["\\\\ud800"]',
            "a String cannot hold half of a surrogate pair, which is no character",
        ),
        (float("inf"), JSON, "", "a Double must be finite, not inf"),
        ([2**63], JSON, "[0]", "9223372036854775808 is out of range for Long"),
        (nested(MAX_NESTING + 1), JSON, "[0]" * MAX_NESTING, "this nests deeper than 200 levels"),
        ({}, ENDLESS, ".".join(["more[0]"] * 100), "this nests deeper than 200 levels"),
    ],
)
def test_a_wrong_value_says_where_and_why(value: Json, type: Type, path: str, message: str) -> None:
    with pytest.raises(WrongValue) as raised:
        CONVERSIONS.value(value, type)
    assert raised.value.path == path
    assert raised.value.message == (f"`{path}`: {message}" if path else message)


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ((1, 2), "", "a JSON value belongs here, not a Python tuple"),
        ({"a": {1, 2}}, "a", "a JSON value belongs here, not a Python set"),
        ({1: 2}, "", "the keys of a map are Strings, not the Int 1"),
        ([b"x"], "[0]", "a JSON value belongs here, not a Python bytes"),
    ],
)
def test_what_is_not_json_is_refused(value: object, path: str, message: str) -> None:
    with pytest.raises(WrongValue) as raised:
        CONVERSIONS.value(cast(Json, value), JSON)
    assert raised.value.path == path
    assert raised.value.message.endswith(message)


@pytest.mark.parametrize("type", [STRING, LONG, DOUBLE, JSON, LEVEL])
def test_a_number_too_long_to_print_is_refused(type: Type) -> None:
    value = 10**5000
    with pytest.raises(WrongValue, match="number"):
        CONVERSIONS.value(value, type)


def test_the_place_starts_with_where() -> None:
    with pytest.raises(WrongValue) as raised:
        CONVERSIONS.value([{"path": "a", "line": "12"}], ListOf(COMMENT), "comments")
    assert raised.value.path == "comments[0].line"
    assert raised.value.message == ('`comments[0].line`: an Int belongs here, not the String "12"')
    assert raised.value.code == "runtime.wrong_value"
    assert isinstance(raised.value, AflError)


# Records


def test_a_record_is_filled_with_defaults_and_nulls() -> None:
    values: dict[str, Json] = {"diff": "d"}
    assert same(
        CONVERSIONS.record(values, REVIEW.params),
        {"diff": "d", "limit": 10, "ratio": 1.0, "wait": 30_000, "language": None},
    )
    assert values == {"diff": "d"}


def test_what_is_given_wins_over_defaults() -> None:
    given_values: dict[str, Json] = {
        "language": "de",
        "wait": 1,
        "ratio": 2,
        "limit": 3,
        "diff": "d",
    }
    assert same(
        CONVERSIONS.record(given_values, REVIEW.params),
        {"diff": "d", "limit": 3, "ratio": 2.0, "wait": 1, "language": "de"},
    )


def test_params_that_are_not_of_the_program_are_taken_too() -> None:
    params = [
        ir.Param("a", DOUBLE, None),
        ir.Param("b", ListOf(INT), ir.ListExpr((ir.Literal(1, INT),))),
    ]
    for _ in range(2):
        assert same(CONVERSIONS.record({"a": 1}, params), {"a": 1.0, "b": [1]})


def test_nobody_shares_the_list_of_a_default() -> None:
    first = CONVERSIONS.value({"x": 1, "y": 1}, POINT)
    assert isinstance(first, dict)
    tags = first["tags"]
    assert isinstance(tags, list)
    tags.append("changed")
    second = CONVERSIONS.value({"x": 1, "y": 1}, POINT)
    assert isinstance(second, dict)
    assert second["tags"] == []


@pytest.mark.parametrize(
    ("values", "params", "where", "path", "message"),
    [
        ({}, REVIEW.params, "", "", "`diff` is missing"),
        ({}, REVIEW.params, "Review", "Review", "`Review`: `diff` is missing"),
        ({}, REVIEW.returns, "", "", "`verdict` and `comments` are missing"),
        (
            {"dif": "d"},
            REVIEW.params,
            "",
            "",
            "there is no `dif` here; did you mean `diff`?",
        ),
        (
            {"x": 1},
            FACETS["review.Nothing"].params,
            "inputs",
            "inputs",
            "`inputs`: there is no `x` here; nothing is wanted",
        ),
        (
            {"diff": "d", "limit": None},
            REVIEW.params,
            "",
            "limit",
            "`limit`: an Int belongs here, not null",
        ),
        (
            {"verdict": "ok", "comments": [{"path": "a", "line": 1}, {"path": "b", "line": 1.5}]},
            REVIEW.returns,
            "result",
            "result.comments[1].line",
            "`result.comments[1].line`: an Int belongs here, not the Double 1.5",
        ),
    ],
)
def test_a_wrong_record_says_where_and_why(
    values: dict[str, Json],
    params: tuple[ir.Param, ...],
    where: str,
    path: str,
    message: str,
) -> None:
    with pytest.raises(WrongValue) as raised:
        CONVERSIONS.record(values, params, where)
    assert raised.value.path == path
    assert raised.value.message == message


def test_a_partial_record_has_only_what_is_given() -> None:
    assert CONVERSIONS.record({}, REVIEW.returns, complete=False) == {}
    comment: Json = {"path": "a", "line": 1}
    assert CONVERSIONS.record({"comments": [comment]}, REVIEW.returns, complete=False) == {
        "comments": [{"path": "a", "line": 1, "text": None, "level": "low"}]
    }
    with pytest.raises(WrongValue, match="there is no `verdikt` here; did you mean `verdict`"):
        CONVERSIONS.record({"verdikt": "x"}, REVIEW.returns, complete=False)
    with pytest.raises(WrongValue, match=r"`r\.verdict`: a String belongs here, not the Int 1"):
        CONVERSIONS.record({"verdict": 1}, REVIEW.returns, "r", complete=False)


# Laws

TYPES = st.recursive(
    st.sampled_from([STRING, INT, LONG, DOUBLE, BOOLEAN, JSON, DURATION, COMMENT, TREE, LEVEL]),
    lambda inner: st.one_of(
        st.builds(ListOf, inner),
        st.builds(MapOf, inner),
        st.builds(OptionalOf, inner.filter(lambda type: not isinstance(type, OptionalOf))),
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(["low", "high"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=2), inner, max_size=2),
        st.fixed_dictionaries({"path": st.text(), "line": st.integers(0, 9)}),
        st.fixed_dictionaries({"name": st.text()}, optional={"next": inner}),
    ),
    max_leaves=6,
)


@given(value=VALUES, type=TYPES)
def test_a_value_is_normal_or_refused_with_its_place(value: Json, type: Type) -> None:
    before = repr(value)
    try:
        normal = CONVERSIONS.value(value, type, "it")
    except WrongValue as error:
        failed = error
    else:
        assert same(CONVERSIONS.value(normal, type), normal)
        assert same(json.loads(json.dumps(normal, allow_nan=False)), normal)
        assert repr(value) == before
        return
    assert failed.path.startswith("it")
    assert failed.message.startswith(f"`{failed.path}`: ")
