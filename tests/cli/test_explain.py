"""`afl explain`."""

from __future__ import annotations

import json
import re

import pytest

from afl.cli import exit_codes
from afl.cli.commands.explain import GROUPS
from afl.lang.diagnostics.codes import CODES
from tests.architecture.repository import SOURCE
from tests.cli.runner import run

PAGE = (SOURCE / "lang/diagnostics/pages/AFL0109.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", ["AFL0109", "afl0109", "0109", "Afl0109"])
def test_a_page(code: str) -> None:
    result = run("explain", code)
    assert (result.stdout, result.stderr, result.exit_code) == (PAGE, "", exit_codes.OK)


def test_a_page_on_a_terminal_is_drawn() -> None:
    result = run("explain", "AFL0109", "--color", "always")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout)
    assert plain != result.stdout
    assert "AFL0109: namespace inside a namespace" in plain
    assert "```" not in plain
    assert "namespace shop.billing {" in plain


def test_a_page_as_json() -> None:
    data = json.loads(run("explain", "AFL0109", "--json").stdout)
    (entry,) = data["codes"]
    assert entry["code"] == "AFL0109"
    assert entry["title"] == "namespace inside a namespace"
    assert entry["severity"] == "error"
    assert entry["group"] == "syntax"
    assert entry["page"]["markdown"] == PAGE
    assert entry["page"]["wrong"][0][0]["file"] == "flow.afl"
    assert entry["page"]["message"].startswith("error[AFL0109]")


def test_all_codes_are_listed_by_group() -> None:
    result = run("explain")
    assert result.exit_code == exit_codes.OK
    assert re.findall(r"^  (AFL\d{4})  ", result.stdout, re.MULTILINE) == list(CODES)
    assert re.findall(r"^(\S.*)$", result.stdout, re.MULTILINE) == list(GROUPS.values())
    assert "AFL1002  warning  use that is not needed" in result.stdout
    assert "help: `afl explain CODE`" in result.stderr


def test_all_codes_as_json() -> None:
    data = json.loads(run("explain", "--json").stdout)
    assert [each["code"] for each in data["codes"]] == list(CODES)
    assert all("page" not in each for each in data["codes"])


def test_an_unknown_code_gets_the_nearest() -> None:
    result = run("explain", "AFL109")
    assert result.exit_code == exit_codes.FAILED
    assert result.stderr == (
        "error: there is no diagnostic code AFL109\nhelp: did you mean `afl explain AFL0109`?\n"
    )
    assert "help: `afl explain` lists all codes" in run("explain", "nonsense").stderr


def test_a_missing_page_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    code = next(iter(CODES.values()))
    monkeypatch.setitem(CODES, "AFL9999", type(code)("AFL9999", "a test", code.severity))
    result = run("explain", "AFL9999")
    assert result.exit_code == exit_codes.FAILED
    assert "the page of AFL9999 (a test) is missing" in result.stderr
