from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from afl.lang.diagnostics.model import Diagnostic, Label, Suggestion
from afl.lang.diagnostics.render_sarif import to_sarif
from afl.lang.source import Source
from tests.lang.diagnostic_samples import diagnostics, error, misspelt_argument, warning


def _run(found: list[Diagnostic]) -> dict[str, Any]:
    log = json.loads(json.dumps(to_sarif(found, version="1.2.3")))
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def test_the_whole_of_a_diagnostic() -> None:
    wrong = {"startLine": 14, "startColumn": 22, "endLine": 14, "endColumn": 29}
    file = {"uri": "flows/close.afl"}
    assert _run([misspelt_argument()]) == {
        "tool": {
            "driver": {
                "name": "afl",
                "version": "1.2.3",
                "rules": [
                    {
                        "id": "AFL2001",
                        "shortDescription": {"text": "unknown argument"},
                        "help": {
                            "text": "`afl explain AFL2001` shows an example, the remedy "
                            "and the reason."
                        },
                        "defaultConfiguration": {"level": "error"},
                    }
                ],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [
            {
                "ruleId": "AFL2001",
                "ruleIndex": 0,
                "level": "error",
                "message": {
                    "text": "facet `billing.Charge` has no parameter `ammount`\n"
                    "note: its parameters are `amount` and `card`\n"
                    "help: rename it to `amount`"
                },
                "locations": [
                    {
                        "physicalLocation": {"artifactLocation": file, "region": wrong},
                        "message": {"text": "unknown parameter"},
                    }
                ],
                "relatedLocations": [
                    {
                        "id": 0,
                        "physicalLocation": {
                            "artifactLocation": file,
                            "region": {
                                "startLine": 3,
                                "startColumn": 22,
                                "endLine": 3,
                                "endColumn": 28,
                            },
                        },
                        "message": {"text": "did you mean this one?"},
                    }
                ],
                "fixes": [
                    {
                        "description": {"text": "rename it to `amount`"},
                        "artifactChanges": [
                            {
                                "artifactLocation": file,
                                "replacements": [
                                    {
                                        "deletedRegion": wrong,
                                        "insertedContent": {"text": "amount"},
                                    }
                                ],
                            }
                        ],
                    }
                ],
            }
        ],
    }


def test_rules_are_listed_once_and_results_point_at_them() -> None:
    label = Label(Source("flow.afl", "a").span(0, 1))
    run = _run([warning(label), error(label), warning(label)])
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["AFL2001", "AFL3009"]
    assert [result["ruleIndex"] for result in run["results"]] == [1, 0, 1]
    assert [result["level"] for result in run["results"]] == ["warning", "error", "warning"]


def test_a_suggestion_in_words_is_in_the_message_and_is_no_fix() -> None:
    label = Label(Source("flow.afl", "a").span(0, 1))
    (result,) = _run([error(label, suggestions=(Suggestion("think again"),))])["results"]
    assert result["message"]["text"] == "something is wrong\nhelp: think again"
    assert "fixes" not in result
    assert "relatedLocations" not in result


def test_names_of_files_become_uris() -> None:
    source = Source("my flows\\a#1.afl", "a")
    (result,) = _run([error(Label(source.span(0, 1)))])["results"]
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "my%20flows/a%231.afl"}


@given(st.lists(diagnostics(), max_size=2))
def test_anything_is_a_sound_log(found: list[Diagnostic]) -> None:
    run = _run(found)
    json.dumps(run, ensure_ascii=False).encode("utf-8")
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        places = result["locations"] + result.get("relatedLocations", [])
        regions = [place["physicalLocation"]["region"] for place in places]
        for fix in result.get("fixes", []):
            assert fix["artifactChanges"]
            for change in fix["artifactChanges"]:
                assert change["replacements"]
                regions += [each["deletedRegion"] for each in change["replacements"]]
        for region in regions:
            start = region["startLine"], region["startColumn"]
            assert (1, 1) <= start <= (region["endLine"], region["endColumn"])
