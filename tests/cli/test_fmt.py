"""`afl fmt`."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from afl.cli import exit_codes
from tests.cli.programs import PRETTY, SYNTAX_ERROR, UGLY
from tests.cli.runner import run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One file in each state."""
    (tmp_path / "broken.afl").write_text(SYNTAX_ERROR, encoding="utf-8")
    (tmp_path / "pretty.afl").write_text(PRETTY, encoding="utf-8")
    (tmp_path / "ugly.afl").write_text(UGLY, encoding="utf-8")
    return tmp_path


def _texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_files_are_rewritten(folder: Path) -> None:
    (folder / "broken.afl").unlink()
    result = run("fmt", folder)
    assert result.exit_code == exit_codes.OK
    assert result.stdout == ""
    assert result.stderr == f"formatted {folder}/ugly.afl\n1 file formatted, 1 unchanged\n"
    assert _texts(folder) == {"pretty.afl": PRETTY, "ugly.afl": PRETTY}
    again = run("fmt", folder)
    assert again.stderr == "0 files formatted, 2 unchanged\n"


def test_a_file_with_errors_does_not_stop_the_others(folder: Path) -> None:
    result = run("fmt", folder)
    assert result.exit_code == exit_codes.FAILED
    assert result.stdout == ""
    assert "error[AFL0" in result.stderr
    assert f"{folder}/broken.afl:" in result.stderr
    assert _texts(folder) == {
        "broken.afl": SYNTAX_ERROR,
        "pretty.afl": PRETTY,
        "ugly.afl": PRETTY,
    }


def test_check_lists_and_writes_nothing(folder: Path) -> None:
    (folder / "broken.afl").unlink()
    result = run("fmt", "--check", folder)
    assert result.exit_code == exit_codes.FAILED
    assert result.stdout == f"{folder}/ugly.afl\n"
    assert result.stderr == "1 file would be formatted, 1 unchanged\n"
    assert _texts(folder)["ugly.afl"] == UGLY
    assert run("fmt", "--check", folder / "pretty.afl").exit_code == exit_codes.OK


def test_diff(folder: Path) -> None:
    result = run("fmt", "--diff", folder / "ugly.afl")
    assert result.exit_code == exit_codes.OK
    assert result.stdout == (
        f"--- {folder}/ugly.afl\n"
        f"+++ {folder}/ugly.afl (formatted)\n"
        "@@ -1,2 +1,3 @@\n"
        "-namespace   demo{facet Box(size:Int)\n"
        "-}\n"
        "\\ No newline at end of file\n"
        "+namespace demo {\n"
        "+  facet Box(size: Int)\n"
        "+}\n"
    )
    assert _texts(folder)["ugly.afl"] == UGLY
    checked = run("fmt", "--diff", "--check", folder / "ugly.afl")
    assert checked.exit_code == exit_codes.FAILED
    assert checked.stdout == result.stdout
    assert run("fmt", "--diff", "--check", folder / "pretty.afl").stdout == ""


def test_standard_input_goes_to_standard_output() -> None:
    result = run("fmt", "-", input=UGLY)
    assert (result.stdout, result.stderr, result.exit_code) == (PRETTY, "", exit_codes.OK)
    named = run("fmt", "--stdin-filename", "flows/a.afl", input=UGLY)
    assert named.stdout == PRETTY


def test_broken_standard_input_gives_nothing() -> None:
    result = run("fmt", "--stdin-filename", "flows/a.afl", "-", input=SYNTAX_ERROR)
    assert result.exit_code == exit_codes.FAILED
    assert result.stdout == ""
    assert "--> flows/a.afl:" in result.stderr


def test_check_of_standard_input() -> None:
    result = run("fmt", "--check", "-", input=UGLY)
    assert (result.stdout, result.exit_code) == ("<stdin>\n", exit_codes.FAILED)
    assert run("fmt", "--check", "-", input=PRETTY).exit_code == exit_codes.OK
    diff = run("fmt", "--diff", "--stdin-filename", "b.afl", input=UGLY)
    assert diff.stdout.startswith("--- b.afl\n+++ b.afl (formatted)\n")


def test_json(folder: Path) -> None:
    result = run("fmt", "--json", "--check", folder)
    assert result.exit_code == exit_codes.FAILED
    assert result.stderr == ""
    data = json.loads(result.stdout)
    assert [(Path(each["file"]).name, each["status"]) for each in data["files"]] == [
        ("broken.afl", "failed"),
        ("pretty.afl", "unchanged"),
        ("ugly.afl", "changed"),
    ]
    assert {each["file"] for each in data["diagnostics"]} == {f"{folder}/broken.afl"}
    assert _texts(folder)["ugly.afl"] == UGLY


@pytest.mark.parametrize("args", [["--json", "--diff", "."], ["--json", "-"]])
def test_options_that_contradict(args: list[str]) -> None:
    result = run("fmt", *args, input=PRETTY)
    assert result.exit_code == exit_codes.USAGE
    assert result.stdout == ""


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    file = tmp_path / "real.afl"
    file.write_text(UGLY, encoding="utf-8")
    file.chmod(0o750)
    link = tmp_path / "link.afl"
    link.symlink_to("real.afl")
    assert run("fmt", link).exit_code == exit_codes.OK
    assert link.is_symlink()
    assert file.read_text(encoding="utf-8") == PRETTY
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert sorted(os.listdir(tmp_path)) == ["link.afl", "real.afl"]


def test_a_failed_write_leaves_the_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.afl"
    file.write_text(UGLY, encoding="utf-8")

    def refuse(_source: str, _target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    result = run("fmt", file)
    assert result.exit_code == exit_codes.UNREADABLE
    assert result.stderr == f"error: cannot write {file}: no space left on device\n"
    assert file.read_text(encoding="utf-8") == UGLY
    assert os.listdir(tmp_path) == ["a.afl"]
