"""Doc comments: the text, and what it says of each parameter and return."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_TAG = re.compile(r"@(param|return)s?[ \t]+([A-Za-z_][A-Za-z0-9_]*)[ \t:-]*(.*)")


@dataclass(frozen=True, slots=True)
class DocComment:
    """A doc comment in its parts; `params` also has the fields of a schema."""

    text: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    returns: Mapping[str, str] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """The first paragraph, on one line."""
        return " ".join(self.text.partition("\n\n")[0].split())


def read_doc(text: str) -> DocComment:
    """The parts of a comment. What follows a tag belongs to it, up to an empty line."""
    prose: list[str] = []
    tables: dict[str, dict[str, list[str]]] = {"param": {}, "return": {}}
    current: list[str] | None = None
    for line in text.splitlines():
        tag = _TAG.match(line.strip())
        if tag:
            current = tables[tag[1]].setdefault(tag[2], [])
            current.append(tag[3])
        elif current is not None and line.strip():
            current.append(line.strip())
        else:
            current = None
            prose.append(line)
    return DocComment(
        "\n".join(prose).strip(),
        {name: " ".join(lines).strip() for name, lines in tables["param"].items()},
        {name: " ".join(lines).strip() for name, lines in tables["return"].items()},
    )
