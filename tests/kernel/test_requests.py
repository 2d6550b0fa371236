from __future__ import annotations

from enum import IntEnum
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.kernel.errors import BadRequest
from afl.kernel.requests import MAX_JSON_DEPTH, json_copy

_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["a", "b", "ü"]), inner),
    max_leaves=20,
)


def _containers(value: object) -> list[int]:
    if isinstance(value, dict):
        return [id(value), *(each for item in value.values() for each in _containers(item))]
    if isinstance(value, list):
        return [id(value), *(each for item in value for each in _containers(item))]
    return []


@given(_json)
def test_a_copy_is_equal_and_shares_no_container(value: object) -> None:
    copy = json_copy(value)
    assert copy == value
    assert set(_containers(copy)).isdisjoint(_containers(value))


class Number(IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (nan, "cannot express"),
        ([-inf], "cannot express"),
        ((1,), "has a tuple"),
        ({"a": {1}}, "has a set"),
        (b"x", "has a bytes"),
        (Number.ONE, "has a Number"),
        ({1: 2}, "keys are text"),
        ("\0", "zero character"),
        ({"\0": 1}, "zero character"),
        (["ok", "\udc00"], "surrogate"),
    ],
)
def test_what_is_no_json_is_refused(value: object, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        json_copy(value)


def test_endless_nesting_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(BadRequest, match=f"more than {MAX_JSON_DEPTH} levels"):
        json_copy(value)
