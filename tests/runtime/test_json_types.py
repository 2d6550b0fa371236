"""Types as JSON Schema: what fits the schema is what the runtime takes."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from afl.app.compiling import compile_program
from afl.kernel.model import Json
from afl.runtime.conversions import WrongValue
from afl.runtime.json_types import JsonTypes
from afl.runtime.plan import Plan

FLOW = """\
namespace t {
  /** How it went. */
  enum Mark { good, bad }

  schema Node { name: String, below: [Node] = [], notes: {String: Double}, mark: Mark = good }

  event facet Src() => (x: Int)

  event facet All(
    s: String,
    i: Int = 7,
    l: Long,
    d: Double = 1.5,
    b: Boolean,
    j: Json,
    w: Duration = 90s,
    o: String?,
    list: [Int?] = [1, null],
    node: Node? = null,
    mark: Mark = bad,
    step: Src,
  )
}
"""
PLAN = Plan(compile_program(FLOW))
FACET = PLAN.facet("t.All").facet
SCHEMA = JsonTypes(PLAN.program).params(FACET)
GOOD: dict[str, Json] = {"s": "x", "l": 2**40, "b": True, "j": {"any": [1]}, "step": {"x": 0}}


def test_it_is_a_schema_with_defaults() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    properties = SCHEMA["properties"]
    assert isinstance(properties, dict)
    defaults = {
        name: each["default"]
        for name, each in properties.items()
        if isinstance(each, dict) and "default" in each
    }
    assert defaults == {
        "i": 7,
        "d": 1.5,
        "w": 90_000,
        "list": [1, None],
        "node": None,
        "mark": "bad",
    }
    assert SCHEMA["required"] == ["s", "l", "b", "j", "step"]
    assert properties["j"] == {}
    assert properties["mark"] == {
        "type": "string",
        "enum": ["good", "bad"],
        "description": "How it went.",
        "default": "bad",
    }


@pytest.mark.parametrize(
    ("change", "is_good"),
    [
        ({}, True),
        ({"i": 2**31}, False),
        ({"i": "1"}, False),
        ({"i": True}, False),
        ({"d": 3}, True),
        ({"b": "true"}, False),
        ({"j": None}, True),
        ({"w": 5}, True),
        ({"w": "5s"}, False),
        ({"o": None}, True),
        ({"o": 1}, False),
        ({"list": [None, 2]}, True),
        ({"list": ["2"]}, False),
        ({"node": {"name": "a", "notes": {"k": 1}}}, True),
        ({"node": {"name": "a", "notes": {}, "below": [{"name": "b", "notes": {}}]}}, True),
        ({"node": {"name": "a", "notes": {}, "below": [{"name": 1, "notes": {}}]}}, False),
        ({"node": {"name": "a", "notes": {"k": "1"}}}, False),
        ({"node": {"name": "a"}}, False),
        ({"node": {"name": "a", "notes": {}, "more": 1}}, False),
        ({"mark": "ugly"}, False),
        ({"step": {"x": 1}}, True),
        ({"step": 1}, False),
        ({"unknown": 1}, False),
    ],
)
def test_it_takes_what_the_runtime_takes(change: dict[str, Json], is_good: bool) -> None:
    values = {**GOOD, **change}
    assert Draft202012Validator(SCHEMA).is_valid(values) is is_good
    if is_good:
        whole = PLAN.conversions.record(values, FACET.params)
        assert Draft202012Validator(SCHEMA).is_valid(whole)
    else:
        with pytest.raises(WrongValue):
            PLAN.conversions.record(values, FACET.params)
