"""From what a user has, files, a folder, a text or a program, to a checked program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from afl.app.errors import BadProgram
from afl.ir import model as ir
from afl.lang.api import compile_sources
from afl.lang.diagnostics.render_human import render_human

#: A program, the text of one, or files and folders with `.afl` files.
Source = ir.Program | str | Path | Sequence[Path]

SUFFIX = ".afl"
_WIDTH = 100


def compile_program(source: Source) -> ir.Program:
    """The program. A text that has no line break and no brace is taken for a path.

    Raises:
        BadProgram: it cannot be read or does not check; the message is what `afl check` says.
    """
    if isinstance(source, ir.Program):
        return source
    if isinstance(source, str) and ("{" in source or "\n" in source):
        return _compiled([("flow.afl", source)])
    paths = [Path(source)] if isinstance(source, str | Path) else [Path(each) for each in source]
    files = [file for path in paths for file in _files(path)]
    if not files:
        listed = ", ".join(map(str, paths))
        raise BadProgram(f"There is no {SUFFIX} file in {listed or 'an empty list of paths'}.")
    return _compiled([(file.as_posix(), _read(file)) for file in files])


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(
            each
            for each in path.rglob(f"*{SUFFIX}")
            if not any(part.startswith(".") for part in each.relative_to(path).parts)
        )
    else:
        yield path


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadProgram(f"There is no file {file}.") from None
    except UnicodeDecodeError:
        raise BadProgram(f"{file} is not UTF-8. Save it as UTF-8.") from None


def _compiled(sources: Sequence[tuple[str, str]]) -> ir.Program:
    compilation = compile_sources(sources)
    if compilation.program is None:
        text = render_human(compilation.errors, width=_WIDTH, colour=False)
        raise BadProgram(f"The flows do not compile.\n{text}")
    return compilation.program
