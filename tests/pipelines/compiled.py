"""Pipelines for tests: a text, what the compiler makes of it, and what it has to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afl.app.front_ends import PipelineFile, compile_together, read_pipeline
from afl.ir.model import Block as Steps
from afl.ir.model import Program, Step
from afl.lang.api import parse
from afl.lang.source import Source
from afl.lang.tree import File


def read(text: str, workflow: str = "nightly") -> PipelineFile:
    return read_pipeline(Source("nightly.yaml", text), workflow)


def codes(text: str, workflow: str = "nightly") -> list[str]:
    """The codes of what is wrong, in the order of the text."""
    return [each.code for each in compile_together([read(text, workflow)]).diagnostics]


def program_of(text: str, workflow: str = "nightly") -> Program:
    compilation = compile_together([read(text, workflow)])
    assert compilation.diagnostics == ()
    assert compilation.program is not None
    return compilation.program


def together(**files: str) -> list[File | PipelineFile]:
    """Files by name: those that hold a brace are AFL, others are pipelines."""
    return [
        parse(Source(f"{name}.afl", text))
        if text.startswith("namespace")
        else read_pipeline(Source(f"{name}.yaml", text), name)
        for name, text in files.items()
    ]


def steps_of(program: Program, workflow: str = "nightly") -> dict[str, Step]:
    facet = next(facet for facet in program.facets if facet.name == workflow)
    body = facet.clauses[0].body
    assert isinstance(body, Steps)
    return {step.name: step for step in body.statements if isinstance(step, Step)}


def pipeline(tasks: Mapping[str, Sequence[str]], *, cmd: str = "work") -> str:
    """A pipeline in which each task, by its id, depends on those of its list."""
    lines = ["name: Tasks", "tasks:"]
    for id, parents in tasks.items():
        lines += [f"  {id}:", f"    name: Task {id}"]
        if parents:
            lines.append(f"    depends: [{', '.join(parents)}]")
        lines += ["    config: !Subprocess", f"      cmd: {cmd}", f"      args: [{id}]"]
    return "\n".join(lines) + "\n"
