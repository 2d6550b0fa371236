"""Files that a command has made, kept by the hash of their content.

A file is found by a pattern relative to the folder that the command worked in. No link is followed,
neither to a file nor on the way to it: a link may lead anywhere, and a command could have a worker
read what it cannot read itself.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from afl.exec.errors import BadArtifact

#: A pattern that finds more than this is a mistake.
MOST_FILES = 1000
_COPY_BYTES = 1 << 20
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that was kept."""

    #: relative to the folder that the command worked in
    path: str
    sha256: str
    size: int


def check_patterns(patterns: Iterable[str]) -> None:
    """Refuses patterns that lead out of the folder.

    Raises:
        BadArtifact: one of them does.
    """
    for pattern in patterns:
        path = PurePosixPath(pattern)
        if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in pattern:
            raise BadArtifact(
                f"`{pattern}` is no pattern for artifacts: it must be relative, without `..`."
            )


class Artifacts:
    """Keeps files in a folder, each under its hash: `ab/abcdef...`. Processes may share it."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def path(self, sha256: str) -> Path:
        """Where the content with a hash is kept."""
        return self._folder / sha256[:2] / sha256

    def keep(self, folder: str, patterns: Iterable[str]) -> list[Artifact]:
        """Keeps the files below a folder that match, in the order of their names.

        `*` and `?` stand for parts of one name, `**` for any folders.

        Raises:
            BadArtifact: a pattern leads out of the folder, or too much matches.
            OSError: a file cannot be read, or there is no room to keep it.
        """
        patterns = list(patterns)
        check_patterns(patterns)
        kept: list[Artifact] = []
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            names = sorted({name for each in patterns for name in _matches(top, each)})
            if len(names) > MOST_FILES:
                raise BadArtifact(
                    f"{len(names)} files match {', '.join(patterns)}; the most is {MOST_FILES}."
                )
            for name in names:
                with suppress(FileNotFoundError):
                    kept.append(self._keep_one(top, name))
        finally:
            os.close(top)
        return kept

    def _keep_one(self, top: int, name: str) -> Artifact:
        self._folder.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        target, path = tempfile.mkstemp(prefix=".new-", dir=self._folder)
        try:
            with os.fdopen(target, "wb") as write, os.fdopen(_open_below(top, name), "rb") as read:
                while data := read.read(_COPY_BYTES):
                    digest.update(data)
                    size += len(data)
                    write.write(data)
                write.flush()
                os.fsync(write.fileno())
            place = self.path(digest.hexdigest())
            place.parent.mkdir(exist_ok=True)
            os.replace(path, place)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(path)
            raise
        return Artifact(name, digest.hexdigest(), size)


def _matches(top: int, pattern: str) -> Iterator[str]:
    """The regular files below an open folder that match, as paths relative to it."""
    rest = [("", PurePosixPath(pattern).parts)]
    while rest:
        at, parts = rest.pop()
        first, *others = parts
        for name, mode in _entries(top, at):
            path = f"{at}{name}"
            if first == "**":
                if stat.S_ISDIR(mode):
                    rest.append((f"{path}/", parts))
                # `**` also stands for no folder at all, and at the end for any file
                if not others and stat.S_ISREG(mode):
                    yield path
            elif fnmatch.fnmatchcase(name, first):
                if others and stat.S_ISDIR(mode):
                    rest.append((f"{path}/", tuple(others)))
                elif not others and stat.S_ISREG(mode):
                    yield path
        if first == "**" and others:
            rest.append((at, tuple(others)))


def _entries(top: int, at: str) -> Iterator[tuple[str, int]]:
    """What is in a folder, with what kind of file it is; links are only links."""
    try:
        folder = _open_below(top, at.rstrip("/")) if at else os.dup(top)
    except OSError:
        return
    try:
        for name in sorted(os.listdir(folder)):
            with suppress(FileNotFoundError):
                yield name, os.lstat(name, dir_fd=folder).st_mode
    finally:
        os.close(folder)


def _open_below(top: int, path: str) -> int:
    """A file or folder opened name by name, so that no link on the way is followed."""
    *folders, name = path.split("/")
    at = os.dup(top)
    try:
        for folder in folders:
            below = os.open(folder, _READ | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        # a pipe that took the place of a file must not block us, nor be read
        found = os.open(name, _READ, dir_fd=at)
    finally:
        os.close(at)
    mode = os.fstat(found).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        os.close(found)
        raise BadArtifact(f"`{path}` is not a regular file.")
    return found
