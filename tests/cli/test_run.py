"""`afl run`: outputs, inputs, handlers and failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from click.testing import Result

from afl.cli import exit_codes
from tests.cli.deployed import FLOW, HANDLERS, write_project
from tests.cli.programs import UNKNOWN_TYPE
from tests.cli.runner import AFL, plain_environment, process, run
from tests.cli.test_json_shapes import validate


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path)
    return tmp_path


def start(project: Path, *args: str, input: str | None = None) -> Result:
    handlers = project / "handlers.py"
    return run("run", project / "flow.afl", *args, "--handlers", handlers, input=input)


def test_the_outputs_are_data_and_the_rest_is_talk(project: Path) -> None:
    result = start(project, "demo.Hello")
    assert result.exit_code == exit_codes.OK
    assert json.loads(result.stdout) == {"text": "Hello, world!"}
    talk = result.stderr.splitlines()
    assert [line for line in talk if line != "greeting world"] == [
        "✓ zero demo.Fetch done",
        "✓ hello demo.Greet done",
    ]
    assert "greeting world" in talk


def test_a_short_name_and_inputs(project: Path) -> None:
    result = start(project, "Hello", "--input", "name=007")
    assert json.loads(result.stdout) == {"text": "Hello, 007!"}


def test_other_types_than_text_are_json(project: Path) -> None:
    result = start(project, "Total", "-i", 'names=["a", "bcd"]')
    assert json.loads(result.stdout) == {"ns": [1, 3], "done": True}
    assert "✓ foreach done (2 done)" in result.stderr


def test_inputs_from_a_file_and_from_standard_input(project: Path) -> None:
    (project / "in.json").write_text('{"name": "file"}', encoding="utf-8")
    given = start(project, "Hello", "--inputs", str(project / "in.json"))
    assert json.loads(given.stdout) == {"text": "Hello, file!"}
    both = start(project, "Hello", "--inputs", "-", "-i", "name=me", input='{"name": "you"}')
    assert json.loads(both.stdout) == {"text": "Hello, me!"}


@pytest.mark.parametrize(
    ("args", "code", "error", "help"),
    [
        (["-i", "nam=x"], 2, "takes no input `nam`", "did you mean `--input name=...`?"),
        (["-i", "zzz=x"], 2, "takes no input `zzz`", "it takes name: String"),
        (["-i", "name"], 2, "'name' is not of the form NAME=VALUE", "`afl run --help`"),
        (["--inputs", "gone.json"], 3, "cannot read gone.json: no such file", ""),
        (["--inputs", "-"], 3, "- is not JSON", ""),
    ],
)
def test_wrong_inputs(project: Path, args: list[str], code: int, error: str, help: str) -> None:
    result = start(project, "Hello", *args)
    assert (result.exit_code, result.stdout) == (code, "")
    assert error in result.stderr
    assert help in result.stderr


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("names=a", "input `names` is of type [String], and 'a' is not JSON"),
        ("names=7", "a list belongs here"),
    ],
)
def test_a_value_of_the_wrong_type(project: Path, given: str, error: str) -> None:
    result = start(project, "Total", "-i", given)
    assert (result.exit_code, result.stdout) == (exit_codes.USAGE, "")
    assert error in result.stderr


def test_an_input_that_is_missing(project: Path) -> None:
    result = start(project, "Total")
    assert result.exit_code == exit_codes.USAGE
    assert "`demo.Total` cannot start: `names` is missing" in result.stderr


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ([], exit_codes.USAGE, "there are 4 workflows: demo.Hello, demo.Outer, "),
        (["Helo"], exit_codes.UNREADABLE, "did you mean `Hello`?"),
    ],
)
def test_which_workflow(project: Path, name: list[str], code: int, said: str) -> None:
    result = start(project, *name)
    assert result.exit_code == code
    assert said in result.stderr


def test_a_failed_run_shows_the_step_its_line_and_what_was_skipped(project: Path) -> None:
    flow = FLOW.replace('Greet(name = "all")', 'Greet(name = "bad")')
    (project / "flow.afl").write_text(flow, encoding="utf-8")
    result = start(project, "Total", "-i", "names=[]")
    assert (result.exit_code, result.stdout) == (exit_codes.RUN_FAILED, "")
    told = "demo.Total failed at step 0/greeted: ValueError: there is no such name"
    assert f"error: {told}\n" in result.stderr
    assert f" --> {project}/flow.afl:13:5\n" in result.stderr
    assert '  13 |     greeted = Greet(name = "bad")\n' in result.stderr
    assert "skipped 0/saved: it needs 0/greeted, which failed\n" in result.stderr


def test_a_failure_in_a_called_run_is_shown_where_it_began(project: Path) -> None:
    result = start(project, "Outer", "-i", "name=bad")
    assert result.exit_code == exit_codes.RUN_FAILED
    assert "demo.Outer failed at step 0/hello of run " in result.stderr
    assert f" --> {project}/flow.afl:8:5\n" in result.stderr


def test_json_has_its_shape(project: Path) -> None:
    good = start(project, "Hello", "--json")
    validate(good.stdout, "run")
    assert json.loads(good.stdout)["run"]["outputs"] == {"text": "Hello, world!"}
    assert good.stderr == "greeting world\n"
    bad = start(project, "Hello", "--json", "-i", "name=bad")
    validate(bad.stdout, "run")
    (failure,) = json.loads(bad.stdout)["failures"]
    assert bad.exit_code == exit_codes.RUN_FAILED
    assert (failure["step"], failure["line"], failure["type"]) == ("0/hello", 8, "ValueError")


def test_a_handler_that_is_missing_is_named_before_anything_runs(project: Path) -> None:
    kept = HANDLERS.replace('"demo.Greet"', '"demo.Store"').replace('"Store"', '"demo.Greet"')
    only = kept[: kept.index('@app.handler("demo.Fetch")')]
    (project / "handlers.py").write_text(only, encoding="utf-8")
    result = start(project, "Hello")
    assert (result.exit_code, result.stdout) == (exit_codes.FAILED, "")
    assert "greeting" not in result.stderr
    at = f"({project}/flow.afl:7)"
    assert f"no handler serves demo.Fetch that demo.Hello/0/zero {at} calls" in result.stderr
    assert 'help: put `@app.handler("demo.Fetch")` before a function in ' in result.stderr


def test_a_handler_of_a_facet_that_is_not_there_gets_the_nearest(project: Path) -> None:
    text = HANDLERS.replace('"demo.Fetch"', '"demo.Fetsh"')
    (project / "handlers.py").write_text(text, encoding="utf-8")
    result = start(project, "Hello")
    assert result.exit_code == exit_codes.FAILED
    assert "no handler serves demo.Fetch" in result.stderr
    assert "did you mean it by `demo.Fetsh`?" in result.stderr


def test_without_handlers_what_needs_none_runs(tmp_path: Path) -> None:
    flow = (
        "namespace demo {\n  workflow Twice(n: Int) => (m: Int) andThen {\n"
        "    yield Twice(m = $.n * 2)\n  }\n}\n"
    )
    result = run("run", "-", "-i", "n=21", input=flow)
    assert (result.exit_code, json.loads(result.stdout)) == (exit_codes.OK, {"m": 42})


def test_every_list_of_the_program_is_served(project: Path) -> None:
    text = FLOW.replace(
        "Fetch(name: String) => (n: Int)",
        """Fetch(name: String) => (n: Int)
    with Queue(name = "far")""",
    )
    (project / "flow.afl").write_text(text, encoding="utf-8")
    result = start(project, "Hello", "--timeout", "30s")
    assert json.loads(result.stdout) == {"text": "Hello, world!"}


@pytest.mark.parametrize(
    ("text", "handlers", "code", "said"),
    [
        ("", "handlers", 3, "the module handlers has no app\nhelp: it needs `app = afl.App("),
        ("import afl\nx = afl.App('x')\ny = afl.App('y')", "handlers", 2, "several apps: x, y"),
        (
            "import afl\napp = afl.App('x')",
            "handlers:ap",
            3,
            "did you mean `--handlers handlers:app`",
        ),
        ("app = 3", "handlers:app", 2, "handlers:app is a int, not an afl.App"),
        ("1 / 0", "handlers", 1, "ZeroDivisionError: division by zero ("),
        ("import not_there", "handlers", 1, "No module named 'not_there'"),
        (
            "",
            "handlerz",
            3,
            "there is no module handlerz\nhelp: did you mean `--handlers handlers`?",
        ),
        ("", "gone.py", 3, "cannot read gone.py: there is no such file"),
    ],
)
def test_modules_without_handlers(
    project: Path, text: str, handlers: str, code: int, said: str
) -> None:
    (project / "handlers.py").write_text(text, encoding="utf-8")
    done = process("run", "flow.afl", "Hello", "--handlers", handlers, cwd=project)
    assert done.returncode == code
    assert said in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_a_flow_that_does_not_check(tmp_path: Path) -> None:
    result = run("run", "-", input=UNKNOWN_TYPE)
    assert (result.exit_code, result.stdout) == (exit_codes.FAILED, "")
    assert "error[AFL1007]" in result.stderr
    validate(run("run", "-", "--json", input=UNKNOWN_TYPE).stdout, "diagnostics")


def test_a_run_that_does_not_end_in_time(project: Path) -> None:
    result = start(project, "Wait", "-i", "key=k", "--timeout", "200ms")
    assert (result.exit_code, result.stdout) == (exit_codes.NOT_ENDED, "")
    assert "demo.Wait has not ended in time" in result.stderr


SLOW = """\
import time, afl

app = afl.App("demo")


@app.handler("demo.Greet")
def greet(name: str, ctx: afl.Context) -> str:
    ctx.log.info("started")
    time.sleep(60)
    return "late"


@app.handler("demo.Fetch")
def fetch(name: str) -> int:
    return 1
"""


def test_ctrl_c_cancels(project: Path) -> None:
    (project / "handlers.py").write_text(SLOW, encoding="utf-8")
    with subprocess.Popen(
        [AFL, "run", "flow.afl", "Hello", "--handlers", "handlers"],
        cwd=project,
        env=plain_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        # what the handler logs is talk
        assert running.stderr is not None
        assert any(line.endswith(b" started\n") for line in running.stderr)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
    assert running.returncode == exit_codes.INTERRUPTED
    assert out == b""
    assert b"the run was canceled\n" in err
    assert b"Traceback" not in err


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_a_terminal_gets_a_tree_and_standard_output_stays_data(project: Path) -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [AFL, "run", "flow.afl", "Hello", "--handlers", "handlers"],
        cwd=project,
        env={**plain_environment(), "TERM": "xterm", "COLUMNS": "80", "LINES": "24"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as running:
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            parts.append(part)
        assert running.stdout is not None
        assert json.loads(running.stdout.read()) == {"text": "Hello, world!"}
    os.close(ours)
    drawn = b"".join(parts).decode()
    assert "\x1b[" in drawn
    assert "demo.Hello  completed" in drawn
    assert "✓ hello demo.Greet done" in drawn
