from __future__ import annotations

import json
from functools import cache

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from afl.lang.diagnostics.model import Diagnostic, Label
from afl.lang.diagnostics.render_json import to_json
from afl.lang.source import Source
from tests.architecture.repository import ROOT
from tests.lang.diagnostic_samples import diagnostics, error, misspelt_argument, warning


@cache
def _schema() -> Draft202012Validator:
    path = ROOT / "docs" / "reference" / "schemas" / "diagnostics.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_the_whole_of_a_diagnostic() -> None:
    wrong = {
        "start": {"line": 14, "column": 22, "offset": 153},
        "end": {"line": 14, "column": 29, "offset": 160},
    }
    value = to_json([misspelt_argument()])
    assert value == {
        "version": 1,
        "diagnostics": [
            {
                "code": "AFL2001",
                "title": "unknown argument",
                "severity": "error",
                "message": "facet `billing.Charge` has no parameter `ammount`",
                "file": "flows/close.afl",
                "range": wrong,
                "label": "unknown parameter",
                "related": [
                    {
                        "file": "flows/close.afl",
                        "range": {
                            "start": {"line": 3, "column": 22, "offset": 73},
                            "end": {"line": 3, "column": 28, "offset": 79},
                        },
                        "label": "did you mean this one?",
                    }
                ],
                "notes": ["its parameters are `amount` and `card`"],
                "suggestions": [
                    {
                        "message": "rename it to `amount`",
                        "applicability": "safe",
                        "edits": [
                            {"file": "flows/close.afl", "range": wrong, "replacement": "amount"}
                        ],
                    }
                ],
                "page": "afl explain AFL2001",
            }
        ],
        "summary": {"errors": 1, "warnings": 0},
    }
    assert list(_schema().iter_errors(value)) == []


def test_the_summary_counts_by_severity() -> None:
    label = Label(Source("flow.afl", "a").span(0, 1))
    value = to_json([error(label), warning(label), warning(label)])
    assert value["summary"] == {"errors": 1, "warnings": 2}


def test_offsets_find_the_text_again() -> None:
    source = Source("flow.afl", "日\U0001f600\r\n\ud800 b")
    value = to_json([error(Label(source.span(6, 7)))])
    found = json.loads(json.dumps(value))["diagnostics"][0]["range"]
    assert found["start"] == {"line": 2, "column": 3, "offset": 6}
    assert source.text[found["start"]["offset"] : found["end"]["offset"]] == "b"


def test_the_schema_refuses_other_shapes() -> None:
    value = to_json([misspelt_argument()])
    assert not _schema().is_valid({**value, "version": 2})
    assert not _schema().is_valid({**value, "summary": {"errors": 1}})
    assert not _schema().is_valid({**value, "diagnostics": [{}]})


@given(st.lists(diagnostics(), max_size=2))
def test_anything_can_be_written(found: list[Diagnostic]) -> None:
    value = to_json(found)
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    assert list(_schema().iter_errors(value)) == []
