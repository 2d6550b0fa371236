from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, NotRequired, TypedDict

import pytest

from afl.app.compiling import compile_program
from afl.app.values import to_json, to_python
from afl.ir.types import DOUBLE, INT, STRING, ListOf, SchemaRef, Type
from afl.kernel.model import Json
from afl.runtime.conversions import WrongValue
from afl.runtime.plan import Plan


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Size(TypedDict):
    wide: int
    high: NotRequired[int]


@dataclass
class Item:
    name: str
    price: Decimal
    sizes: list[Size] = field(default_factory=list)


@dataclass
class Order:
    items: list[Item]
    colour: Colour | None = None


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (str, "a", "a"),
        (int, 3, 3),
        (float, 3, 3.0),
        (bool, True, True),
        (Decimal, "1.10", Decimal("1.10")),
        (Decimal, 0.1, Decimal("0.1")),
        (datetime, "2027-01-31T09:00:00+00:00", datetime(2027, 1, 31, 9, tzinfo=UTC)),
        (timedelta, 1500, timedelta(seconds=1.5)),
        (Colour, "red", Colour.RED),
        (Colour, "BLUE", Colour.BLUE),
        (int | None, None, None),
        (list[int], [1, 2], [1, 2]),
        (tuple[int, ...], [1, 2], (1, 2)),
        (dict[str, Decimal], {"a": 1}, {"a": Decimal(1)}),
        (Literal["a", "b"], "b", "b"),
        (Size, {"wide": 1}, {"wide": 1}),
        (Any, {"x": [1]}, {"x": [1]}),
        (
            Order,
            {"items": [{"name": "x", "price": "2.5", "sizes": [{"wide": 2}]}], "colour": "red"},
            Order([Item("x", Decimal("2.5"), [{"wide": 2}])], Colour.RED),
        ),
    ],
)
def test_a_value_becomes_what_its_annotation_says(
    annotation: object, value: Json, expected: object
) -> None:
    assert to_python(value, annotation, "x") == expected


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (str, 3, "`x`: text belongs here, not the Int 3"),
        (int, True, "`x`: a whole number belongs here"),
        (int | None, "a", "`x`: a whole number belongs here"),
        (Decimal, "one", "`x`: a decimal number belongs here"),
        (datetime, "soon", "`x`: a time such as"),
        (Colour, "green", "`x`: one of RED, BLUE belongs here"),
        (list[int], [1, "b"], r"`x\[1\]`: a whole number"),
        (Literal["a"], "b", "`x`: 'a' belongs here"),
        (Order, {"items": [{"name": "x"}]}, r"`x\.items\[0\]`: `price` of `Item` is missing"),
        (Order, {"items": [], "hue": 1}, "`x`: `Order` has no field `hue`"),
        (Size, {"high": 1}, "`x`: `wide` of `Size` is missing"),
        (Order, [], "`x`: a map with the fields of `Order`"),
    ],
)
def test_a_value_that_does_not_fit_is_named(annotation: object, value: Json, message: str) -> None:
    with pytest.raises(WrongValue, match=message):
        to_python(value, annotation, "x")


PLAN = Plan(
    compile_program(
        """namespace demo {
          schema Item { name: String, price: Double, cents: Long }
        }"""
    )
)


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (Decimal("1.5"), DOUBLE, 1.5),
        (Decimal("1.5"), STRING, "1.5"),
        (Decimal(2), INT, 2),
        (Decimal("1.5"), None, "1.5"),
        (Colour.RED, STRING, "red"),
        (timedelta(seconds=2), None, 2000),
        (datetime(2027, 1, 31, tzinfo=UTC), None, "2027-01-31T00:00:00+00:00"),
        ((1, 2), ListOf(INT), [1, 2]),
        ([Decimal(1)], ListOf(DOUBLE), [1.0]),
        (
            {"name": "x", "price": Decimal("0.5"), "cents": Decimal(50)},
            SchemaRef("demo.Item"),
            {"name": "x", "price": 0.5, "cents": 50},
        ),
        (
            Item("x", Decimal(1)),
            SchemaRef("demo.Item"),
            {"name": "x", "price": 1.0, "sizes": []},
        ),
    ],
)
def test_a_result_becomes_json_in_the_form_of_its_type(
    value: object, type_: Type | None, expected: Json
) -> None:
    found = to_json(value, type_, PLAN)
    assert found == expected
    assert type(found) is type(expected)
