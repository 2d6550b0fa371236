"""Parts of a compiled program as AFL text, for people to read."""

from __future__ import annotations

import json
from collections.abc import Iterator

from afl.base.durations import format_duration
from afl.ir import model as ir
from afl.ir.types import (
    DURATION,
    EnumRef,
    FacetRef,
    ListOf,
    MapOf,
    OptionalOf,
    Primitive,
    SchemaRef,
    Type,
)

_LEVELS = {"||": 1, "&&": 2, "??": 4, "++": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7}
_COMPARISON = 3
_UNARY = 8
_ATOM = 9

#: A declaration that a type refers to.
Reference = SchemaRef | EnumRef | FacetRef


def type_parts(type: Type) -> Iterator[str | Reference]:
    """A type as texts and references, in the order in which they are written."""
    match type:
        case Primitive(name):
            yield name
        case ListOf(of):
            yield from ("[", *type_parts(of), "]")
        case MapOf(of):
            yield from ("{String: ", *type_parts(of), "}")
        case OptionalOf(of):
            yield from (*type_parts(of), "?")
        case SchemaRef() | EnumRef() | FacetRef():
            yield type


def type_text(type: Type, namespace: str = "") -> str:
    """A type as it is written inside a namespace: its own names are short there."""
    return "".join(
        part if isinstance(part, str) else short_name(part.name, namespace)
        for part in type_parts(type)
    )


def short_name(name: str, namespace: str) -> str:
    """A full name as it is written inside a namespace."""
    parent, _, last = name.rpartition(".")
    return last if parent == namespace else name


def namespace_of(name: str) -> str:
    """The namespace of a declaration."""
    return name.rpartition(".")[0]


def step_name(id: str) -> str:
    """What a program calls the statement with that id."""
    return id.rpartition("/")[2]


def expression_text(expression: ir.Expr, namespace: str = "") -> str:
    """An expression with as few parentheses as it needs."""
    return _Writer(namespace).text(expression)[0]


def call_text(name: str, args: tuple[ir.Argument, ...], namespace: str = "") -> str:
    """A call with the arguments that were written there."""
    written = [
        f"{arg.name} = {expression_text(arg.value, namespace)}"
        for arg in args
        if arg.origin == "call"
    ]
    return f"{short_name(name, namespace)}({', '.join(written)})"


def params_text(params: tuple[ir.Param, ...], namespace: str = "") -> str:
    """Parameters, returns or fields, with commas between them."""
    return ", ".join(_param_text(param, namespace) for param in params)


def signature_text(facet: ir.Facet) -> str:
    """A facet up to its body, as one line."""
    namespace, _, name = facet.name.rpartition(".")
    word = {"facet": "facet", "event": "event facet", "workflow": "workflow"}[facet.kind]
    parts = [f"{word} {name}({params_text(facet.params, namespace)})"]
    if facet.returns:
        parts.append(f"=> ({params_text(facet.returns, namespace)})")
    for policy in facet.policies:
        parts.append(f"with {call_text(policy.name, policy.args, namespace)}")
    for mixin in facet.mixins:
        alias = f" as {mixin.alias}" if mixin.alias else ""
        parts.append(f"with {call_text(mixin.facet, mixin.args, namespace)}{alias}")
    return " ".join(parts)


def schedule_text(schedule: ir.Schedule) -> str:
    """A schedule as one line."""
    namespace, _, name = schedule.name.rpartition(".")
    call = call_text(schedule.workflow, schedule.args, namespace)
    parts = [f"schedule {name} = {call}", when_text(schedule)]
    if schedule.zone != "UTC":
        parts.append(f"zone {_quoted(schedule.zone)}")
    for word, moment in (("start", schedule.start), ("end", schedule.end)):
        if moment is not None:
            parts.append(f"{word} {_quoted(moment)}")
    if schedule.jitter_ms is not None:
        parts.append(f"jitter {format_duration(schedule.jitter_ms)}")
    if schedule.overlap != ir.DEFAULT_OVERLAP:
        parts.append(f"overlap {schedule.overlap}")
    if schedule.catch_up != ir.DEFAULT_CATCH_UP:
        parts.append(f"catch_up {schedule.catch_up}")
    return " ".join(parts)


def when_text(schedule: ir.Schedule) -> str:
    """When a schedule starts its workflow."""
    if schedule.every_ms is not None:
        return f"every {format_duration(schedule.every_ms)}"
    if schedule.at is not None:
        return f"at {_quoted(schedule.at)}"
    return f"cron {_quoted(schedule.cron or '')}"


def _param_text(param: ir.Param, namespace: str) -> str:
    text = f"{param.name}: {type_text(param.type, namespace)}"
    if param.default is not None:
        text += f" = {expression_text(param.default, namespace)}"
    return text


def _quoted(text: str) -> str:
    # the escapes of JSON are among those of AFL
    return json.dumps(text, ensure_ascii=False)


class _Writer:
    """Expressions to text, each with the level of its weakest operator."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    def text(self, expression: ir.Expr) -> tuple[str, int]:
        match expression:
            case ir.Literal():
                return self._literal(expression)
            case ir.Input(name, path) | ir.Variable(_, name, path):
                return ".".join(["$", name, *path]), _ATOM
            case ir.StepValue(step, _, name, path):
                return ".".join([step_name(step), *([name] if name else []), *path]), _ATOM
            case ir.ErrorValue(_, field):
                return f"error.{field}" if field else "error", _ATOM
            case ir.ListExpr(items):
                return f"[{', '.join(self.text(item)[0] for item in items)}]", _ATOM
            case ir.MapExpr(items):
                return f"#{{{', '.join(self._item(item) for item in items)}}}", _ATOM
            case ir.UnaryExpr(op, operand):
                return f"{op}{self._inside(operand, _UNARY)}", _UNARY
            case ir.ChainExpr(first, rest, _):
                return self._chain(first, rest)
            case ir.CompareExpr(op, left, right):
                left_text = self._inside(left, _COMPARISON + 1)
                return f"{left_text} {op} {self._inside(right, _COMPARISON + 1)}", _COMPARISON
            case ir.PostfixExpr(base, accessors):
                return self._inside(base, _ATOM) + self._accessors(accessors), _ATOM

    def _inside(self, expression: ir.Expr, level: int) -> str:
        text, own = self.text(expression)
        return text if own >= level else f"({text})"

    def _chain(self, first: ir.Expr, rest: tuple[ir.Link, ...]) -> tuple[str, int]:
        level = _LEVELS[rest[0].op]
        parts = [self._inside(first, level + 1)]
        parts += [f"{link.op} {self._inside(link.operand, level + 1)}" for link in rest]
        return " ".join(parts), level

    def _accessors(self, accessors: tuple[ir.FieldOf | ir.IndexOf, ...]) -> str:
        return "".join(
            f".{accessor.name}"
            if isinstance(accessor, ir.FieldOf)
            else f"[{self.text(accessor.index)[0]}]"
            for accessor in accessors
        )

    def _item(self, item: ir.MapItem) -> str:
        key = item.key if item.key.isidentifier() and item.key.isascii() else _quoted(item.key)
        return f"{key}: {self.text(item.value)[0]}"

    def _literal(self, literal: ir.Literal) -> tuple[str, int]:
        value = literal.value
        if value is None:
            return "null", _ATOM
        if isinstance(value, bool):
            return ("true" if value else "false"), _ATOM
        if isinstance(value, str):
            if isinstance(literal.type, EnumRef):
                return value, _ATOM
            if literal.type is None:
                # only the name of a facet is a text without a type
                return short_name(value, self._namespace), _ATOM
            return _quoted(value), _ATOM
        level = _UNARY if value < 0 else _ATOM
        if literal.type == DURATION and isinstance(value, int) and value >= 0:
            return format_duration(value), _ATOM
        return repr(value), level
