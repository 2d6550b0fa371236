"""The named statements of `sql/*.sql`, read once."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from afl.kernel.postgres.statements import parse


def _load() -> Mapping[str, bytes]:
    folder = files("afl.server.postgres").joinpath("sql")
    texts = (file.read_text(encoding="utf-8") for file in folder.iterdir())
    return {name: body.encode() for text in texts for name, body in parse(text)}


SQL = _load()
"""Every statement by its name."""
