"""Which type fits where."""

from __future__ import annotations

from afl.ir.types import (
    DOUBLE,
    DURATION,
    INT,
    JSON,
    LONG,
    EnumRef,
    FacetRef,
    ListOf,
    MapOf,
    OptionalOf,
    Primitive,
    SchemaRef,
    Type,
    type_text,
)

#: The type of something that was already reported: it fits everywhere, without complaint.
UNKNOWN = Primitive("?")
#: The type of the word `null`.
NULL = Primitive("null")

_RANK: dict[Type, int] = {INT: 0, LONG: 1, DOUBLE: 2}


def is_numeric(type: Type) -> bool:
    return type in _RANK


def wider(left: Type, right: Type) -> Type:
    """The wider of two numeric types."""
    return left if _RANK[left] >= _RANK[right] else right


def bare(type: Type) -> Type:
    """The type without its `?`."""
    return type.of if isinstance(type, OptionalOf) else type


def optional(type: Type) -> Type:
    if isinstance(type, OptionalOf) or type in (JSON, UNKNOWN, NULL):
        return type
    return OptionalOf(type)


def may_be_null(type: Type) -> bool:
    return isinstance(type, OptionalOf) or type == NULL


def is_dynamic(type: Type) -> bool:
    """Json and what was already reported: checked at run time, or not at all."""
    return type in (JSON, UNKNOWN)


def fits(value: Type, target: Type) -> bool:
    """Whether a value of one type may stand where the other is wanted. Facets are the caller's
    business."""
    if value in (target, UNKNOWN) or target == UNKNOWN:
        return True
    if isinstance(value, FacetRef) or isinstance(target, FacetRef):
        return False
    if target == JSON or value == JSON:
        return True
    if isinstance(target, OptionalOf):
        return value == NULL or fits(bare(value), target.of)
    if may_be_null(value):
        return False
    if value in _RANK and target in _RANK:
        return _RANK[value] <= _RANK[target]
    if isinstance(value, ListOf) and isinstance(target, ListOf):
        return fits(value.of, target.of)
    if isinstance(value, MapOf) and isinstance(target, MapOf):
        return fits(value.of, target.of)
    return False


def join(left: Type, right: Type) -> Type | None:
    """The narrowest type that both fit, or None."""
    if left == right or right == UNKNOWN:
        return left
    if left == UNKNOWN:
        return right
    if left == NULL:
        return optional(right)
    if right == NULL:
        return optional(left)
    if isinstance(left, OptionalOf) or isinstance(right, OptionalOf):
        inner = join(bare(left), bare(right))
        return None if inner is None else optional(inner)
    if left == JSON or right == JSON:
        return JSON
    if is_numeric(left) and is_numeric(right):
        return wider(left, right)
    if isinstance(left, ListOf) and isinstance(right, ListOf):
        inner = join(left.of, right.of)
        return None if inner is None else ListOf(inner)
    if isinstance(left, MapOf) and isinstance(right, MapOf):
        inner = join(left.of, right.of)
        return None if inner is None else MapOf(inner)
    return None


def comparable(left: Type, right: Type) -> bool:
    """Whether two values can be equal at all."""
    left, right = bare(left), bare(right)
    if left == NULL or right == NULL:
        return True
    return join(left, right) is not None


def is_ordered(type: Type) -> bool:
    return type in _RANK or type in (Primitive("String"), DURATION) or is_dynamic(type)


def show(type: Type) -> str:
    """A type in a message: the last part of a long name is enough."""
    match type:
        case ListOf(of):
            return f"[{show(of)}]" if of != UNKNOWN else "[]"
        case MapOf(of):
            return f"{{String: {show(of)}}}" if of != UNKNOWN else "#{}"
        case OptionalOf(of):
            return f"{show(of)}?"
        case SchemaRef(name) | EnumRef(name) | FacetRef(name):
            return name.rpartition(".")[2]
        case _:
            return type_text(type)
