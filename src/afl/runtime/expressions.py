"""Expressions of a program as functions of the scope that they are evaluated in.

An expression is compiled once, to closures, and evaluated for every step that needs it. What it
reads comes from a `Scope`. Whoever evaluates expressions with references compiles them with the
types of the program (`DeclaredTypes`): a Duration and a number are both integers in a run, and only
their types tell them apart, in `"took " ++ $.time` or in `$.time / 7 * 7`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from afl.ir import model as ir
from afl.ir.types import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    INT,
    JSON,
    LONG,
    FacetRef,
    ListOf,
    MapOf,
    SchemaRef,
    Type,
)
from afl.ir.values import Json
from afl.runtime.operators import (
    COMPARISONS,
    Binary,
    EvaluationError,
    arithmetic,
    bare,
    described,
    invert,
    joining,
    listed,
    negate,
    quoted,
)

__all__ = [
    "Compiled",
    "DeclaredTypes",
    "EvaluationError",
    "Scope",
    "TypeOf",
    "compile_expr",
    "constant",
]


class Scope(Protocol):
    """The values that an expression can refer to."""

    def input(self, name: str) -> Json:
        """A parameter of the declaration, or a mixin of its signature."""
        ...

    def variable(self, clause: str, name: str) -> Json:
        """The element of that foreach clause."""
        ...

    def step(self, ref: ir.StepValue) -> Json:
        """What a step has under the name of `ref`, before its path is applied."""
        ...

    def error(self, ref: ir.ErrorValue) -> Json:
        """The field of the caught error, or all of it."""
        ...


Compiled = Callable[[Scope], Json]
#: The static type of an expression, None if it is not known.
TypeOf = Callable[[ir.Expr], Type | None]


def constant(expr: ir.Expr) -> Json:
    """The value of an expression without references, such as a default.

    Raises:
        EvaluationError: it has no value, or is not constant.
    """
    return compile_expr(expr)(_NOTHING)


def compile_expr(expr: ir.Expr, type_of: TypeOf | None = None) -> Compiled:
    """The function that evaluates an expression. It raises `EvaluationError` if there is no value.

    Without `type_of`, a reference to a Duration is taken for a number.
    """
    return _compile(expr, type_of or _UNTYPED)


def _compile(expr: ir.Expr, type_of: TypeOf) -> Compiled:
    match expr:
        case ir.Literal(value):
            return lambda scope: value
        case ir.Input(name, path):
            return _reading(lambda scope: scope.input(name), path, f"$.{name}")
        case ir.Variable(clause, name, path):
            return _reading(lambda scope: scope.variable(clause, name), path, f"$.{name}")
        case ir.StepValue(step, _, name, path):
            shown = f"{step.rpartition('/')[2]}{'.' if name else ''}{name}"
            return _reading(lambda scope: scope.step(expr), path, shown)
        case ir.ErrorValue():
            return lambda scope: scope.error(expr)
        case ir.ListExpr(items):
            elements = [_compile(item, type_of) for item in items]
            return lambda scope: [element(scope) for element in elements]
        case ir.MapExpr(entries):
            values = [(entry.key, _compile(entry.value, type_of)) for entry in entries]
            return lambda scope: {key: value(scope) for key, value in values}
        case ir.UnaryExpr(op, operand):
            apply, inner = (negate if op == "-" else invert), _compile(operand, type_of)
            return lambda scope: apply(inner(scope))
        case ir.ChainExpr():
            return _compile_chain(expr, type_of)
        case ir.CompareExpr(op, left, right):
            return _applying(COMPARISONS[op], _compile(left, type_of), right, type_of)
        case ir.PostfixExpr():
            return _compile_postfix(expr, type_of)


# Reading


def _reading(start: Compiled, path: tuple[str, ...], shown: str) -> Compiled:
    """Reads the fields of the path, one after the other."""
    if not path:
        return start

    def read(scope: Scope) -> Json:
        value = start(scope)
        for position, name in enumerate(path):
            try:
                value = value[name]  # type: ignore[index,call-overload]  # what has no fields raises
            except (KeyError, TypeError):
                place = ".".join((shown, *path[:position]))
                raise _no_field(value, name, f"`{place}`") from None
        return value

    return read


def _compile_postfix(expr: ir.PostfixExpr, type_of: TypeOf) -> Compiled:
    base = _compile(expr.base, type_of)
    for accessor in expr.accessors:
        if isinstance(accessor, ir.FieldOf):
            base = _field_of(base, accessor.name)
        else:
            base = _applying(_element, base, accessor.index, type_of)
    return base


def _field_of(base: Compiled, name: str) -> Compiled:
    def read(scope: Scope) -> Json:
        value = base(scope)
        if isinstance(value, dict) and name in value:
            return value[name]
        raise _no_field(value, name, "the value" if isinstance(value, dict) else described(value))

    return read


def _no_field(value: Json, name: str, place: str) -> EvaluationError:
    if isinstance(value, dict):
        known = f"it has {listed(list(value))}" if value else "it is empty"
        return EvaluationError(f"the field `{name}` is missing from {place}; {known}")
    if place.startswith("`"):
        place = f"{place}, which is {described(value)}"
    return EvaluationError(f"cannot read the field `{name}` of {place}")


def _element(value: Json, index: Json) -> Json:
    if isinstance(value, list):
        if type(index) is not int:
            raise EvaluationError(f"a list is indexed by an Int, not {described(index)}")
        if index < 0:
            raise EvaluationError(f"index {index} is negative; the first element has the index 0")
        if index >= len(value):
            raise EvaluationError(f"index {index} is past the end of a list of {len(value)}")
        return value[index]
    if isinstance(value, dict):
        if not isinstance(index, str):
            raise EvaluationError(f"a map is indexed by a String, not {described(index)}")
        if index not in value:
            raise EvaluationError(f"the key {quoted(index)} is missing from the map")
        return value[index]
    raise EvaluationError(f"only lists and maps have an index, and this is {described(value)}")


# Chains


def _applying(apply: Binary, left: Compiled, right: ir.Expr, type_of: TypeOf) -> Compiled:
    """An operator with its operands. A literal on the right is not called for its value."""
    if isinstance(right, ir.Literal):
        value = right.value
        return lambda scope: apply(left(scope), value)
    operand = _compile(right, type_of)
    return lambda scope: apply(left(scope), operand(scope))


def _compile_chain(expr: ir.ChainExpr, type_of: TypeOf) -> Compiled:
    op = expr.rest[0].op
    if op in ("&&", "||", "??"):
        operands = [_compile(expr.first, type_of)]
        operands += [_compile(link.operand, type_of) for link in expr.rest]
        return _first_not_null(operands, expr.type) if op == "??" else _deciding(op, operands)
    first = _compile(expr.first, type_of)
    operators = _operators(expr, type_of)
    if len(operators) == 1:
        return _applying(operators[0], first, expr.rest[0].operand, type_of)
    links = [
        (apply, _compile(link.operand, type_of))
        for apply, link in zip(operators, expr.rest, strict=True)
    ]

    def fold(scope: Scope) -> Json:
        result = first(scope)
        for apply, operand in links:
            result = apply(result, operand(scope))
        return result

    return fold


def _operators(expr: ir.ChainExpr, type_of: TypeOf) -> list[Binary]:
    """The operator of each link, made for the types of its operands."""
    made: list[Binary] = []
    left = bare(type_of(expr.first))
    for link in expr.rest:
        right = bare(type_of(link.operand))
        last = len(made) == len(expr.rest) - 1
        if link.op == "++":
            made.append(joining(left, right))
            left = None  # a String or a list by now, which its value tells
        else:
            whole = _is_duration(link.op, left, right) or (last and expr.type == DURATION)
            made.append(arithmetic(link.op, expr.type, whole=whole, last=last))
            left = DURATION if whole else None
    return made


def _is_duration(op: str, left: Type | None, right: Type | None) -> bool:
    """Whether an operator gives a Duration. What `Json` holds decides, where it is divided by."""
    if op == "/":
        return left == DURATION and right in (INT, LONG, DOUBLE)
    return DURATION in (left, right)


def _deciding(op: str, operands: list[Compiled]) -> Compiled:
    """`&&` and `||`: operands after the one that decides are not looked at."""
    decides = op == "||"

    def decide(scope: Scope) -> Json:
        for operand in operands:
            value = operand(scope)
            if value is decides:
                return decides
            if type(value) is not bool:
                raise EvaluationError(f"`{op}` takes Booleans, not {described(value)}")
        return not decides

    return decide


def _first_not_null(operands: list[Compiled], chain: Type) -> Compiled:
    """`??`: the first operand that is not null."""

    def choose(scope: Scope) -> Json:
        value = None
        for operand in operands:
            value = operand(scope)
            if value is not None:
                break
        return value

    def choose_double(scope: Scope) -> Json:
        value = choose(scope)
        return float(value) if type(value) is int else value

    return choose_double if bare(chain) == DOUBLE else choose


# Constants


class _Nothing:
    """The scope of a constant."""

    def input(self, name: str) -> Json:
        raise self._refusal(f"$.{name}")

    def variable(self, clause: str, name: str) -> Json:
        raise self._refusal(f"$.{name}")

    def step(self, ref: ir.StepValue) -> Json:
        raise self._refusal(ref.step.rpartition("/")[2])

    def error(self, ref: ir.ErrorValue) -> Json:
        raise self._refusal("error")

    def _refusal(self, shown: str) -> EvaluationError:
        return EvaluationError(f"a constant cannot read `{shown}`")


_NOTHING = _Nothing()


# Static types


class DeclaredTypes:
    """The static types of the expressions of one program, from what its declarations say."""

    def __init__(self, program: ir.Program) -> None:
        self._facets = {facet.name: facet for facet in program.facets}
        self._fields = {schema.name: schema.fields for schema in program.schemas}
        self._steps: dict[str, ir.Step] = {}
        self._loops: dict[str, ir.Foreach] = {}
        for facet in program.facets:
            self._index(facet.clauses, facet.catch)

    def within(self, declaration: str) -> TypeOf:
        """The types of expressions that are written in the declaration with that name."""
        return lambda expr: self._type(expr, declaration)

    def _index(self, clauses: tuple[ir.Clause, ...], catch: ir.Catch | None) -> None:
        bodies = [clause.body for clause in clauses]
        bodies += [part.body for part in (catch, *(clause.catch for clause in clauses)) if part]
        for clause in clauses:
            if clause.foreach is not None:
                self._loops[clause.id] = clause.foreach
        for body in bodies:
            blocks = [case.block for case in body.cases] if isinstance(body, ir.When) else [body]
            for block in blocks:
                for statement in block.statements if isinstance(block, ir.Block) else ():
                    if isinstance(statement, ir.Step):
                        self._steps[statement.id] = statement
                        self._index(statement.clauses, statement.catch)

    def _type(self, expr: ir.Expr, declaration: str) -> Type | None:
        match expr:
            case ir.Literal(_, type) | ir.ChainExpr(_, _, type):
                return type
            case ir.Input(name, path):
                return self._fields_of(self._input(declaration, name), path)
            case ir.Variable(clause, _, path):
                loop = self._loops.get(clause)
                of = self._type(loop.iterable, declaration) if loop else None
                return self._fields_of(_item(of), path)
            case ir.StepValue(_, _, _, path):
                return self._fields_of(self._step(expr), path)
            case ir.UnaryExpr("-", operand):
                return self._type(operand, declaration)
            case ir.UnaryExpr() | ir.CompareExpr():
                return BOOLEAN
            case ir.ListExpr(items):
                inner = self._type(items[0], declaration) if items else None
                return ListOf(inner) if inner else None
            case ir.PostfixExpr(base, accessors):
                of = self._type(base, declaration)
                for accessor in accessors:
                    if isinstance(accessor, ir.FieldOf):
                        of = self._field(of, accessor.name)
                    else:
                        of = _item(of)
                return of
            case _:
                return JSON

    def _step(self, ref: ir.StepValue) -> Type | None:
        step = self._steps.get(ref.step)
        if step is None:
            return None
        if ref.source == "mixin":
            for mixin in step.mixins:
                if mixin.alias == ref.name:
                    return FacetRef(mixin.facet)
        whole = SchemaRef(step.facet) if step.kind == "schema" else FacetRef(step.facet)
        return self._field(whole, ref.name) if ref.name else whole

    def _fields_of(self, of: Type | None, path: tuple[str, ...]) -> Type | None:
        for name in path:
            of = self._field(of, name)
        return of

    def _field(self, of: Type | None, name: str) -> Type | None:
        match bare(of):
            case SchemaRef(schema):
                return _named(self._fields.get(schema, ()), name)
            case FacetRef(facet):
                return self._attribute(facet, name)
            case other:
                return _item(other)

    def _attribute(self, facet_name: str, name: str) -> Type | None:
        """A return of the facet; if there is none of that name, a parameter; then a mixin."""
        facet = self._facets.get(facet_name)
        returned = _named(facet.returns, name) if facet else None
        return returned or self._input(facet_name, name)

    def _input(self, facet_name: str, name: str) -> Type | None:
        facet = self._facets.get(facet_name)
        if facet is None:
            return None
        for mixin in facet.mixins:
            if mixin.alias == name:
                return FacetRef(mixin.facet)
        return _named(facet.params, name)


def _named(params: tuple[ir.Param, ...], name: str) -> Type | None:
    return next((param.type for param in params if param.name == name), None)


def _item(of: Type | None) -> Type | None:
    """The type of what is in a list, a map or Json."""
    of = bare(of)
    return of.of if isinstance(of, ListOf | MapOf) else JSON if of == JSON else None


_UNTYPED = DeclaredTypes(ir.Program((), (), (), ())).within("")
