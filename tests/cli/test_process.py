"""What only a real process shows: exit codes, pipes, terminals and bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from afl.cli import exit_codes
from tests.cli.programs import GOOD, PRETTY, UGLY, UNKNOWN_TYPE, WARNING
from tests.cli.runner import AFL, plain_environment, process


def _write(folder: Path, text: str, name: str = "a.afl") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_exit_codes(tmp_path: Path) -> None:
    good, bad = _write(tmp_path, GOOD), _write(tmp_path, UNKNOWN_TYPE, "bad.afl")
    warning = _write(tmp_path, WARNING, "warning.afl")
    assert process("check", good).returncode == exit_codes.OK
    assert process("check", bad).returncode == exit_codes.FAILED
    assert process("check", warning).returncode == exit_codes.OK
    assert process("check", "--strict", warning).returncode == exit_codes.FAILED
    assert process("check", "--nonsense").returncode == exit_codes.USAGE
    assert process("check", tmp_path / "missing.afl").returncode == exit_codes.UNREADABLE


def test_python_dash_m_is_the_same_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "afl", "--version"],
        env=plain_environment(),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == process("--version").stdout


def test_the_current_folder_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    _write(tmp_path / "flows", UNKNOWN_TYPE)
    result = process("check", "--format", "concise", cwd=tmp_path)
    assert result.stdout.startswith(b"flows/a.afl:2:27: error[AFL1007]")


def test_standard_input() -> None:
    result = process("fmt", "-", input=UGLY.encode())
    assert (result.stdout, result.stderr) == (PRETTY.encode(), b"")
    result = process("check", "-", "--format", "concise", input=UNKNOWN_TYPE.encode())
    assert result.stdout.startswith(b"<stdin>:2:27: error[AFL1007]")


def test_output_is_utf8_whatever_the_locale_says() -> None:
    text = 'namespace demo {\n  facet Box(size: String = "ключ")\n}\n'
    result = process("fmt", "-", input=text.encode(), variables={"PYTHONIOENCODING": "ascii"})
    assert result.stdout == text.encode()


@pytest.mark.parametrize("args", [("check", "--json"), ("check",), ("explain",), ("version",)])
def test_a_reader_that_is_gone_is_no_error(tmp_path: Path, args: tuple[str, ...]) -> None:
    _write(tmp_path, UNKNOWN_TYPE)
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [AFL, *args],
        cwd=tmp_path,
        env=plain_environment(),
        stdout=theirs,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(theirs)
    assert done.returncode == exit_codes.READER_GONE
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


def test_help_without_a_reader_is_no_error() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [AFL, "--help"],
        env=plain_environment(),
        stdout=theirs,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(theirs)
    assert done.stderr == b""


def test_head_in_a_shell(tmp_path: Path) -> None:
    _write(tmp_path, "namespace demo {\n" + "  event facet F(name: Strin)\n" * 300 + "}\n")
    done = subprocess.run(
        ["bash", "-c", f"'{AFL}' check 2>&1 | head -1"],
        cwd=tmp_path,
        env=plain_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_a_terminal_gets_colour_and_a_pipe_does_not(tmp_path: Path) -> None:
    _write(tmp_path, UNKNOWN_TYPE)
    assert b"\x1b[" in _on_terminal(tmp_path, "check")
    assert b"\x1b[" not in process("check", cwd=tmp_path).stdout
    assert b"\x1b[" in _on_terminal(tmp_path, "explain", "AFL0109")
    assert process("explain", "AFL0109").stdout.startswith(b"# AFL0109: ")


def _on_terminal(folder: Path, *args: str) -> bytes:
    """What a command writes to a terminal."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [AFL, *args],
        cwd=folder,
        env={**plain_environment(), "TERM": "xterm", "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    ) as running:
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            parts.append(part)
        running.wait(timeout=60)
    os.close(ours)
    return b"".join(parts)
