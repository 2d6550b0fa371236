"""Expressions: their types, and their compiled form."""

from __future__ import annotations

from afl.ir import model as ir
from afl.ir.types import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    INT,
    JSON,
    LONG,
    STRING,
    EnumRef,
    FacetRef,
    ListOf,
    MapOf,
    OptionalOf,
    SchemaRef,
    Type,
)
from afl.lang import tree
from afl.lang.checker import operators
from afl.lang.checker.constants import Impossible, NotConstant, evaluate
from afl.lang.checker.facts import facts
from afl.lang.checker.mismatch import report_mismatch, report_whole_step
from afl.lang.checker.references import (
    BAD,
    Typed,
    check_input,
    check_name,
    field_type,
    is_input,
    report_unknown_field,
)
from afl.lang.checker.scope import Context, Scope
from afl.lang.checker.symbols import EnumSymbol, FacetSymbol, SchemaSymbol
from afl.lang.checker.types import (
    NULL,
    UNKNOWN,
    bare,
    fits,
    is_dynamic,
    is_numeric,
    join,
    may_be_null,
    show,
)
from afl.lang.diagnostics.model import Label
from afl.lang.diagnostics.reporter import advise, replace
from afl.lang.diagnostics.suggest import nearest
from afl.lang.source import Source

_MAX_INT = 2**31 - 1
#: Characters of a long chain of fields and indices that a message repeats.
_MOST_SHOWN = 60


def check_value(
    context: Context,
    scope: Scope,
    node: tree.Expr,
    target: Type,
    what: str,
    declared: Label | None = None,
) -> Typed:
    """An expression that must fit a type. `what` names the place it goes to, for the complaint."""
    value, type = check_expr(context, scope, node, target)
    if not _accepts(context, type, target):
        report_mismatch(context, node, type, target, what, declared)
        return value, UNKNOWN
    if isinstance(target, FacetRef):
        _check_whole(context, scope, node)
    if scope.constant:
        check_constant(context, node, value)
    return value, type


def check_constant(context: Context, node: tree.Expr, value: ir.Expr) -> None:
    """Reports a constant that cannot be computed."""
    try:
        evaluate(value)
    except NotConstant:
        pass
    except Impossible as error:
        context.reporter.report(
            "AFL2023",
            context.span(node),
            f"this constant cannot be computed: {error}",
            str(error),
        )


def _accepts(context: Context, value: Type, target: Type) -> bool:
    if isinstance(value, FacetRef) and isinstance(target, FacetRef):
        given, wanted = context.index.symbols[value.name], context.index.symbols[target.name]
        assert isinstance(given, FacetSymbol)  # a FacetRef is made from one
        assert isinstance(wanted, FacetSymbol)
        return given is wanted or (given.mixes_in(wanted) and _covers(given, wanted))
    return fits(value, target)


def _covers(given: FacetSymbol, wanted: FacetSymbol) -> bool:
    """Whether a step of one facet has everything that can be read from a step of the other."""
    attributes = given.attributes()
    return all(
        name in attributes and fits(attributes[name], type)
        for name, type in wanted.attributes().items()
    )


def _check_whole(context: Context, scope: Scope, node: tree.Expr) -> None:
    """A step that is handed over must have its returns, also when its catch ran."""
    step = scope.step(node.path[0].text) if isinstance(node, tree.NameRef) else None
    if step is not None and step.uncaught:
        names = ", ".join(f"`{name}`" for name in sorted(step.uncaught))
        context.reporter.report(
            "AFL2005",
            context.span(node),
            f"step `{step.name}` may come without {names}, which its catch does not yield",
            "handed over whole",
            secondary=[Label(context.span(step.node.name), "caught here")],
            suggestions=[advise("yield the missing returns in the catch")],
        )


def check_condition(context: Context, scope: Scope, node: tree.Expr) -> ir.Expr:
    """An expression that must be a Boolean."""
    value, type = check_expr(context, scope, node, BOOLEAN)
    if isinstance(type, FacetRef):
        report_whole_step(
            context, node, type, "a condition must be a Boolean, and this is a whole step", BOOLEAN
        )
    elif type == OptionalOf(BOOLEAN):
        report_mismatch(context, node, type, BOOLEAN, "a condition")
    elif not fits(type, BOOLEAN):
        context.reporter.report(
            "AFL2007",
            context.span(node),
            f"a condition must be a Boolean, not `{show(type)}`",
            f"this is `{show(type)}`",
        )
    return value


def check_expr(
    context: Context, scope: Scope, node: tree.Expr, expected: Type | None = None
) -> Typed:
    """An expression and its type. `expected` decides what a bare name or a literal may mean."""
    match node:
        case tree.InputRef():
            return check_input(context, scope, node)
        case tree.NameRef():
            return _check_name(context, scope, node, expected)
        case tree.StringLit(value=text):
            return ir.Literal(text, STRING), STRING
        case tree.IntLit(value=number):
            integer = INT if number <= _MAX_INT else LONG
            return ir.Literal(number, integer), integer
        case tree.DoubleLit(value=number):
            return ir.Literal(number, DOUBLE), DOUBLE
        case tree.DurationLit(ms=ms):
            return ir.Literal(ms, DURATION), DURATION
        case tree.BoolLit(value=truth):
            return ir.Literal(truth, BOOLEAN), BOOLEAN
        case tree.NullLit():
            return ir.Literal(None, None), NULL
        case tree.Paren(inner=inner):
            return check_expr(context, scope, inner, expected)
        case tree.ListLit():
            return _check_list(context, scope, node, expected)
        case tree.MapLit():
            return _check_map(context, scope, node, expected)
        case tree.Unary():
            return _check_unary(context, scope, node)
        case tree.Chain():
            return _check_chain(context, scope, node, expected)
        case tree.Compare():
            return _check_compare(context, scope, node)
        case tree.Postfix():
            return _check_postfix(context, scope, node)
        case tree.BadExpr():
            return BAD


def _check_name(context: Context, scope: Scope, node: tree.NameRef, expected: Type | None) -> Typed:
    target = bare(expected) if expected is not None else None
    if isinstance(target, EnumRef) and len(node.path) == 1:
        enum = context.index.symbols[target.name]
        assert isinstance(enum, EnumSymbol)  # an EnumRef is made from one
        text = node.path[0].text
        if text in enum.members:
            return ir.Literal(text, target), target
        if scope.constant or not _is_known(scope, text):
            _report_unknown_member(context, enum, node.path[0])
            return BAD
    if target == UNKNOWN and len(node.path) == 1 and not _is_known(scope, node.path[0].text):
        # it may be a member of an enum whose name was not understood, which is reported already
        return BAD
    return check_name(context, scope, node)


def _is_known(scope: Scope, name: str) -> bool:
    return scope.step(name) is not None or is_input(scope, name)


def _report_unknown_member(context: Context, enum: EnumSymbol, name: tree.Name) -> None:
    span = context.span(name)
    guess = nearest(name.text, enum.members)
    context.reporter.report(
        "AFL1019",
        span,
        f"enum `{enum.name}` has no member `{name.text}`",
        "unknown member",
        notes=[f"members: {', '.join(f'`{member}`' for member in enum.members)}"]
        if enum.members
        else [],
        suggestions=[replace(span, guess, f"did you mean `{guess}`?")] if guess else [],
    )


def _check_list(context: Context, scope: Scope, node: tree.ListLit, expected: Type | None) -> Typed:
    target = bare(expected) if expected is not None else None
    wanted = target.of if isinstance(target, ListOf) else target if target == JSON else None
    items = []
    element: Type = UNKNOWN
    for item in node.items:
        value, type = check_expr(context, scope, item, wanted)
        items.append(value)
        if isinstance(type, FacetRef) or (wanted is not None and not fits(type, wanted)):
            report_mismatch(context, item, type, wanted or JSON, "this list")
            continue
        joined = join(element, type) or wanted
        if joined is None:
            _report_mixed(context, item, element, type)
            continue
        element = joined
    return ir.ListExpr(tuple(items)), ListOf(element)


def _report_mixed(context: Context, item: tree.Expr, before: Type, type: Type) -> None:
    context.reporter.report(
        "AFL2012",
        context.span(item),
        f"this list holds `{show(before)}`, and this element is `{show(type)}`",
        f"this is `{show(type)}`",
        suggestions=[advise("lists of mixed types fit only where `Json` is wanted")],
    )


def _check_map(context: Context, scope: Scope, node: tree.MapLit, expected: Type | None) -> Typed:
    target = bare(expected) if expected is not None else None
    _report_double_keys(context, node)
    if isinstance(target, SchemaRef):
        return _check_schema_value(context, scope, node, target)
    wanted = target.of if isinstance(target, MapOf) else target if target == JSON else None
    items = []
    element: Type = UNKNOWN
    for entry in node.entries:
        value, type = check_expr(context, scope, entry.value, wanted)
        items.append(ir.MapItem(entry.key, value))
        if isinstance(type, FacetRef) or (wanted is not None and not fits(type, wanted)):
            report_mismatch(context, entry.value, type, wanted or JSON, f"the key `{entry.key}`")
            continue
        joined = join(element, type)
        element = JSON if joined is None else joined
    return ir.MapExpr(tuple(items)), MapOf(element)


def _report_double_keys(context: Context, node: tree.MapLit) -> None:
    seen: dict[str, tree.MapEntry] = {}
    for entry in node.entries:
        if entry.key in seen:
            first = seen[entry.key]
            context.reporter.report(
                "AFL2013",
                context.unit.source.span(entry.start, entry.key_end),
                f"the key `{entry.key}` is given twice",
                "second one",
                secondary=[
                    Label(context.unit.source.span(first.start, first.key_end), "first one")
                ],
            )
        else:
            seen[entry.key] = entry


def _check_schema_value(
    context: Context, scope: Scope, node: tree.MapLit, target: SchemaRef
) -> Typed:
    """A map literal where a schema is wanted: its keys are the schema's fields."""
    schema = context.index.symbols[target.name]
    assert isinstance(schema, SchemaSymbol)  # a SchemaRef is made from one
    items = []
    for entry in node.entries:
        field = schema.fields.get(entry.key)
        if field is None:
            report_unknown_field(context, schema, tree.Name(entry.start, entry.key_end, entry.key))
            check_expr(context, scope, entry.value, UNKNOWN)
            continue
        value, _ = check_value(
            context, scope, entry.value, field.type, f"field `{entry.key}` of `{schema.name}`"
        )
        items.append(ir.MapItem(entry.key, value))
    given = {entry.key for entry in node.entries}
    # a misspelt key was reported; the field it was meant for is not missing
    given |= {nearest(key, schema.fields) or "" for key in given - schema.fields.keys()}
    missing = [
        name
        for name, field in schema.fields.items()
        if name not in given and not field.has_default and not may_be_null(field.type)
    ]
    if missing:
        context.reporter.report(
            "AFL2002",
            context.span(node),
            f"`{schema.name}` needs the {_listed('field', missing)}",
            f"{_listed('field', missing)} missing",
            secondary=[Label(schema.unit.span(schema.node.name), "declared here")],
        )
    return ir.MapExpr(tuple(items)), target


def _listed(noun: str, names: list[str]) -> str:
    quoted = ", ".join(f"`{name}`" for name in names)
    return f"{noun}{'s' if len(names) > 1 else ''} {quoted}"


def _check_unary(context: Context, scope: Scope, node: tree.Unary) -> Typed:
    value, type = check_expr(context, scope, node.operand, BOOLEAN if node.op == "!" else None)
    literal = value.value if isinstance(value, ir.Literal) else None
    if node.op == "-" and is_numeric(type) and isinstance(literal, int | float) and literal > 0:
        # a negative number is one literal, so that the smallest Long can be written
        narrow = INT if type == LONG and literal == _MAX_INT + 1 else type
        return ir.Literal(-literal, narrow), narrow
    result = operators.unary(context, node, type)
    return ir.UnaryExpr("-" if node.op == "-" else "!", value), result


def _check_chain(context: Context, scope: Scope, node: tree.Chain, expected: Type | None) -> Typed:
    op = node.rest[0].op
    if op == "??":
        return _check_coalesce(context, scope, node, expected)
    wanted = BOOLEAN if op in ("&&", "||") else expected if op == "++" else None
    first, type = check_expr(context, scope, node.first, wanted)
    rest = []
    place = scope
    before = node.first
    for link in node.rest:
        if op in ("&&", "||"):
            # what follows `&&` runs when the left is true, what follows `||` when it is false
            place = place.with_facts(facts(before)[0 if op == "&&" else 1])
            before = link.operand
        value, right = check_expr(context, place, link.operand, wanted)
        type = operators.binary(context, node, link, type, right)
        rest.append(ir.Link(link.op, value))
    return ir.ChainExpr(first, tuple(rest), _stored(type)), type


def _stored(type: Type) -> Type:
    """The type that a compiled chain carries; what was reported never gets that far."""
    return JSON if type == UNKNOWN else type


def _check_coalesce(
    context: Context, scope: Scope, node: tree.Chain, expected: Type | None
) -> Typed:
    first, type = check_expr(context, scope, node.first, expected)
    rest = []
    previous = node.first
    for link in node.rest:
        wanted = _hint(type) or expected or (type if type == UNKNOWN else None)
        value, right = check_expr(context, scope, link.operand, wanted)
        if not may_be_null(type) and not is_dynamic(type):
            span = context.unit.source.span(previous.end, link.operand.end)
            context.reporter.report(
                "AFL2021",
                context.span(previous),
                f"this is `{show(type)}`, which is never null, so the default is never used",
                "never null",
                suggestions=[replace(span, "", "remove the default")],
            )
        joined = join(bare(type) if type != NULL else UNKNOWN, right)
        if joined is None:
            context.reporter.report(
                "AFL2006",
                context.span(link.operand),
                f"the default for `{show(type)}` cannot be `{show(right)}`",
                f"this is `{show(right)}`",
            )
            joined = UNKNOWN
        type = joined
        previous = link.operand
        rest.append(ir.Link("??", value))
    return ir.ChainExpr(first, tuple(rest), _stored(type)), type


def _check_compare(context: Context, scope: Scope, node: tree.Compare) -> Typed:
    left_node, right_node = node.left, node.right
    if _is_bare_name(left_node) and not _is_bare_name(right_node):
        # an enum member may stand on either side of a comparison; the other side knows the type
        right, right_type = check_expr(context, scope, right_node)
        left, left_type = check_expr(context, scope, left_node, _counterpart(node.op, right_type))
    else:
        left, left_type = check_expr(context, scope, left_node)
        right, right_type = check_expr(
            context, scope, right_node, _counterpart(node.op, left_type, of_right=True)
        )
    operators.compare(context, node, left_type, right_type)
    return ir.CompareExpr(node.op, left, right), BOOLEAN


def _is_bare_name(node: tree.Expr) -> bool:
    return isinstance(node, tree.NameRef) and len(node.path) == 1


def _counterpart(op: str, type: Type, *, of_right: bool = False) -> Type | None:
    """The type that one side of a comparison suggests for the other."""
    if type == UNKNOWN:
        return UNKNOWN
    if op in ("in", "not in"):
        if of_right:
            hint = _hint(type)
            return None if hint is None else ListOf(hint)
        return _hint(type.of) if isinstance(type, ListOf) else None
    if op == "contains" and of_right and isinstance(type, ListOf):
        return _hint(type.of)
    return _hint(type)


def _hint(type: Type) -> Type | None:
    """A type that gives bare names or map literals beside it their meaning; numbers need none."""
    match type:
        case OptionalOf(of):
            return _hint(of)
        case EnumRef() | SchemaRef():
            return type
        case ListOf(of) | MapOf(of):
            return type if _hint(of) is not None else None
        case _:
            return None


def _check_postfix(context: Context, scope: Scope, node: tree.Postfix) -> Typed:
    base, type = check_expr(context, scope, node.base)
    source = context.unit.source
    accessors: list[ir.FieldOf | ir.IndexOf] = []
    end = node.base.end
    for accessor in node.accessors:
        shown = _shortened(source, node.start, end)
        end = accessor.end
        if isinstance(type, OptionalOf):
            context.reporter.report(
                "AFL2005",
                source.span(node.start, accessor.start),
                f"`{shown}` may be null, so nothing can be read from it",
                f"this is `{show(type)}`",
                suggestions=[advise("give a default with `??`, or test it for null first")],
            )
            return BAD
        if isinstance(accessor, tree.FieldAccess):
            accessors.append(ir.FieldOf(accessor.name.text))
            type = field_type(context, type, accessor.name, shown)
        else:
            index, index_type = check_expr(context, scope, accessor.index)
            accessors.append(ir.IndexOf(index))
            type = operators.index(context, accessor, type, index_type, shown)
    return ir.PostfixExpr(base, tuple(accessors)), type


def _shortened(source: Source, start: int, end: int) -> str:
    if end - start <= _MOST_SHOWN:
        return source.text[start:end]
    return "..." + source.text[end - _MOST_SHOWN : end]
