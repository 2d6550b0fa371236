"""What `--json` prints has the published shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tests.architecture.repository import ROOT
from tests.cli.programs import EVERYTHING, GOOD, SYNTAX_ERROR, UNKNOWN_TYPE, WARNING
from tests.cli.runner import run

FOLDER = ROOT / "docs" / "reference" / "schemas"
SCHEMAS = {
    path.name: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(FOLDER.glob("*.schema.json"))
}
REGISTRY: Registry[bool | Mapping[str, Any]] = Registry().with_resources(
    [(name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()]
)


def validate(text: str, name: str) -> None:
    schema = SCHEMAS[f"{name}.schema.json"]
    Draft202012Validator(schema, registry=REGISTRY).validate(json.loads(text))


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_and_is_named_in_the_reference(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert f"schemas/{name}" in (FOLDER.parent / "cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("args", "input", "name"),
    [
        (["version"], "", "version"),
        (["explain"], "", "explain"),
        (["explain", "AFL0109"], "", "explain"),
        (["check", "-"], GOOD, "diagnostics"),
        (["check", "-"], UNKNOWN_TYPE, "diagnostics"),
        (["check", "-"], WARNING, "diagnostics"),
        (["check", "-"], SYNTAX_ERROR, "diagnostics"),
        (["compile", "-"], UNKNOWN_TYPE, "diagnostics"),
        (["doc", "-"], EVERYTHING, "catalogue"),
        (["doc", "-"], GOOD, "catalogue"),
        (["graph", "-", "--workflow", "Order"], EVERYTHING, "graph"),
        (["fmt", "-", "--check"], GOOD, "fmt"),
        (["fmt", "-", "--check"], SYNTAX_ERROR, "fmt"),
    ],
    ids=str,
)
def test_output_has_its_shape(args: list[str], input: str, name: str) -> None:
    result = run(*args, "--json", input=input)
    validate(result.stdout, name)
    assert result.stderr == ""


def test_the_summary_of_a_compilation_has_its_shape(tmp_path: Path) -> None:
    validate(run("compile", "-", "--json", "-o", tmp_path / "p", input=GOOD).stdout, "compile")
