"""Arguments to texts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from afl.cli import exit_codes
from afl.cli.errors import InputError
from afl.cli.sources import read_inputs
from tests.cli.programs import GOOD
from tests.cli.runner import run


def _tree(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// {name}\n", encoding="utf-8")


def test_folders_are_searched_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tree(tmp_path, "b.afl", "a/z.afl", "a/b/c.afl", "a.afl", "notes.txt", "a-x/y.afl")
    monkeypatch.chdir(tmp_path)
    names = [each.name for each in read_inputs([])]
    assert names == ["a/b/c.afl", "a/z.afl", "a-x/y.afl", "a.afl", "b.afl"]
    assert [each.name for each in read_inputs(["a"])] == ["a/b/c.afl", "a/z.afl"]


def test_hidden_folders_are_left_out_unless_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _tree(tmp_path, "a.afl", ".git/b.afl", "sub/.venv/c.afl")
    monkeypatch.chdir(tmp_path)
    assert [each.name for each in read_inputs(["."])] == ["a.afl"]
    assert [each.name for each in read_inputs([".git"])] == [".git/b.afl"]


def test_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tree(tmp_path, "a.afl", "b.afl")
    (tmp_path / "link.afl").symlink_to("a.afl")
    monkeypatch.chdir(tmp_path)
    paths = ["b.afl", ".", "./b.afl", str(tmp_path / "a.afl")]
    assert [each.name for each in read_inputs(paths)] == ["b.afl", "a.afl"]


def test_a_named_file_needs_no_suffix(tmp_path: Path) -> None:
    _tree(tmp_path, "flow.txt")
    assert read_inputs([str(tmp_path / "flow.txt")])[0].text == "// flow.txt\n"


def test_a_missing_file(tmp_path: Path) -> None:
    result = run("check", tmp_path / "missing.afl")
    assert result.exit_code == exit_codes.UNREADABLE
    assert result.stdout == ""
    assert f"error: cannot read {tmp_path}/missing.afl: there is no such file" in result.stderr
    assert "help: " in result.stderr


def test_nothing_to_read(tmp_path: Path) -> None:
    result = run("check", tmp_path)
    assert result.exit_code == exit_codes.UNREADABLE
    assert result.stderr == (
        f"error: there is no .afl file and no pipeline in {tmp_path}\n"
        "help: name the files or folders to read, or `-` for standard input\n"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    _tree(tmp_path, "a.afl")
    (tmp_path / "a.afl").chmod(0)
    with pytest.raises(InputError, match=r"cannot read .*: permission denied"):
        read_inputs([str(tmp_path)])


def test_a_path_through_a_file(tmp_path: Path) -> None:
    _tree(tmp_path, "a.afl")
    result = run("check", tmp_path / "a.afl" / "b.afl")
    assert result.exit_code == exit_codes.UNREADABLE
    assert "not a directory" in result.stderr


@pytest.mark.parametrize(
    ("data", "byte", "position", "column", "hint"),
    [
        (b"namespace demo {}\n// caf\xe9\n", "E9", 24, 7, "another encoding"),
        ("// ä\n".encode("utf-16"), "FF", 0, 1, "this looks like UTF-16"),
        ("// ключ ".encode() + b"\xd0", "D0", 12, 9, "another encoding"),
    ],
)
def test_bytes_that_are_not_utf8(
    tmp_path: Path, data: bytes, byte: str, position: int, column: int, hint: str
) -> None:
    file = tmp_path / "a.afl"
    file.write_bytes(data)
    result = run("check", file)
    assert result.exit_code == exit_codes.FAILED
    assert f"error[AFL0001]: byte 0x{byte} at position {position} is not UTF-8" in result.stdout
    assert f":{column}\n" in result.stdout
    assert hint in result.stdout
    assert "1 error in 1 file" in result.stderr


def test_one_bad_file_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.afl").write_bytes(b"\xff")
    (tmp_path / "b.afl").write_text("namespace demo { facet }", encoding="utf-8")
    result = run("check", tmp_path, "--format", "concise")
    assert "error[AFL0001]" in result.stdout
    assert "error[AFL0101]" in result.stdout


def test_a_bad_file_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "a.afl"
    file.write_bytes(b"namespace   demo{}\xff")
    assert run("fmt", file).exit_code == exit_codes.FAILED
    assert run("check", "--fix", file).exit_code == exit_codes.FAILED
    assert file.read_bytes() == b"namespace   demo{}\xff"


def test_a_byte_order_mark_is_fine(tmp_path: Path) -> None:
    file = tmp_path / "a.afl"
    file.write_text(f"\ufeff{GOOD}", encoding="utf-8")
    assert run("check", file).exit_code == exit_codes.OK
