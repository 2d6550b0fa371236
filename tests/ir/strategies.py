"""Random programs, built from the type hints of the model.

The programs make no sense, but every field takes every kind of value that its type allows.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from afl.ir.model import Enum, Facet, Program, Schedule, Schema, SourceSpan

#: For tests that draw whole programs, which is slow for its size.
many = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)

_DEPTH = 5

_SCALARS: dict[object, st.SearchStrategy[Any]] = {
    str: st.text(max_size=6),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    NoneType: st.none(),
}


@st.composite
def values(draw: st.DrawFn, hint: object, depth: int = _DEPTH) -> Any:  # noqa: ANN401
    """Values of a type, nested at most about `depth` deep."""
    return _drawn(draw, hint, depth)


def _drawn(draw: st.DrawFn, hint: object, depth: int) -> object:
    if hint in _SCALARS:
        return draw(_SCALARS[hint])
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return draw(st.sampled_from(arguments))
    if origin is tuple:
        most = 0 if depth <= 0 else 1 if depth <= 2 else 2
        count = draw(st.integers(0, most))
        return tuple(_drawn(draw, arguments[0], depth) for _ in range(count))
    if origin in (Union, UnionType):
        kinds = [kind for kind in arguments if depth > 0 or _is_leaf(kind)]
        return _drawn(draw, draw(st.sampled_from(kinds)), depth)
    assert isinstance(hint, type)
    hints = _hints(hint)
    return hint(**{name: _drawn(draw, hints[name], depth - 1) for name in hints})


_hints = cache(get_type_hints)


def _is_leaf(kind: object) -> bool:
    """Whether a value can be made without values of other classes."""
    if not dataclasses.is_dataclass(kind):
        return True
    return all(
        hint in _SCALARS or get_origin(hint) in (tuple, Literal) or NoneType in get_args(hint)
        for hint in get_type_hints(kind).values()
    )


def _declarations(kind: type) -> st.SearchStrategy[tuple[Any, ...]]:
    def by_name(found: list[Any]) -> tuple[Any, ...]:
        named = {each.name: each for each in found}
        return tuple(named[name] for name in sorted(named))

    return st.lists(values(kind), max_size=2).map(by_name)


def programs() -> st.SearchStrategy[Program]:
    """Programs with sorted declarations, spans and docs."""
    return st.builds(
        Program,
        facets=_declarations(Facet),
        schemas=_declarations(Schema),
        enums=_declarations(Enum),
        schedules=_declarations(Schedule),
        spans=st.dictionaries(st.text(max_size=6), values(SourceSpan), max_size=2),
        docs=st.dictionaries(st.text(max_size=6), st.text(max_size=6), max_size=2),
    )
