"""The files that programs were made of, and what was deployed before, in both stores."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from afl.app.compiling import compile_program, compile_with_sources
from afl.runtime.operations import Operations
from tests.runtime.kept import Kept

FIRST = "namespace n { workflow A() => (n: Long) andThen { yield A(n = 1) } }"
SECOND = "namespace n { workflow B() => (n: Long) andThen { yield B(n = 1) } }"


def test_a_deployment_keeps_its_sources(kept: Kept, tmp_path: Path) -> None:
    for name, text in (("b.afl", FIRST), ("a.afl", "namespace m { event facet C() }")):
        (tmp_path / name).write_text(text)
    compiled = compile_with_sources(tmp_path)
    operations = Operations(kept.store)
    program = operations.deploy(compiled.program, sources=compiled.sources).program
    kept_files = kept.store.get_sources(program)
    assert [Path(name).name for name in kept_files] == ["a.afl", "b.afl"]
    assert list(kept_files.values())[1] == FIRST
    assert compiled.program.spans["n.A"].file in kept_files


def test_the_same_program_from_other_files_has_those(kept: Kept) -> None:
    operations = Operations(kept.store)
    program = operations.deploy(compile_program(FIRST), sources={"a": "1", "b": "2"}).program
    moved = compile_program(f"\n// moved\n{FIRST}")
    assert operations.deploy(moved, sources={"b": "3\0"}).program == program
    assert list(kept.store.get_sources(program)) == ["b"]
    assert operations.evaluator.plans.get(program).program.spans["n.A"].line == 3
    # without any, those that were kept stay
    operations.deploy(moved)
    assert list(kept.store.get_sources(program)) == ["b"]


def test_a_program_without_sources(kept: Kept) -> None:
    operations = Operations(kept.store)
    program = operations.deploy(compile_program(FIRST)).program
    assert kept.store.get_sources(program) == {}
    kept.store.save_sources("sha256:0", {"a": "1"})
    assert kept.store.get_sources("sha256:0") == {}


def test_the_history_of_a_name(kept: Kept) -> None:
    operations = Operations(kept.store)
    programs = []
    for text in (FIRST, SECOND, SECOND, FIRST):
        programs.append(operations.deploy(compile_program(text)).program)
        kept.advance(timedelta(seconds=1))
    operations.deploy(compile_program(SECOND), "other")
    first, second, _, _ = programs
    history = kept.store.deployment_history("default")
    assert [each.program for each in history] == [first, second, first]
    assert history[0].deployed_at > history[1].deployed_at > history[2].deployed_at
    assert [each.program for each in kept.store.deployment_history("default", 1)] == [first]
    assert [each.name for each in kept.store.deployment_history("other")] == ["other"]
    assert kept.store.deployment_history("none") == []
