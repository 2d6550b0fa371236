"""What `$.x`, `step.x` and `error.x` mean. This is the one resolver: a run relies on what it
decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from afl.ir import model as ir
from afl.ir.types import JSON, STRING, FacetRef, ListOf, MapOf, OptionalOf, SchemaRef, Type
from afl.lang import tree
from afl.lang.checker.outline import find_step
from afl.lang.checker.scope import Context, RefKey, Scope, StepSymbol
from afl.lang.checker.symbols import EnumSymbol, FacetSymbol, SchemaSymbol
from afl.lang.checker.types import UNKNOWN, bare, is_dynamic, optional, show
from afl.lang.diagnostics.model import Label, Suggestion
from afl.lang.diagnostics.reporter import advise, replace
from afl.lang.diagnostics.suggest import nearest

Typed = tuple[ir.Expr, Type]
Source = Literal["return", "param", "mixin"]

BAD: Typed = (ir.Literal(None, None), UNKNOWN)

_ERROR_FIELDS = ("message", "type")


def ref_key(node: tree.Expr) -> RefKey | None:
    """The key under which a reference can be narrowed, or None for other expressions."""
    match node:
        case tree.Paren(inner=inner):
            return ref_key(inner)
        case tree.InputRef(path=path):
            return ("$", *(name.text for name in path))
        case tree.NameRef(path=path):
            return tuple(name.text for name in path)
        case _:
            return None


def check_input(context: Context, scope: Scope, node: tree.InputRef) -> Typed:
    """`$.name.path`"""
    if scope.constant:
        return _not_constant(context, scope, node, f"`$.{node.path[0].text}`")
    first = node.path[0]
    fields = tuple(name.text for name in node.path[1:])
    variable = scope.variables.get(first.text)
    type: Type
    if variable is not None:
        type = variable.type
        value: ir.Expr = ir.Variable(variable.clause, first.text, fields)
    else:
        found = _input_type(scope, first.text)
        if found is None:
            _report_unknown_input(context, scope, node)
            return BAD
        type = found
        value = ir.Input(first.text, fields)
    key: RefKey = ("$", first.text)
    return value, walk_fields(context, scope, type, key, node.path[1:], f"$.{first.text}")


def is_input(scope: Scope, name: str) -> bool:
    """Whether `$.name` means something."""
    return name in scope.variables or _input_type(scope, name) is not None


def _input_type(scope: Scope, name: str) -> Type | None:
    facet = scope.facet
    if facet is None:
        return None
    param = facet.params.get(name)
    if param is not None:
        return param.type
    aliases = facet.aliases()
    if name in aliases:
        mixin = aliases[name]
        return FacetRef(mixin.qname) if mixin is not None else UNKNOWN
    if name in facet.derived:
        return JSON
    return None


def _input_names(scope: Scope) -> set[str]:
    names = set(scope.variables)
    if scope.facet is not None:
        names |= {*scope.facet.params, *scope.facet.aliases(), *scope.facet.derived}
    return names


def _report_unknown_input(context: Context, scope: Scope, node: tree.InputRef) -> None:
    name = node.path[0]
    span = context.span(name)
    facet = scope.facet
    names = _input_names(scope)
    suggestions: list[Suggestion] = []
    guess = nearest(name.text, names)
    if scope.step(name.text) is not None:
        hint = f"steps are read without `$.`: `{name.text}`"
        suggestions.append(replace(context.span(node), _path_text(node.path), hint))
    elif name.text == "error" and scope.catch is not None:
        suggestions.append(
            replace(context.span(node), _path_text(node.path), "an error is read without `$.`")
        )
    elif guess:
        suggestions.append(replace(span, guess, f"did you mean `$.{guess}`?"))
    owner = f"`{facet.name}`" if facet is not None else "this declaration"
    notes = [f"inputs here: {', '.join(f'`$.{n}`' for n in sorted(names))}"] if names else []
    context.reporter.report(
        "AFL1012",
        span,
        f"{owner} has no input `{name.text}`",
        "unknown input",
        notes=notes,
        suggestions=suggestions,
    )


def check_name(context: Context, scope: Scope, node: tree.NameRef) -> Typed:
    """`step`, `step.name.path` or `error.name`. Enum members are the caller's business."""
    if scope.constant:
        return _not_constant(context, scope, node, f"`{node.path[0].text}`")
    first = node.path[0]
    step = scope.step(first.text)
    if step is None:
        if first.text == "error" and scope.catch is not None:
            return _check_error(context, scope, node)
        _report_unknown_step(context, scope, node)
        return BAD
    step.read = True
    where = scope.inside.get(step.id)
    if scope.current is step:
        context.reporter.report(
            "AFL1015",
            context.span(first),
            f"step `{step.name}` refers to itself",
            "itself",
            notes=[
                "a step starts when the steps it refers to are complete, so this one never would"
            ],
        )
        return BAD
    if where is None:
        context.need(step.id)
    return _check_step(context, scope, node, step, where)


def _check_step(
    context: Context, scope: Scope, node: tree.NameRef, step: StepSymbol, where: str | None
) -> Typed:
    callee = step.callee
    if callee is None:
        return ir.StepValue(step.id, "step", "", ()), UNKNOWN
    if len(node.path) == 1:
        if where is not None and _lacks_returns(callee, where):
            _report_early_return(context, step, node.path[0], where)
            return BAD
        whole: Type = (
            SchemaRef(callee.qname) if isinstance(callee, SchemaSymbol) else FacetRef(callee.qname)
        )
        return ir.StepValue(step.id, "step", "", ()), whole
    attribute = node.path[1]
    found = _attribute(callee, attribute.text)
    if attribute.text in step.aliases:
        mixin = step.aliases[attribute.text]
        found = "mixin", FacetRef(mixin.qname)
        if len(node.path) > 2 and node.path[2].text not in mixin.params:
            # only what the call hands over: a mixin of a call does not run
            _report_no_argument(context, mixin, node.path[2])
            return BAD
    if found is None:
        report_unknown_attribute(context, callee, attribute, f"step `{step.name}`")
        return BAD
    source, type = found
    if source == "return" and where is not None and not _available(callee, where):
        _report_early_return(context, step, attribute, where)
        return BAD
    if source == "return" and where is None and attribute.text in step.uncaught:
        type = optional(type)
    key: RefKey = (step.name, attribute.text)
    fields = node.path[2:]
    value = ir.StepValue(step.id, source, attribute.text, tuple(name.text for name in fields))
    return value, walk_fields(context, scope, type, key, fields, f"{step.name}.{attribute.text}")


def _available(callee: FacetSymbol | SchemaSymbol, where: str) -> bool:
    """In its own body an event facet's step has its handler's results; nothing else has any."""
    return where == "body" and isinstance(callee, FacetSymbol) and callee.kind == "event"


def _lacks_returns(callee: FacetSymbol | SchemaSymbol, where: str) -> bool:
    return (
        isinstance(callee, FacetSymbol) and bool(callee.returns) and not _available(callee, where)
    )


def _report_early_return(context: Context, step: StepSymbol, name: tree.Name, where: str) -> None:
    """`name` is the step itself or one of its returns."""
    shown = step.name if name.text == step.name else f"{step.name}.{name.text}"
    if where == "catch":
        message = f"`{shown}` does not exist here"
        note = f"`{step.name}` failed, or this catch would not run"
    else:
        message = f"`{shown}` does not exist yet"
        note = f"the returns of `{step.name}` are what this body yields"
    context.reporter.report("AFL3015", context.span(name), message, "no such result", notes=[note])


def _report_no_argument(context: Context, mixin: FacetSymbol, name: tree.Name) -> None:
    context.reporter.report(
        "AFL1013",
        context.span(name),
        f"the mixin `{mixin.name}` has no parameter `{name.text}`",
        "unknown attribute",
        notes=["a mixin of a call only hands over its arguments; it does not run"],
    )


def _attribute(callee: FacetSymbol | SchemaSymbol, name: str) -> tuple[Source, Type] | None:
    if isinstance(callee, SchemaSymbol):
        field = callee.fields.get(name)
        return None if field is None else ("return", field.type)
    if name in callee.returns:
        return "return", callee.returns[name].type
    if name in callee.params:
        return "param", callee.params[name].type
    aliases = callee.aliases()
    if name in aliases:
        mixin = aliases[name]
        return "mixin", FacetRef(mixin.qname) if mixin is not None else UNKNOWN
    return None


def report_unknown_attribute(
    context: Context, callee: FacetSymbol | SchemaSymbol, name: tree.Name, what: str
) -> None:
    names: list[str]
    if isinstance(callee, SchemaSymbol):
        names = list(callee.fields)
    else:
        names = [*callee.returns, *callee.params, *callee.aliases()]
    span = context.span(name)
    guess = nearest(name.text, names)
    suggestions = [replace(span, guess, f"did you mean `{guess}`?")] if guess else []
    known = ", ".join(f"`{n}`" for n in names) or "none"
    context.reporter.report(
        "AFL1013",
        span,
        f"{what} has no attribute `{name.text}`",
        "unknown attribute",
        secondary=[Label(callee.unit.span(callee.node.name), f"`{callee.name}` is declared here")],
        notes=[f"attributes of `{callee.name}`: {known}"],
        suggestions=suggestions,
    )


def walk_fields(
    context: Context,
    scope: Scope,
    type: Type,
    key: RefKey,
    fields: Sequence[tree.Name],
    shown: str,
) -> Type:
    """The type at the end of a path of fields that starts at a value of `type`."""
    if key in scope.narrowed:
        type = bare(type)
    for name in fields:
        if isinstance(type, OptionalOf):
            context.reporter.report(
                "AFL2005",
                context.span(name),
                f"`{shown}` may be null, so it has no field to read",
                f"`{shown}` is `{show(type)}`",
                suggestions=[advise(f"test it first: `case {shown} != null && ...`")],
            )
            return UNKNOWN
        type = field_type(context, type, name, shown)
        key = (*key, name.text)
        shown = f"{shown}.{name.text}"
        if key in scope.narrowed:
            type = bare(type)
    return type


def field_type(context: Context, type: Type, name: tree.Name, shown: str) -> Type:
    """The type of one field of a value; the value is known not to be null."""
    symbols = context.index.symbols
    if is_dynamic(type):
        return type
    if isinstance(type, MapOf):
        return type.of
    if isinstance(type, SchemaRef):
        schema = symbols[type.name]
        assert isinstance(schema, SchemaSymbol)  # a SchemaRef is made from one
        field = schema.fields.get(name.text)
        if field is not None:
            return field.type
        report_unknown_field(context, schema, name)
        return UNKNOWN
    if isinstance(type, FacetRef):
        facet = symbols[type.name]
        assert isinstance(facet, FacetSymbol)  # a FacetRef is made from one
        found = _attribute(facet, name.text)
        if found is not None:
            return found[1]
        report_unknown_attribute(context, facet, name, f"a step of `{facet.name}`")
        return UNKNOWN
    context.reporter.report(
        "AFL2010",
        context.span(name),
        f"`{shown}` is `{show(type)}`, which has no fields",
        "no such field",
        suggestions=[advise(f"read one element, `{shown}[0]`, or go through all with `foreach`")]
        if isinstance(type, ListOf)
        else [],
    )
    return UNKNOWN


def report_unknown_field(context: Context, schema: SchemaSymbol, name: tree.Name) -> None:
    span = context.span(name)
    guess = nearest(name.text, schema.fields)
    context.reporter.report(
        "AFL1014",
        span,
        f"schema `{schema.name}` has no field `{name.text}`",
        "unknown field",
        secondary=[Label(schema.unit.span(schema.node.name), f"`{schema.name}` is declared here")],
        notes=[f"fields: {', '.join(f'`{field}`' for field in schema.fields)}"]
        if schema.fields
        else [],
        suggestions=[replace(span, guess, f"did you mean `{guess}`?")] if guess else [],
    )


def _check_error(context: Context, scope: Scope, node: tree.NameRef) -> Typed:
    assert scope.catch is not None
    if len(node.path) == 1:
        return ir.ErrorValue(scope.catch, ""), JSON
    name = node.path[1]
    if name.text not in _ERROR_FIELDS or len(node.path) > 2:
        wrong = name if name.text not in _ERROR_FIELDS else node.path[2]
        context.reporter.report(
            "AFL1014",
            context.span(wrong),
            f"an error has no field `{wrong.text}`",
            "unknown field",
            notes=["an error has `error.type` and `error.message`, both Strings"],
        )
        return BAD
    return ir.ErrorValue(scope.catch, name.text), STRING


def report_unknown_step(
    context: Context, scope: Scope, name: tree.Name, meant: list[Suggestion] | None = None
) -> None:
    """A step that does not exist, or that cannot be seen. `meant` is what may be put instead."""
    span = context.span(name)
    declaration = context.declaration
    declared = find_step(declaration, name.text) if declaration is not None else None
    if declared is not None:
        context.reporter.report(
            "AFL1016",
            span,
            f"step `{name.text}` cannot be seen from here",
            "out of sight",
            secondary=[Label(context.span(declared), "it is declared here")],
            notes=[
                "a step sees the steps of its own block, of the blocks around it, and of the plain "
                "blocks of earlier clauses; not those inside a `foreach`, a `when`, a `catch` or "
                "another step's body"
            ],
        )
        return
    if meant is None:
        guess = nearest(name.text, scope.step_names())
        meant = [replace(span, guess, f"did you mean `{guess}`?")] if guess else []
    context.reporter.report(
        "AFL1011", span, f"there is no step `{name.text}`", "unknown step", suggestions=meant
    )


def _report_unknown_step(context: Context, scope: Scope, node: tree.NameRef) -> None:
    name = node.path[0]
    span = context.span(name)
    text = name.text
    if is_input(scope, text):
        context.reporter.report(
            "AFL1021",
            span,
            f"the input `{text}` is read as `$.{text}`",
            "`$.` is missing",
            suggestions=[replace(span, f"$.{text}", f"write `$.{text}`", safe=True)],
        )
    elif text == "error":
        context.reporter.report(
            "AFL3018",
            span,
            "there is no `error` here",
            "only a catch has one",
            suggestions=[advise("read `error.type` and `error.message` inside `catch { ... }`")],
        )
    else:
        report_unknown_step(context, scope, name, _meant_instead(context, scope, node))


def _meant_instead(context: Context, scope: Scope, node: tree.NameRef) -> list[Suggestion]:
    """What an unknown step may have been meant to be."""
    name = node.path[0]
    member = _enum_member(context, scope, node)
    if member:
        return member
    guess = nearest(name.text, scope.step_names())
    step = scope.step(guess) if guess is not None else None
    if step is not None:
        # so that nobody says its result is never read
        step.read = True
    else:
        found = nearest(name.text, _input_names(scope))
        guess = f"$.{found}" if found else None
    if guess is not None:
        return [replace(context.span(name), guess, f"did you mean `{guess}`?")]
    if any(isinstance(s, FacetSymbol) for s in context.index.candidates(scope.unit, name.text)):
        return [advise(f"`{name.text}` is a facet: name the step that calls it")]
    return []


def _enum_member(context: Context, scope: Scope, node: tree.NameRef) -> list[Suggestion]:
    """For a member that is written with the name of its enum."""
    enum = _path_text(node.path[:-1])
    if any(isinstance(s, EnumSymbol) for s in context.index.candidates(scope.unit, enum)):
        member = node.path[-1].text
        hint = f"members of an enum are written alone: `{member}`"
        return [replace(context.span(node), member, hint)]
    return []


def _path_text(path: Sequence[tree.Name]) -> str:
    return ".".join(name.text for name in path)


def _not_constant(context: Context, scope: Scope, node: tree.Expr, what: str) -> Typed:
    context.reporter.report(
        "AFL2014",
        context.span(node),
        f"{scope.constant} must be constant, and {what} is not",
        "not constant",
        suggestions=_enum_member(context, scope, node) if isinstance(node, tree.NameRef) else [],
    )
    return BAD
