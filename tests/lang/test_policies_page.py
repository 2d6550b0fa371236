"""The page on policies says what the built-in namespace declares, and where each may stand."""

from __future__ import annotations

import re

import pytest

from afl.lang.checker import policies
from afl.lang.checker.prelude import TEXT, prelude
from afl.lang.tree import EnumDecl, FacetDecl, Node
from tests.architecture.repository import ROOT

PAGE = (ROOT / "docs" / "reference" / "policies.md").read_text(encoding="utf-8")
DECLARATIONS = prelude().namespaces[0].declarations
POLICIES = {each.name.text: each for each in DECLARATIONS if isinstance(each, FacetDecl)}
ENUMS = {each.name.text: each for each in DECLARATIONS if isinstance(each, EnumDecl)}
_NOT_POLICIES = {"Rules for all policies", "Where each may stand", "Clashes", "Diagnostics"}


def _section(name: str) -> str:
    return PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def _tables(text: str) -> list[list[list[str]]]:
    """Every table of a text: its rows, each a list of cells; the first row is the head."""
    tables = []
    for found in re.finditer(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in found[0].split("\n")
        ]
        tables.append([row for row in rows if any(row) and not set(row[0]) <= set("- ")])
    return tables


def _text(node: Node) -> str:
    return TEXT[node.start : node.end]


def test_there_is_a_section_for_each_policy_in_order() -> None:
    headings = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert [name for name in headings if name not in _NOT_POLICIES] == sorted(POLICIES)


@pytest.mark.parametrize("name", POLICIES)
def test_the_parameters_of_a_policy_are_those_of_the_language(name: str) -> None:
    declared = [
        [
            f"`{param.name.text}`",
            f"`{_text(param.type)}`",
            f"`{_text(param.default)}`" if param.default is not None else "required",
        ]
        for param in POLICIES[name].params
    ]
    tables = [table for table in _tables(_section(name)) if table[0][0] == "parameter"]
    assert [row[:3] for table in tables for row in table[1:]] == declared
    assert all(row[3] for table in tables for row in table)


@pytest.mark.parametrize(
    ("policy", "enum"), [("Effect", "EffectKind"), ("Placement", "PlacementKind")]
)
def test_the_members_of_an_enum_are_those_of_the_language(policy: str, enum: str) -> None:
    table = next(table for table in _tables(_section(policy)) if table[0][0] == "kind")
    assert [row[0] for row in table[1:]] == [f"`{each.text}`" for each in ENUMS[enum].members]


def test_the_places_are_those_that_the_checker_accepts() -> None:
    [table] = _tables(_section("Where each may stand"))
    shown = {row[0].partition("]")[0].strip("["): row[1:] for row in table[1:]}
    wanted = {
        name: [
            "yes" if allowed else "no"
            for allowed in (
                *(kind in policies._KINDS[name] for kind in ("event", "facet", "workflow")),
                name not in policies._SIGNATURE_ONLY,
            )
        ]
        for name in POLICIES
    }
    assert shown == wanted


def test_the_codes_in_the_text_are_in_the_table() -> None:
    codes = set(re.findall(r"AFL\d{4}", PAGE))
    listed = set(re.findall(r"AFL\d{4}", _section("Diagnostics")))
    assert codes == listed
