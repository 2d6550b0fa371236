"""What a project has: flows, pipelines, handlers, and the files that matter to them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from afl.app.front_ends import AFL_SUFFIX, PIPELINE_SUFFIXES

#: The script that answers prompts where no model is named.
SCRIPT = "replies.json"
#: Where `afl dev` keeps the database and the logs.
STATE = ".afl"

_SOURCES = ("flows", "pipelines")
_MODULES = ("handlers", "app")
_PYTHON = ".py"
_SKIPPED = ("__pycache__", "node_modules", "site-packages")

#: The files of a project with what changes when one is saved.
Snapshot = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Project:
    """A folder, which has to be the current one: sources are named as people would type them."""

    folder: Path

    def sources(self) -> tuple[str, ...]:
        """The folders with flows: `flows` and `pipelines`, else all of the project."""
        found = tuple(name for name in _SOURCES if (self.folder / name).is_dir())
        return found or (".",)

    def modules(self) -> tuple[str, ...]:
        """The modules where apps are looked for, as far as they are there."""
        return tuple(
            name
            for name in _MODULES
            if (self.folder / f"{name}{_PYTHON}").is_file()
            or (self.folder / name / "__init__.py").is_file()
        )

    def script(self) -> str | None:
        """The script of a model, if there is one."""
        return SCRIPT if (self.folder / SCRIPT).is_file() else None

    def flows(self) -> Snapshot:
        """The files that may be flows or pipelines."""
        found: Snapshot = {}
        for each in self.sources():
            found.update(self._files(self.folder / each, (AFL_SUFFIX, *PIPELINE_SUFFIXES)))
        return found

    def code(self) -> Snapshot:
        """The files that handlers may depend on, also those that they import."""
        found = dict(self._files(self.folder, (_PYTHON,)))
        found.update(self._files(self.folder, (SCRIPT,), deep=False))
        return found

    def folders(self) -> tuple[Path, ...]:
        """The folders below in which something may change."""
        with os.scandir(self.folder) as entries:
            return tuple(sorted(Path(entry.path) for entry in entries if _is_searched(entry)))

    def _files(
        self, folder: Path, endings: tuple[str, ...], *, deep: bool = True
    ) -> Iterator[tuple[str, tuple[int, int]]]:
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            return  # it went away while it was looked at
        for entry in found:
            if entry.name.endswith(endings):
                try:
                    stat = entry.stat()
                except OSError:
                    continue
                name = Path(entry.path).relative_to(self.folder).as_posix()
                yield name, (stat.st_mtime_ns, stat.st_size)
            elif deep and _is_searched(entry):
                yield from self._files(Path(entry.path), endings)


def _is_searched(entry: os.DirEntry[str]) -> bool:
    """Whether a folder is the project's own: not hidden, no cache, no environment of Python."""
    if entry.name.startswith(".") or entry.name in _SKIPPED or not entry.is_dir():
        return False
    return not os.path.exists(os.path.join(entry.path, "pyvenv.cfg"))
