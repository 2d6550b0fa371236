"""A pipeline as its file says it, with the places of what may have to be pointed at."""

from __future__ import annotations

from dataclasses import dataclass

from afl.pipelines.problems import Range


@dataclass(frozen=True, slots=True)
class Text:
    """A text of the file, and where it stands."""

    value: str
    range: Range


@dataclass(frozen=True, slots=True)
class Link:
    """A task and those that it waits for, whatever else there is to say about it."""

    id: Text
    depends: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Subprocess:
    """`!Subprocess`: a command with its arguments, without a shell."""

    cmd: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UvPython:
    """`!UvPython`: a Python script that `uv` runs with what it needs."""

    script_path: str
    packages: tuple[str, ...] = ()
    is_uv_project: bool = False
    uv_path: str | None = None
    working_directory: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    link: Link
    range: Range
    name: str
    description: str | None
    config: Subprocess | UvPython

    @property
    def id(self) -> str:
        return self.link.id.value


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`cron` has five fields, and `start_time` an offset."""

    range: Range
    name: Text
    description: str | None
    cron: Text | None
    start_time: Text | None
    tasks: tuple[Task, ...]
