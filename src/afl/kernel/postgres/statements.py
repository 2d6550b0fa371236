"""The named statements of `sql/*.sql`, read once.

A statement starts at a line `-- name: some_name`; the comment line below it says what it is for.
`{task}` and `{call}` stand for the columns of a task aliased `t` and a call aliased `c`, in the
order in which `rows` reads them. The parameters of hot statements are numbered here, so that they
need not go through the driver's own reading of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

from afl.kernel.postgres.rows import CALL_COLUMNS, TASK_COLUMNS

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_PARAMETER = re.compile(r"%\((\w+)\)s")

#: The parameters of a hot statement. What is bytes is sent as it is.
Parameters = Mapping[str, str | int | bytes | None]


@dataclass(frozen=True, slots=True)
class Hot:
    """A statement as the server reads it, with the names of its parameters in their order."""

    name: bytes
    query: bytes
    parameters: tuple[str, ...]


def encoded(parameters: Parameters) -> Parameters:
    """The same parameters in the form in which they are sent, for those that are sent often."""
    return {
        name: value if value is None or isinstance(value, bytes) else str(value).encode()
        for name, value in parameters.items()
    }


def parse(text: str) -> Iterator[tuple[str, str]]:
    """The statements of one file, each with its name."""
    pieces = _NAME.split(text)
    if pieces[0].strip():
        raise ValueError("a statement stands before the first name")
    yield from ((name, body.strip()) for name, body in zip(pieces[1::2], pieces[2::2], strict=True))


def hot(name: str) -> Hot:
    """The named statement with numbered parameters."""
    return numbered(name, SQL[name].decode())


def numbered(name: str, text: str) -> Hot:
    """A statement with numbered parameters. Each has to be cast to its type in the text."""
    parameters = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    query = _PARAMETER.sub(lambda match: f"${parameters.index(match[1]) + 1}", text)
    return Hot(f"afl_{name}".encode(), query.encode(), parameters)


def _load() -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    folder = files("afl.kernel.postgres").joinpath("sql")
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        for name, body in parse(file.read_text(encoding="utf-8")):
            if name in found:
                raise ValueError(f"two statements are named {name}")
            text = body.replace("{task}", TASK_COLUMNS).replace("{call}", CALL_COLUMNS)
            found[name] = text.encode()
    return found


SQL: Mapping[str, bytes] = _load()
"""Every statement by its name."""
