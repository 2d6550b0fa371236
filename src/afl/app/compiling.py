"""From what a user has, files, a folder, a text or a program, to a checked program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from afl.app.errors import BadProgram
from afl.app.front_ends import (
    AFL_SUFFIX,
    PIPELINE_SUFFIXES,
    PipelineFile,
    compile_together,
    is_pipeline,
    looks_like_a_pipeline,
    read_pipeline,
    workflow_of,
)
from afl.ir import model as ir
from afl.lang.api import parse
from afl.lang.diagnostics.render_human import render_human
from afl.lang.source import Source as Text
from afl.lang.tree import File

#: A program, the text of one, or files and folders with `.afl` files and YAML pipelines.
Source = ir.Program | str | Path | Sequence[Path]

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program, and the texts that it was made of by file; None if only the program was given."""

    program: ir.Program
    sources: Mapping[str, str] | None


def compile_program(source: Source) -> ir.Program:
    """The program. A text that has no line break and no brace is taken for a path.

    Raises:
        BadProgram: it cannot be read or does not check; the message is what `afl check` says.
    """
    return compile_with_sources(source).program


def compile_with_sources(source: Source) -> Compiled:
    """The same, with what was read."""
    if isinstance(source, ir.Program):
        return Compiled(source, None)
    if isinstance(source, str) and ("{" in source or "\n" in source):
        return _compiled([parse(Text("flow.afl", source))])
    paths = [Path(source)] if isinstance(source, str | Path) else [Path(each) for each in source]
    files = [file for path in paths for file in _files(path)]
    if not files:
        listed = ", ".join(map(str, paths))
        raise BadProgram(
            f"There is no {AFL_SUFFIX} file and no pipeline in "
            f"{listed or 'an empty list of paths'}."
        )
    return _compiled(files)


def _files(path: Path) -> Iterator[File | PipelineFile]:
    if not path.is_dir():
        yield _parsed(path, path.parent)
        return
    for each in sorted(path.rglob("*")):
        if any(part.startswith(".") for part in each.relative_to(path).parts):
            continue
        if each.name.endswith(AFL_SUFFIX) or (
            each.name.endswith(PIPELINE_SUFFIXES) and looks_like_a_pipeline(_bytes(each))
        ):
            yield _parsed(each, path)


def _parsed(file: Path, root: Path) -> File | PipelineFile:
    try:
        text = Text(file.as_posix(), _bytes(file).decode("utf-8"))
    except UnicodeDecodeError:
        raise BadProgram(f"{file} is not UTF-8. Save it as UTF-8.") from None
    if is_pipeline(file.name):
        return read_pipeline(text, workflow_of(file.relative_to(root)))
    return parse(text)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise BadProgram(f"There is no file {file}.") from None


def _compiled(files: Sequence[File | PipelineFile]) -> Compiled:
    compilation = compile_together(files)
    if compilation.program is None:
        text = render_human(compilation.errors, width=_WIDTH, colour=False)
        raise BadProgram(f"The flows do not compile.\n{text}")
    return Compiled(compilation.program, {file.source.name: file.source.text for file in files})
