"""Arguments to texts: files, folders to search for AFL and pipelines, `-` for standard input."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

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
from afl.cli.errors import InputError, cannot
from afl.lang.api import Compilation
from afl.lang.diagnostics.model import Diagnostic
from afl.lang.diagnostics.reporter import Reporter, advise
from afl.lang.parser import parse
from afl.lang.source import Source
from afl.lang.tree import File

STDIN = "-"
STDIN_NAME = "<stdin>"

_NAME_SOME = "name the files or folders to read, or `-` for standard input"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class Input:
    """A text that was read. `path` is None for standard input.

    `mistake` is set when the bytes are not UTF-8; `text` is then only good for showing the place.
    `workflow` is set for a pipeline: it is the name of what it declares.
    """

    path: str | None
    name: str
    text: str
    mistake: Diagnostic | None = field(default=None, compare=False)
    workflow: str | None = None

    def read(self) -> File | PipelineFile:
        """The text, parsed as what it is."""
        if self.workflow is not None and self.mistake is None:
            return read_pipeline(Source(self.name, self.text), self.workflow)
        return self.parse()

    def parse(self) -> File:
        """The tree of an AFL text. One that is not UTF-8 has no other mistake than that."""
        if self.mistake is None:
            return parse(Source(self.name, self.text))
        source = self.mistake.primary.span.source
        empty = parse(Source(self.name, ""))
        return replace(empty, source=source, diagnostics=[self.mistake], complete=False)


def compile_inputs(inputs: Sequence[Input]) -> Compilation:
    """Checks what was read as one program."""
    return compile_together([each.read() for each in inputs])


def read_inputs(paths: Sequence[str], *, stdin_name: str = STDIN_NAME) -> list[Input]:
    """Reads what the arguments name, each file once. Raises `InputError` when there is nothing."""
    found = _unique(_expand(paths or ["."], (AFL_SUFFIX, *PIPELINE_SUFFIXES)))
    inputs = [each for path in found if (each := _read(path, stdin_name)) is not None]
    if not inputs:
        raise InputError(
            f"there is no {AFL_SUFFIX} file and no pipeline in {', '.join(paths) or 'this folder'}",
            help=_NAME_SOME,
        )
    return inputs


def read_afl_inputs(paths: Sequence[str], *, stdin_name: str = STDIN_NAME) -> list[Input]:
    """The same for a command that has to do with AFL only: folders are searched for no more."""
    found = list(_unique(_expand(paths or ["."], (AFL_SUFFIX,))))
    for path in found:
        if is_pipeline(path.name):
            raise InputError(
                f"{path.name} is a pipeline, and this command reads AFL",
                help="`afl check`, `afl graph` and `afl compile` read pipelines",
            )
    inputs = [each for path in found if (each := _read(path, stdin_name)) is not None]
    if not inputs:
        raise InputError(
            f"there is no {AFL_SUFFIX} file in {', '.join(paths) or 'this folder'}", help=_NAME_SOME
        )
    return inputs


@dataclass(frozen=True, slots=True)
class _Found:
    """A file to read, and the folder that was searched for it, if it was."""

    name: str
    folder: str | None = None


def _expand(paths: Sequence[str], suffixes: tuple[str, ...]) -> Iterator[_Found]:
    for path in paths:
        if path != STDIN and os.path.isdir(path):
            yield from _search(path, suffixes)
        else:
            yield _Found(path)


def _search(folder: str, suffixes: tuple[str, ...]) -> Iterator[_Found]:
    """The files under a folder, sorted, hidden folders left out."""

    def refuse(error: OSError) -> None:
        raise cannot("read the folder", str(error.filename), error) from error

    found = []
    for parent, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(parent, name) for name in files if name.endswith(suffixes)]
    for path in sorted(map(os.path.normpath, found), key=lambda path: path.split(os.sep)):
        yield _Found(path, os.path.normpath(folder))


def _unique(paths: Iterator[_Found]) -> Iterator[_Found]:
    """A file that two arguments name would declare everything twice."""
    seen = set()
    for path in paths:
        key = path.name if path.name == STDIN else os.path.realpath(path.name)
        if key not in seen:
            seen.add(key)
            yield path


def _read(path: _Found, stdin_name: str) -> Input | None:
    """What a file holds; None for YAML that was come across and has nothing to do with us."""
    if path.name == STDIN:
        return _decode(None, stdin_name, sys.stdin.buffer.read())
    data = _read_file(path.name)
    found = _decode(path.name, path.name.replace(os.sep, "/"), data)
    if not is_pipeline(path.name):
        return found
    if path.folder is None:
        return replace(found, workflow=workflow_of(PurePath(Path(path.name).name)))
    if not looks_like_a_pipeline(data):
        return None
    return replace(found, workflow=workflow_of(Path(path.name).relative_to(path.folder)))


def _read_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError as error:
        raise InputError(
            f"cannot read {path}: there is no such file or folder",
            help="`afl check` without a path reads every .afl file under the current folder",
        ) from error
    except OSError as error:
        raise cannot("read", path, error) from error


def _decode(path: str | None, name: str, data: bytes) -> Input:
    try:
        return Input(path, name, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", "surrogateescape")
        before = len(data[: error.start].decode("utf-8"))
        return Input(path, name, text, _not_utf8(Source(name, text), before, error))


def _not_utf8(source: Source, offset: int, error: UnicodeDecodeError) -> Diagnostic:
    data = bytes(error.object)
    if data.startswith(_UTF16):
        hint = "this looks like UTF-16; save the file as UTF-8"
    else:
        hint = "save the file as UTF-8; it was damaged, or written in another encoding"
    reporter = Reporter()
    reporter.report(
        "AFL0001",
        source.span(offset, offset + 1),
        f"byte 0x{data[error.start]:02X} at position {error.start} is not UTF-8",
        "not a character",
        notes=["source files are UTF-8; positions count bytes from 0"],
        suggestions=[advise(hint)],
    )
    return reporter.diagnostics[0]
