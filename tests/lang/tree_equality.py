"""Whether two trees say the same, wherever their parts stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from afl.lang.tree import File

#: Where something stands in the source, and what is there for the parser only.
_PLACES = frozenset({"start", "end", "key_end", "op_start", "op_end", "code_start"})


def same_tree(a: File, b: File) -> bool:
    return tree_difference(a, b) is None


def tree_difference(a: File, b: File) -> str | None:
    """The path to the first difference and what stands there, or None."""
    return next(_differences("items", a.items, b.items), None)


def _differences(path: str, a: object, b: object) -> Iterator[str]:
    if type(a) is not type(b):
        yield f"{path}: {type(a).__name__} and {type(b).__name__}"
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            yield f"{path}: {len(a)} and {len(b)} elements"
        for position, (left, right) in enumerate(zip(a, b, strict=False)):
            yield from _differences(f"{path}[{position}]", left, right)
    elif is_dataclass(a):
        for field in fields(a):
            if field.name not in _PLACES:
                left, right = getattr(a, field.name), getattr(b, field.name)
                yield from _differences(f"{path}.{field.name}", left, right)
    elif a != b:
        yield f"{path}: {a!r} and {b!r}"
