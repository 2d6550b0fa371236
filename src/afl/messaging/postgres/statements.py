"""The named statements of `sql/*.sql`, read once."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from afl.kernel.postgres.statements import Hot, numbered, parse


def _load() -> Mapping[str, str]:
    folder = files("afl.messaging.postgres").joinpath("sql")
    texts = (file.read_text(encoding="utf-8") for file in folder.iterdir())
    return {name: body for text in texts for name, body in parse(text)}


SQL = _load()
"""Every statement by its name."""

HOT: Mapping[str, Hot] = {name: numbered(f"mail_{name}", text) for name, text in SQL.items()}
"""The same as they are sent."""
