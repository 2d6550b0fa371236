"""`afl deploy --watch`: what changes is deployed, and what is broken stays as it was."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from afl import Client
from afl.cli import exit_codes
from afl.cli.running.watching import Change, Watched
from afl.ir.model import Program
from tests.cli.deployed import fresh_database
from tests.cli.runner import AFL, plain_environment, run
from tests.kernel.postgres.databases import server_is_there
from tests.pipelines.compiled import pipeline

ONE = pipeline({"a": []})
TWO = pipeline({"a": [], "b": ["a"]})
BROKEN = pipeline({"a": ["gone"]})


def _workflows(program: Program | None) -> dict[str, int]:
    """The workflows of a program with the number of their steps."""
    assert program is not None
    return {
        facet.name: sum(span.startswith(f"{facet.name}/0/") for span in program.spans)
        for facet in program.facets
        if facet.kind == "workflow"
    }


def _look(watched: Watched) -> Change:
    change = watched.look()
    assert change is not None
    return change


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one.yaml").write_text(ONE, encoding="utf-8")
    (tmp_path / "two.yaml").write_text(TWO, encoding="utf-8")
    return tmp_path


def test_nothing_is_to_be_done_until_something_changes(folder: Path) -> None:
    watched = Watched([str(folder)])
    assert _workflows(_look(watched).program) == {"one": 1, "two": 2}
    assert watched.look() is None
    (folder / "one.yaml").write_text(ONE, encoding="utf-8")
    assert watched.look() is None, "the same text is no change"
    (folder / "one.yaml").write_text(TWO, encoding="utf-8")
    assert _workflows(_look(watched).program) == {"one": 2, "two": 2}


def test_of_a_broken_file_the_version_before_is_kept(folder: Path) -> None:
    watched = Watched([str(folder)])
    _look(watched)
    (folder / "one.yaml").write_text(BROKEN, encoding="utf-8")
    (folder / "two.yaml").write_text(ONE, encoding="utf-8")
    change = _look(watched)
    assert _workflows(change.program) == {"one": 1, "two": 1}, "the other one is new"
    assert change.kept == (f"{folder}/one.yaml",)
    assert [each.code for each in change.diagnostics] == ["AFL5007"]
    assert watched.look() is None, "it is said once"
    (folder / "one.yaml").write_text(TWO, encoding="utf-8")
    change = _look(watched)
    assert (_workflows(change.program), change.kept) == ({"one": 2, "two": 1}, ())


def test_a_new_file_that_is_broken_is_left_out(folder: Path) -> None:
    watched = Watched([str(folder)])
    _look(watched)
    (folder / "three.yaml").write_text(BROKEN, encoding="utf-8")
    change = _look(watched)
    assert _workflows(change.program) == {"one": 1, "two": 2}
    assert (change.kept, change.left_out) == ((), (f"{folder}/three.yaml",))


def test_a_new_file_that_takes_a_name_does_not_push_out_the_one_that_had_it(folder: Path) -> None:
    watched = Watched([str(folder)])
    _look(watched)
    (folder / "one.yml").write_text(TWO, encoding="utf-8")
    change = _look(watched)
    assert _workflows(change.program) == {"one": 1, "two": 2}
    assert change.left_out == (f"{folder}/one.yml",)


def test_a_file_that_is_gone_takes_its_workflow_with_it(folder: Path) -> None:
    watched = Watched([str(folder)])
    _look(watched)
    (folder / "one.yaml").unlink()
    assert _workflows(_look(watched).program) == {"two": 2}
    (folder / "two.yaml").unlink()
    change = _look(watched)
    assert change.program is None
    assert "there is no .afl file and no pipeline in" in change.problem
    assert watched.look() is None
    (folder / "two.yaml").write_text(TWO, encoding="utf-8")
    assert _workflows(_look(watched).program) == {"two": 2}


def test_without_a_version_before_nothing_is_deployed(folder: Path) -> None:
    """What is deployed may have what is broken here: leaving it out would take it away."""
    (folder / "one.yaml").write_text(BROKEN, encoding="utf-8")
    watched = Watched([str(folder)])
    assert _look(watched).program is None
    (folder / "one.yaml").write_text(ONE, encoding="utf-8")
    assert _workflows(_look(watched).program) == {"one": 1, "two": 2}


def test_what_others_need_cannot_be_taken_away(tmp_path: Path) -> None:
    (tmp_path / "a.afl").write_text("namespace a {\n  event facet Do()\n}\n", encoding="utf-8")
    flow = "namespace b {\n  workflow Go() andThen {\n    x = a.Do()\n  }\n}\n"
    (tmp_path / "b.afl").write_text(flow, encoding="utf-8")
    watched = Watched([str(tmp_path)])
    assert _look(watched).program is not None
    (tmp_path / "a.afl").unlink()
    assert _look(watched).program is None


def test_standard_input_cannot_be_watched() -> None:
    result = run("deploy", "-", "--watch")
    assert result.exit_code == exit_codes.USAGE
    without = run("deploy", "--watch", ".")
    assert "there is no database" in without.stderr


@contextmanager
def _watching(folder: Path, url: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [AFL, "deploy", "--watch", str(folder), "--json"],
        env={**plain_environment(), "AFL_DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def _line(running: subprocess.Popen[str]) -> dict[str, Any]:
    assert running.stdout is not None
    line = running.stdout.readline()
    assert line, running.stderr.read() if running.stderr else ""
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


@pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")
def test_a_folder_is_deployed_whenever_it_changes(folder: Path) -> None:
    with fresh_database() as url, _watching(folder, url) as running:
        assert _line(running)["workflows"] == ["one", "two"]
        (folder / "one.yaml").write_text(BROKEN, encoding="utf-8")
        assert _line(running)["diagnostics"][0]["code"] == "AFL5007"
        assert _line(running)["workflows"] == ["one", "two"]
        (folder / "one.yaml").unlink()
        last = _line(running)
        assert last["workflows"] == ["two"]
        with Client(url) as client:
            assert client.operations.program("default") == last["hash"]
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == exit_codes.OK
