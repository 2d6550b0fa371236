"""Every template is a project that checks clean and passes its own tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from afl.app.compiling import compile_program
from afl.cli import exit_codes
from afl.cli.commands.init import TEMPLATES as BY_NAME
from tests.cli.runner import plain_environment, run
from tests.cli.test_json_shapes import validate

TEMPLATES = sorted(BY_NAME)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_checks_clean_and_passes_its_own_tests(template: str, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = run("init", folder, "--template", template)
    assert done.exit_code == exit_codes.OK
    assert {".gitignore", "README.md"} <= {path.name for path in folder.iterdir()}
    sources = folder / ("pipelines" if template == "pipeline" else "flows")
    assert run("check", sources, "--json").exit_code == exit_codes.OK
    if template != "pipeline":
        assert run("fmt", "--check", sources).exit_code == exit_codes.OK
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env=plain_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert " passed" in tested.stdout


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_has_a_workflow_that_needs_no_inputs(template: str, tmp_path: Path) -> None:
    """So that its first run can be started by itself."""
    run("init", tmp_path, "--template", template)
    program = compile_program(tmp_path / ("pipelines" if template == "pipeline" else "flows"))
    workflows = [facet for facet in program.facets if facet.kind == "workflow"]
    assert [each.name for each in workflows if all(param.default for param in each.params)]


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_readme_of_a_template_names_its_files(template: str, tmp_path: Path) -> None:
    done = run("init", tmp_path, "--template", template, "--json")
    validate(done.stdout, "init")
    assert done.stderr == ""
    told = json.loads(done.stdout)
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    for name in told["files"]:
        assert name in ("README.md", ".gitignore") or f"`{name}`" in readme


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_code_of_a_template_is_in_order(template: str, tmp_path: Path) -> None:
    run("init", tmp_path, "--template", template)
    for command in (["check", "--select", "B,E,F,I,UP"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--isolated", "--no-cache", "."],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_it_tells_what_it_wrote_and_what_comes_next(tmp_path: Path) -> None:
    done = run("init", tmp_path / "demo")
    written = done.stdout.splitlines()
    assert sorted(written) == sorted(
        str(path) for path in (tmp_path / "demo").rglob("*") if path.is_file()
    )
    assert "`afl dev`" in done.stderr
    assert f"`cd {tmp_path / 'demo'}`" in done.stderr


def test_nothing_is_overwritten_unless_it_is_said(tmp_path: Path) -> None:
    kept = tmp_path / "handlers.py"
    kept.write_text("mine\n", encoding="utf-8")
    refused = run("init", tmp_path)
    assert refused.exit_code == exit_codes.UNREADABLE
    assert "handlers.py" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["handlers.py"]
    assert kept.read_text(encoding="utf-8") == "mine\n"
    assert run("init", tmp_path, "--force").exit_code == exit_codes.OK
    assert "App(" in kept.read_text(encoding="utf-8")


def test_other_files_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine\n", encoding="utf-8")
    assert run("init", tmp_path).exit_code == exit_codes.OK


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    refused = run("init", tmp_path / "file" / "demo")
    assert refused.exit_code == exit_codes.UNREADABLE
    assert str(tmp_path / "file") in refused.stderr
