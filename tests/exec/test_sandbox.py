"""The sandbox: what is in it, what its limits are, and that it is refused where it cannot be."""

from __future__ import annotations

import platform
import struct
import sys
from pathlib import Path

import pytest

from afl.exec import sandbox as sandbox_module
from afl.exec import seccomp
from afl.exec.errors import SandboxMissing
from afl.exec.model import Limits, Outcome
from afl.exec.process import run
from afl.exec.python import RESULT_BYTES, python_command, result_of
from afl.exec.sandbox import Sandbox
from afl.kernel.model import Json
from tests.exec.worlds import sandbox_or_skip


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return sandbox_or_skip()


def python(sandbox: Sandbox, code: str, inputs: Json = None, **how: object) -> Outcome:
    names: dict[str, Json] = {"inputs": inputs, "result": None}
    command = python_command(sandbox, code, names, title="code", **how)  # type: ignore[arg-type]
    return run(command)


def test_code_has_its_inputs_and_gives_a_result(sandbox: Sandbox) -> None:
    code = "print('seen'); result = {'sum': sum(inputs), 'text': 'ü', 'none': None}"
    outcome = python(sandbox, code, [1, 2, 3.5])
    assert result_of(outcome) == {"sum": 6.5, "text": "ü", "none": None}
    assert outcome.stdout.text == "seen\n"


def test_what_it_finds(sandbox: Sandbox) -> None:
    code = """
import os, pathlib
pathlib.Path("mine").write_text("x")
result = [os.getuid(), os.getgid(), os.getcwd(), os.listdir("."), sorted(os.environ), os.uname()[1]]
"""
    found = result_of(python(sandbox, code, env={"GIVEN": "1"}))
    names = ["GIVEN", "HOME", "LANG", "PATH", "PWD"]
    assert found == [65534, 65534, "/tmp", ["mine"], names, "sandbox"]
    again = python(sandbox, "import os; result = os.listdir('/tmp')")
    assert result_of(again) == []


def test_commands_run_in_it_too(sandbox: Sandbox) -> None:
    command = sandbox.command(("sh", "-c", "cat; id -u; ls /"), stdin=b"given\n")
    outcome = run(command)
    assert outcome.stdout.text.splitlines()[:2] == ["given", "65534"]
    assert "home" not in outcome.stdout.text
    missing = run(sandbox.command(("no-such-program",)))
    assert missing.exit_code == 1
    assert "FileNotFoundError" in missing.stderr.text


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("result = {1, 2}", "not JSON serializable"),
        ("result = float('nan')", "Out of range float"),
        ("del result", "KeyError: 'result'"),
        ("raise ValueError('no')", "ValueError: no"),
        ("import sys; sys.exit('why')", "why"),
    ],
)
def test_code_that_fails_says_why(sandbox: Sandbox, code: str, message: str) -> None:
    outcome = python(sandbox, code)
    assert outcome.exit_code == 1
    assert message in outcome.stderr.last_lines(1)[0]


def test_results_that_are_none(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="larger than"):
        result_of(python(sandbox, f"result = 'x' * {RESULT_BYTES}"))
    with pytest.raises(ValueError, match="not JSON"):
        result_of(python(sandbox, "import os; os.write(3, b'{'); os._exit(0)"))


def test_the_memory_of_all_processes_together_is_bounded(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_module, "TOTAL_MEMORY_BYTES", 200 << 20)
    code = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        break
data = b"x" * (60 << 20)
time.sleep(60)
"""
    outcome = python(sandbox, code)
    assert outcome.out_of_memory
    assert outcome.signal == "SIGKILL"


def test_limits_can_be_given(sandbox: Sandbox) -> None:
    code = "import resource; result = resource.getrlimit(resource.RLIMIT_NOFILE)"
    assert result_of(python(sandbox, code)) == [256, 256]
    assert result_of(python(sandbox, code, limits=Limits(open_files=50))) == [50, 50]


def test_without_bubblewrap_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxMissing, match="install the package `bubblewrap`"):
        Sandbox.find()


def test_where_namespaces_cannot_be_made_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda _name: str(fake))
    with pytest.raises(SandboxMissing, match="cannot make a sandbox here"):
        Sandbox.find()


@pytest.mark.parametrize(("system", "machine"), [("linux", "riscv64"), ("darwin", "arm64")])
def test_on_other_machines_it_is_refused(
    system: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    with pytest.raises(SandboxMissing, match=machine):
        Sandbox.find()


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_no_jump_of_the_filter_leads_out_of_it(machine: str) -> None:
    code = [struct.unpack("=HBBI", part) for part in _parts(seccomp.program(machine), 8)]
    assert len(code) < 4096
    for at, (instruction, then, otherwise, _) in enumerate(code):
        if instruction in (0x15, 0x35, 0x45):
            assert at + 1 + max(then, otherwise) < len(code)
    assert code[-1][0] == 0x06


def _parts(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]
