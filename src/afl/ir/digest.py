"""The content hash that names a program.

It covers what the program does, and the version of the stored form. Spans and docs are left out,
and declarations are sorted by name: a program keeps its hash when its source is moved, reordered or
commented.
"""

from __future__ import annotations

import hashlib
import json
from operator import attrgetter

from afl.ir.model import FORMAT_VERSION, Program
from afl.ir.place import ROOT
from afl.ir.shapes import semantic_fields
from afl.ir.values import Json, write

#: What a stored program says it is.
FORMAT = "afl-program"


def semantic_part(program: Program) -> dict[str, Json]:
    """The stored form of a program without its hash, spans and docs."""
    place = ROOT.child("program")
    body: dict[str, Json] = {}
    for name in semantic_fields():
        declarations = tuple(sorted(getattr(program, name), key=attrgetter("name")))
        if declarations:
            body[name] = write(declarations, place.child(name))
    return {"format": FORMAT, "version": FORMAT_VERSION, "program": body}


def canonical_text(data: dict[str, Json]) -> str:
    """The one way to write a JSON value: sorted keys, no blanks, no needless escapes."""
    return json.dumps(
        data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def hash_of(part: dict[str, Json]) -> str:
    """The hash of a semantic part."""
    return f"sha256:{hashlib.sha256(canonical_text(part).encode()).hexdigest()}"


def program_hash(program: Program) -> str:
    """The name of a program: `sha256:` and 64 hexadecimal digits."""
    return hash_of(semantic_part(program))
