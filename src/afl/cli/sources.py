"""Arguments to AFL texts: files, folders to search for `*.afl`, and `-` for standard input."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from afl.cli.errors import InputError, cannot
from afl.lang.diagnostics.model import Diagnostic
from afl.lang.diagnostics.reporter import Reporter, advise
from afl.lang.parser import parse
from afl.lang.source import Source
from afl.lang.tree import File

SUFFIX = ".afl"
STDIN = "-"
STDIN_NAME = "<stdin>"

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class Input:
    """A text that was read. `path` is None for standard input.

    `mistake` is set when the bytes are not UTF-8; `text` is then only good for showing the place.
    """

    path: str | None
    name: str
    text: str
    mistake: Diagnostic | None = None

    def parse(self) -> File:
        """The tree of the text. One that is not UTF-8 has no other mistake than that."""
        if self.mistake is None:
            return parse(Source(self.name, self.text))
        source = self.mistake.primary.span.source
        empty = parse(Source(self.name, ""))
        return replace(empty, source=source, diagnostics=[self.mistake], complete=False)


def read_inputs(paths: Sequence[str], *, stdin_name: str = STDIN_NAME) -> list[Input]:
    """Reads what the arguments name, each file once. Raises `InputError` when there is nothing."""
    inputs = [
        _read_stdin(stdin_name) if path == STDIN else _read_file(path)
        for path in _unique(_expand(paths or ["."]))
    ]
    if not inputs:
        raise InputError(
            f"there is no {SUFFIX} file in {', '.join(paths) or 'this folder'}",
            help="name the files or folders to read, or `-` for standard input",
        )
    return inputs


def _expand(paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        if path != STDIN and os.path.isdir(path):
            yield from _search(path)
        else:
            yield path


def _search(folder: str) -> Iterator[str]:
    """The AFL files under a folder, sorted, hidden folders left out."""

    def refuse(error: OSError) -> None:
        raise cannot("read the folder", str(error.filename), error) from error

    found = []
    for parent, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(parent, name) for name in files if name.endswith(SUFFIX)]
    yield from sorted(map(os.path.normpath, found), key=lambda path: path.split(os.sep))


def _unique(paths: Iterator[str]) -> Iterator[str]:
    """A file that two arguments name would declare everything twice."""
    seen = set()
    for path in paths:
        key = path if path == STDIN else os.path.realpath(path)
        if key not in seen:
            seen.add(key)
            yield path


def _read_file(path: str) -> Input:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError as error:
        raise InputError(
            f"cannot read {path}: there is no such file or folder",
            help="`afl check` without a path reads every .afl file under the current folder",
        ) from error
    except OSError as error:
        raise cannot("read", path, error) from error
    return _decode(path, path.replace(os.sep, "/"), data)


def _read_stdin(name: str) -> Input:
    return _decode(None, name, sys.stdin.buffer.read())


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
