"""Models in `afl run` and `afl worker`."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from afl import Client
from afl.cli import exit_codes
from tests.cli.deployed import deployed_database
from tests.cli.runner import AFL, plain_environment, run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import server_is_there

FLOW = """\
namespace demo {
  event facet Look(word: String) => (meaning: String)
  event facet Explain(word: String) => (text: String)
    prompt { template "Explain {word}." model "anthropic:claude-sonnet-5" tools [Look] }
  workflow Do(word: String) => (text: String) andThen {
    e = Explain(word = $.word)
    yield Do(text = e.text)
  }
}
"""
HANDLERS = """\
import afl
app = afl.App("demo")
@app.handler("demo.Look")
def look(word: str) -> str:
    return word.upper()
"""
REPLIES = {
    "replies": [
        {"calls": [{"name": "Look", "arguments": {"word": "cat"}}]},
        {"text": "A cat is a CAT."},
    ]
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.afl").write_text(FLOW, encoding="utf-8")
    (tmp_path / "handlers.py").write_text(HANDLERS, encoding="utf-8")
    (tmp_path / "replies.json").write_text(json.dumps(REPLIES), encoding="utf-8")
    return tmp_path


ARGS = ("run", "flow.afl", "-i", "word=cat")


def test_a_scripted_model_answers_in_place_of_the_one_that_the_prompt_names(project: Path) -> None:
    result = run(*ARGS, "--handlers", "handlers.py", "--model", "scripted:replies.json")
    assert result.exit_code == exit_codes.OK, result.stderr
    assert json.loads(result.stdout) == {"text": "A cat is a CAT."}


def test_a_tool_of_a_prompt_needs_a_handler(project: Path) -> None:
    result = run(*ARGS, "--model", "scripted:replies.json")
    assert result.exit_code == exit_codes.FAILED
    assert "no handler serves demo.Look that demo.Explain (flow.afl:3) calls" in result.stderr


def test_a_script_that_is_not_there_is_named(project: Path) -> None:
    result = run(*ARGS, "--handlers", "handlers.py", "--model", "scripted:none.json")
    assert result.exit_code == exit_codes.FAILED
    assert "none.json cannot be read: No such file or directory" in result.stderr


def test_without_a_model_a_prompt_needs_a_handler(project: Path) -> None:
    flow = FLOW.replace(' model "anthropic:claude-sonnet-5"', "")
    (project / "flow.afl").write_text(flow, encoding="utf-8")
    result = run(*ARGS, "--handlers", "handlers.py")
    assert result.exit_code == exit_codes.FAILED
    assert "no handler serves demo.Explain" in result.stderr


def test_a_handler_stands_in_for_the_model(project: Path) -> None:
    more = '@app.handler("demo.Explain")\ndef explain(word: str) -> str:\n    return "by hand"\n'
    (project / "handlers.py").write_text(HANDLERS + more, encoding="utf-8")
    result = run(*ARGS, "--handlers", "handlers.py", "--model", "scripted:replies.json")
    assert json.loads(result.stdout) == {"text": "by hand"}


@pytest.mark.parametrize(
    ("more", "looked"), [(("--approve",), ["cat"]), ((), [])], ids=["approved", "refused"]
)
def test_a_tool_that_a_person_has_to_agree_to_is_called_only_with_approve(
    project: Path, more: tuple[str, ...], looked: list[str]
) -> None:
    once = FLOW.replace("(meaning: String)", "(meaning: String) with Effect(kind = irreversible)")
    (project / "flow.afl").write_text(once, encoding="utf-8")
    noting = HANDLERS.replace(
        "    return", "    pathlib.Path('looked').write_text(word)\n    return"
    )
    (project / "handlers.py").write_text("import pathlib\n" + noting, encoding="utf-8")
    result = run(*ARGS, "--handlers", "handlers.py", "--model", "scripted:replies.json", *more)
    assert result.exit_code == exit_codes.OK, result.stderr
    notes = project / "looked"
    assert (notes.read_text("utf-8").split() if notes.exists() else []) == looked


def test_turns_and_no_turns_contradict() -> None:
    result = run("worker", "--turns", "3", "--no-turns", "--database", "postgresql://nowhere/x")
    assert result.exit_code == exit_codes.USAGE
    assert "use --turns or --no-turns, not both" in result.stderr


@pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")
def test_a_worker_asks_the_model_of_the_setting(project: Path) -> None:
    flow = FLOW.replace(' model "anthropic:claude-sonnet-5"', "")
    with deployed_database(flow) as url:
        settings = {"AFL_DATABASE_URL": url, "AFL_MODEL": "scripted:replies.json"}
        with subprocess.Popen(
            [AFL, "worker", "--handlers", "handlers", "--target", "writers", "--json"],
            cwd=project,
            env={**plain_environment(), **settings},
            stdout=subprocess.PIPE,
            text=True,
        ) as worker:
            try:
                assert worker.stdout is not None
                line = worker.stdout.readline()
                validate(line, "worker")
                started = json.loads(line)
                assert (started["answers"], started["not_served"]) == (["demo.Explain"], [])
                with Client(url) as client:
                    submitted = client.submit("demo.Do", {"word": "cat"})
                    assert submitted.result("30s") == {"text": "A cat is a CAT."}
                listed = run("workers", "list", "--json", "--database", url).stdout
                assert "agent:writers" in listed
                assert "agent:default" not in listed
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(30) == exit_codes.OK
            finally:
                worker.kill()
