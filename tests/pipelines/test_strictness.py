"""Whatever a pipeline does not say right is a diagnostic at its place, and costs no more."""

from __future__ import annotations

import sys
import time

import pytest

from afl.app.errors import ExtraMissing
from afl.lang.diagnostics.codes import CODES
from afl.lang.diagnostics.model import Severity
from tests.pipelines.compiled import codes, pipeline, read

GOOD = pipeline({"a": [], "b": ["a"]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["AFL5005"]),
        ("# nothing but a comment\n", ["AFL5005"]),
        ("- a\n- b\n", ["AFL5005"]),
        ("just words", ["AFL5005"]),
        ("name: [a\n", ["AFL5001"]),
        ("name: a\x07b\n", ["AFL5001"]),
        (f"{GOOD}---\n{GOOD}", ["AFL5001"]),
        ("name: x\ntasks: *gone\n", ["AFL5001"]),
        ("name: x\ntasks: &t [*t]\n", ["AFL5001"]),
        ("name: x\n", ["AFL5004"]),
        ("tasks: {}\n", ["AFL5004", "AFL5004"]),
        (f"{GOOD}retries: 3\n", ["AFL5002"]),
        (f"{GOOD}<<: {{description: x}}\n", ["AFL5002"]),
        (f"{GOOD}name: again\n", ["AFL5003"]),
        (f"{GOOD}description: [x]\n", ["AFL5005"]),
        (f"{GOOD}description: !secret x\n", ["AFL5006"]),
        (f"{GOOD}cron: 5\n", ["AFL5005"]),
        (f'{GOOD}cron: "0 25 * * *"\n', ["AFL4021"]),
        (f'{GOOD}cron: "@daily"\n', ["AFL4021"]),
        (f'{GOOD}cron: "0 0 25 * * MON"\n', ["AFL4021"]),
        (f'{GOOD}cron: "0 0 3 1 1 ? 2030"\n', ["AFL5013"]),
        (f"{GOOD}start_time: 2027-01-31\n", ["AFL5011"]),
        (f"{GOOD}? [a, b]\n: c\n", ["AFL5005"]),
        ("name: x\ntasks: [a]\n", ["AFL5005"]),
        ("name: x\ntasks: {a: b}\n", ["AFL5005"]),
        ("name: x\ntasks: {a: {name: A, config: !Subprocess }}\n", ["AFL5005"]),
        ("name: x\ntasks: {a: {name: A, config: !Subprocess {cmd: ''}}}\n", ["AFL5004"]),
        ("name: x\ntasks: {a: {name: A, config: !Subprocess {cmd: no}}}\n", []),
        ("name: x\ntasks: {a: {name: A, config: !Subprocess {cmd: true}}}\n", ["AFL5005"]),
        ('name: x\ntasks: {a: {name: A, config: !Subprocess {cmd: "a\\0b"}}}\n', ["AFL5005"]),
        ('name: x\ntasks: {a: {name: A, config: !Subprocess {cmd: "a\\uD800"}}}\n', ["AFL5005"]),
        ("name: x\ntasks: {a: {name: A, config: !Subprocess {cmd: !!str 5}}}\n", []),
        ("name: x\ntasks: {a: {name: A, config: !UvPython {packages: [x]}}}\n", ["AFL5004"]),
        (
            "name: x\ntasks: {a: {name: A, config: !UvPython {script_path: x, is_uv_project: 1}}}",
            ["AFL5005"],
        ),
        (
            "name: x\ntasks: {a: {name: A, config: !UvPython {script_path: x, cmd: y}}}\n",
            ["AFL5002"],
        ),
        (pipeline({"catch": []}), ["AFL5010"]),
        (pipeline({"yield-0": []}), ["AFL5010"]),
        (pipeline({"a.b": []}), ["AFL5010"]),
        (pipeline({"x" * 101: []}), ["AFL5010"]),
        (pipeline({"täglich-1": [], "2nd": ["täglich-1"]}), []),
        (pipeline({"a": ["b"]}), ["AFL5007"]),
        (pipeline({"a": ["a"]}), ["AFL5008"]),
        (pipeline({"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"]}), ["AFL5008", "AFL5008"]),
        (pipeline({"a": [], "b": ["a", "a"]}), ["AFL5009"]),
    ],
)
def test_a_mistake_has_its_code(text: str, expected: list[str]) -> None:
    assert codes(text) == expected


def test_all_mistakes_of_a_file_come_at_once() -> None:
    text = """\
name: Bad
crom: x
tasks:
  a:
    name: A
    dependencies: [b]
    config: !Subprocess
      args: [1]
  b:
    depends: [bb, c]
    config: !Subproces
      cmd: x
"""
    assert codes(text) == [
        "AFL5002",
        "AFL5002",
        "AFL5004",
        "AFL5005",
        "AFL5004",
        "AFL5007",
        "AFL5007",
        "AFL5006",
    ]


def test_a_key_of_another_tool_is_one_mistake_and_not_two() -> None:
    text = "name: x\ntasks: {a: {name: A, config: !Subprocess {command: x}}}\n"
    (found,) = read(text).diagnostics
    assert found.code == "AFL5002"
    assert found.suggestions[0].edits[0].replacement == "cmd"


@pytest.mark.parametrize(
    ("workflow", "is_good"),
    [("etl.daily", True), ("2027-plan", True), ("a b", False), ("afl.x", False), ("a..b", False)],
)
def test_the_name_of_the_file_is_a_name(workflow: str, is_good: bool) -> None:
    assert codes(GOOD, workflow) == ([] if is_good else ["AFL5010"])


def test_the_place_is_exact_even_behind_letters_of_more_than_one_byte() -> None:
    text = "\ufeffname: 'täglich 🦊'\r\ntasks: {a: {name: A, config: !Subprocess {cmd: 1}}}\r\n"
    (found,) = read(text).diagnostics
    assert found.primary.span.text == "1"
    assert (found.primary.span.line, found.primary.span.column) == (2, 48)


def test_a_warning_does_not_keep_a_pipeline_from_running() -> None:
    file = read(pipeline({"a": [], "b": ["a", "a"]}))
    assert file.program is not None
    for diagnostic in file.diagnostics:
        assert CODES[diagnostic.code].severity is Severity.WARNING


def test_values_may_be_shared() -> None:
    text = """\
name: Shared
tasks:
  a:
    name: A
    config: &work !Subprocess
      cmd: work
      args: &args [one, two]
  b:
    name: B
    depends: [a]
    config: *work
  c:
    name: C
    config: !Subprocess
      cmd: other
      args: *args
"""
    assert codes(text) == []


def _laughs(levels: int) -> str:
    rows = "".join(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, levels))
    return f"- &a0 [lol]\n{rows}"


@pytest.mark.parametrize(
    "text",
    [
        _laughs(40),
        "[" * 500_000,
        "{a: " * 200_000,
        "- " * 400_000,
        "? " * 400_000,
        "a" * 2_000_000,
        "- x\n" * 300_000,
        "&a " * 300_000,
        "!Subprocess " * 80_000,
        '"' + "\\u0041" * 150_000,
    ],
    ids=["laughs", "flow", "maps", "dashes", "keys", "size", "items", "anchors", "tags", "text"],
)
def test_a_hostile_text_costs_little(text: str) -> None:
    before = time.process_time()
    found = codes(text)
    assert found
    assert set(found) <= {"AFL5001", "AFL5005", "AFL5012"}
    assert time.process_time() - before < 20


def test_no_tag_makes_an_object() -> None:
    for tag in ("!!python/object/apply:os.system", "!!python/name:os.system", "!!timestamp"):
        text = f"name: x\ntasks: {{a: {{name: A, config: {tag} [touch x]}}}}\n"
        assert codes(text) == ["AFL5006"]


def test_a_long_circle_is_found_without_recursion() -> None:
    size = 1200
    assert codes(pipeline({f"t{n}": [f"t{(n + 1) % size}"] for n in range(size)})) == ["AFL5008"]


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("afl.pipelines.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ExtraMissing, match="Pipelines need yaml, which is not installed"):
        read(GOOD)
