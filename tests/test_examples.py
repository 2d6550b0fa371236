"""The examples: each checks clean, is formatted, and holds the workflows that its README names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from afl.app.front_ends import (
    PipelineFile,
    compile_together,
    is_pipeline,
    read_pipeline,
    workflow_of,
)
from afl.lang.api import Compilation, parse
from afl.lang.formatter import format_source
from afl.lang.source import Source
from afl.lang.tree import File
from tests.architecture.doc_runner import missing_server, run_page
from tests.architecture.repository import ROOT, relative
from tests.architecture.test_links import broken_links

EXAMPLES = sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir())
SOURCES = sorted((ROOT / "examples").rglob("*.afl"))
_WORKFLOWS = re.compile(r"^Workflows: (.+)$", re.MULTILINE)


def _name(example: Path) -> str:
    return example.name


def _compile(example: Path) -> Compilation:
    files: list[File | PipelineFile] = []
    for path in sorted(example.rglob("*.*")):
        if path.suffix not in (".afl", ".yaml", ".yml"):
            continue
        source = Source(relative(path), path.read_text(encoding="utf-8"))
        if is_pipeline(path.name):
            files.append(read_pipeline(source, workflow_of(path.relative_to(example))))
        else:
            files.append(parse(source))
    return compile_together(files)


def test_there_is_an_example_of_every_kind() -> None:
    names = {example.name for example in EXAMPLES}
    assert names >= {"hello", "fanout", "approval", "review", "errors", "two_files", "negotiation"}


@pytest.mark.parametrize("example", EXAMPLES, ids=_name)
def test_an_example_checks_clean_and_compiles(example: Path) -> None:
    result = _compile(example)
    found = [f"{each.code} {each.message}" for each in result.diagnostics]
    assert found == []
    assert result.program is not None


@pytest.mark.parametrize("example", EXAMPLES, ids=_name)
def test_the_readme_of_an_example_names_its_workflows(example: Path) -> None:
    program = _compile(example).program
    assert program is not None
    workflows = {facet.name for facet in program.facets if facet.kind == "workflow"}
    line = _WORKFLOWS.search((example / "README.md").read_text(encoding="utf-8"))
    assert line is not None, "the README has no line that starts with `Workflows:`"
    assert set(re.findall(r"`([^`]+)`", line.group(1))) == workflows


@pytest.mark.parametrize("example", EXAMPLES, ids=_name)
def test_the_readme_of_an_example_does_what_it_says(example: Path, tmp_path: Path) -> None:
    readme = example / "README.md"
    assert broken_links(readme, ROOT) == []
    page = readme.read_text(encoding="utf-8")
    if missing := missing_server(page):
        pytest.skip(missing)
    assert run_page(relative(readme), page, tmp_path) == []


@pytest.mark.parametrize("file", SOURCES, ids=relative)
def test_an_example_is_formatted(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert format_source(Source(relative(file), text)).text == text


@pytest.mark.parametrize("file", SOURCES, ids=relative)
def test_every_namespace_of_an_example_says_what_it_is_for(file: Path) -> None:
    assert file.read_text(encoding="utf-8").startswith("/** ")
