"""AFL sources and YAML pipelines to one program, with one kind of diagnostics.

The only code that sees both front-ends. What pipelines need is an extra, and is loaded with the
first of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from afl.app.extras import extra_part
from afl.app.pipeline_diagnostics import diagnostics_of, place_of, span_of
from afl.ir import model as ir
from afl.lang.api import Compilation, compile_files, compile_sources, parse
from afl.lang.diagnostics.model import Diagnostic, Label
from afl.lang.diagnostics.reporter import Reporter, advise
from afl.lang.source import Source, Span
from afl.lang.tree import File

if TYPE_CHECKING:
    from afl.pipelines.compiling import Compiled

AFL_SUFFIX = ".afl"
PIPELINE_SUFFIXES = (".yaml", ".yml")

_TAGS = re.compile(rb"!(?:Subprocess|UvPython)\b")
_NAME_KEY = re.compile(rb"^name\s*:", re.MULTILINE)
_TASKS_KEY = re.compile(rb"^tasks\s*:", re.MULTILINE)

_NOTHING = ir.Program((), (), (), ())

#: Calls what the tasks of pipelines call, so that the compiler says what these facets are.
_LIBRARY = """\
namespace library {
  workflow Everything() andThen {
    command = afl.exec.Command(argv = [])
    uv = afl.exec.Uv(script = "")
  }
}
"""


@dataclass(frozen=True, slots=True)
class PipelineFile:
    """One pipeline that was read. `declared` is what names it."""

    source: Source
    workflow: str
    diagnostics: tuple[Diagnostic, ...]
    program: ir.Program | None
    declared: Span


def is_pipeline(name: str) -> bool:
    """Whether a file is a pipeline by its name."""
    return name.endswith(PIPELINE_SUFFIXES)


def looks_like_a_pipeline(data: bytes) -> bool:
    """Whether a YAML file that nobody has named is a pipeline: folders hold other YAML too."""
    if _TAGS.search(data) is not None:
        return True
    return _NAME_KEY.search(data) is not None and _TASKS_KEY.search(data) is not None


def workflow_of(path: PurePath) -> str:
    """The name of the workflow of a pipeline, by its path below the folder of pipelines."""
    return ".".join(path.with_suffix("").parts)


def read_pipeline(source: Source, workflow: str) -> PipelineFile:
    """Checks one pipeline.

    Raises:
        ExtraMissing: what it needs is not installed; the message says how to.
    """
    compiling = extra_part("afl.pipelines.compiling", "pipelines", "Pipelines need")
    compiled: Compiled = compiling.compile_pipeline(
        source.text, workflow, _library(), lambda range: place_of(source, range)
    )
    return PipelineFile(
        source,
        workflow,
        diagnostics_of(compiled.problems, source),
        compiled.program,
        span_of(source, compiled.declared),
    )


def compile_together(files: Sequence[File | PipelineFile]) -> Compilation:
    """Checks AFL files and pipelines as one program. `files` of the result has all of them."""
    flows = [file for file in files if isinstance(file, File)]
    pipelines = [file for file in files if isinstance(file, PipelineFile)]
    if not pipelines:
        return compile_files(flows)
    compilation = compile_files(flows) if flows else Compilation((), (), _NOTHING)
    found = list(compilation.diagnostics)
    found += [diagnostic for file in pipelines for diagnostic in file.diagnostics]
    found += _clashes(flows, pipelines)
    order = {id(file.source): position for position, file in enumerate(files)}
    found.sort(key=lambda d: (order[id(d.primary.span.source)], d.primary.span.start, d.code))
    program = None
    if not any(diagnostic.is_error for diagnostic in found):
        program = _joined([compilation.program, *(file.program for file in pipelines)])
    return Compilation(tuple(_as_file(file) for file in files), tuple(found), program)


def _joined(programs: Sequence[ir.Program | None]) -> ir.Program:
    """All declarations in one program. What is built in comes with each, and is the same."""
    facets: dict[str, ir.Facet] = {}
    schemas: dict[str, ir.Schema] = {}
    enums: dict[str, ir.Enum] = {}
    schedules: dict[str, ir.Schedule] = {}
    spans: dict[str, ir.SourceSpan] = {}
    docs: dict[str, str] = {}
    for program in programs:
        assert program is not None  # a part that has none has an error
        facets.update((each.name, each) for each in program.facets)
        schemas.update((each.name, each) for each in program.schemas)
        enums.update((each.name, each) for each in program.enums)
        schedules.update((each.name, each) for each in program.schedules)
        spans.update(program.spans)
        docs.update(program.docs)
    return ir.Program(
        tuple(facets[name] for name in sorted(facets)),
        tuple(schemas[name] for name in sorted(schemas)),
        tuple(enums[name] for name in sorted(enums)),
        tuple(schedules[name] for name in sorted(schedules)),
        spans,
        docs,
    )


def _clashes(flows: Sequence[File], pipelines: Sequence[PipelineFile]) -> list[Diagnostic]:
    """Pipelines whose name is taken: by a declaration, or by another file of that name."""
    declared = dict(_declared(flows))
    reporter = Reporter()
    for file in pipelines:
        first = declared.setdefault(file.workflow, file.declared)
        if first is not file.declared:
            reporter.report(
                "AFL1004",
                file.declared,
                f"`{file.workflow}` is declared twice",
                "second declaration",
                secondary=[Label(first, "first declared here")],
                notes=["a pipeline is named by its file and the folders it is in"],
                suggestions=[advise("rename one of them")],
            )
    return reporter.diagnostics


def _declared(flows: Sequence[File]) -> Iterator[tuple[str, Span]]:
    for file in flows:
        for namespace in file.namespaces:
            for declaration in namespace.declarations:
                name = declaration.name
                span = file.source.span(name.start, name.end)
                yield f"{namespace.name.text}.{name.text}", span


def _as_file(file: File | PipelineFile) -> File:
    """A pipeline among parsed files: one with its source, and nothing of AFL in it."""
    if isinstance(file, File):
        return file
    return replace(parse(Source(file.source.name, "")), source=file.source)


@lru_cache(maxsize=1)
def _library() -> ir.Program:
    program = compile_sources([("library.afl", _LIBRARY)]).program
    assert program is not None  # it is written above
    return program
