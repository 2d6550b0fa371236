"""Calls: arguments against parameters, mixins and implicits included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from afl.ir import model as ir
from afl.ir.types import FacetRef
from afl.lang import tree
from afl.lang.checker.expressions import check_expr, check_value
from afl.lang.checker.lookup import find
from afl.lang.checker.policies import (
    argument_scope,
    check_call_clashes,
    check_effect,
    check_values,
    policy_fits,
)
from afl.lang.checker.scope import Context, Scope
from afl.lang.checker.symbols import FacetSymbol, ParamSymbol, SchemaSymbol
from afl.lang.checker.types import UNKNOWN, fits, may_be_null, show
from afl.lang.diagnostics.model import Label
from afl.lang.diagnostics.reporter import advise, replace
from afl.lang.diagnostics.suggest import nearest


@dataclass(slots=True)
class Mixed:
    """What the `with` parts of a call or signature come to."""

    policies: list[ir.Policy] = field(default_factory=list)
    mixins: list[ir.Mixin] = field(default_factory=list)
    aliases: dict[str, FacetSymbol] = field(default_factory=dict)
    #: arguments of a call's mixins without alias, by name
    plain: dict[str, ir.Argument] = field(default_factory=dict)
    #: names that a mixin gives in a form that does not fit
    misfits: set[str] = field(default_factory=set)


def check_args(
    context: Context,
    scope: Scope,
    call: tree.Call,
    params: Mapping[str, ParamSymbol],
    callee: FacetSymbol | SchemaSymbol,
    unknown: str = "AFL2001",
) -> dict[str, ir.Argument]:
    """The arguments of a call that name a parameter, each checked against its type."""
    result: dict[str, ir.Argument] = {}
    for arg in distinct_args(context, call.args):
        argument = _check_arg(context, scope, arg, params, callee, unknown)
        if argument is not None:
            result[argument.name] = argument
    return result


def distinct_args(context: Context, args: Sequence[tree.Arg]) -> Iterator[tree.Arg]:
    """Arguments, each name once; a second one is reported."""
    seen: dict[str, tree.Arg] = {}
    for arg in args:
        first = seen.setdefault(arg.name.text, arg)
        if first is arg:
            yield arg
        else:
            context.reporter.report(
                "AFL2003",
                context.span(arg.name),
                f"`{arg.name.text}` is given twice",
                "second one",
                secondary=[Label(context.span(first.name), "first one")],
            )


def _check_arg(
    context: Context,
    scope: Scope,
    arg: tree.Arg,
    params: Mapping[str, ParamSymbol],
    callee: FacetSymbol | SchemaSymbol,
    unknown: str,
) -> ir.Argument | None:
    name = arg.name.text
    param = params.get(name)
    if param is None:
        _report_unknown_argument(context, arg, params, callee, unknown)
        check_expr(context, scope, arg.value, UNKNOWN)
        return None
    # the built-in namespace has no file to show
    declared = (
        None
        if callee.unit.builtin
        else Label(callee.unit.span(param.node.name), f"`{name}` is `{show(param.type)}`")
    )
    what = f"`{name}` of `{callee.name}`"
    value, _ = check_value(context, scope, arg.value, param.type, what, declared)
    return ir.Argument(name, value)


def _report_unknown_argument(
    context: Context,
    arg: tree.Arg,
    params: Mapping[str, ParamSymbol],
    callee: FacetSymbol | SchemaSymbol,
    code: str,
) -> None:
    span = context.span(arg.name)
    noun = {"AFL2001": "parameter", "AFL1014": "field", "AFL3002": "return"}[code]
    kind = "schema " if isinstance(callee, SchemaSymbol) else ""
    guess = nearest(arg.name.text, params)
    suggestions = [replace(span, guess, f"did you mean `{guess}`?")] if guess else []
    names = ", ".join(f"`{name}`" for name in params) or "none"
    context.reporter.report(
        code,
        span,
        f"{kind}`{callee.name}` has no {noun} `{arg.name.text}`",
        f"unknown {noun}",
        secondary=[]
        if callee.unit.builtin
        else [Label(callee.unit.span(callee.node.name), f"`{callee.name}` is declared here")],
        notes=[f"{noun}s of `{callee.name}`: {names}"],
        suggestions=suggestions,
    )


def check_call(
    context: Context,
    scope: Scope,
    call: tree.Call,
    callee: FacetSymbol | SchemaSymbol,
    mixed: Mixed,
) -> tuple[ir.Argument, ...]:
    """All arguments of a call, in the order of the parameters; what mixins add comes last."""
    schema = isinstance(callee, SchemaSymbol)
    params = callee.fields if isinstance(callee, SchemaSymbol) else callee.params
    given = check_args(context, scope, call, params, callee, "AFL1014" if schema else "AFL2001")
    for name, argument in mixed.plain.items():
        given.setdefault(name, argument)
    if not schema:
        implicit = context.index.implicits.get((scope.unit.namespace, callee.qname))
        for argument in implicit.args if implicit is not None else ():
            given.setdefault(argument.name, argument)
    if call.complete:
        filled = set(given) | mixed.misfits | {arg.name.text for arg in call.args}
        # a misspelt argument was reported; the parameter it was meant for is not missing
        filled |= {nearest(name, params) or "" for name in filled - params.keys()}
        if isinstance(callee, FacetSymbol):
            filled |= _filled_by_signature(callee)
        _report_missing(context, call, params, callee, filled)
    ordered = [given.pop(name) for name in params if name in given]
    return (*ordered, *given.values())


def _filled_by_signature(callee: FacetSymbol) -> set[str]:
    """Parameters that the callee's own mixins without alias provide."""
    return {
        arg.name.text
        for mixin in callee.mixins
        if mixin.alias is None
        for arg in mixin.node.call.args
    }


def _report_missing(
    context: Context,
    call: tree.Call,
    params: Mapping[str, ParamSymbol],
    callee: FacetSymbol | SchemaSymbol,
    filled: set[str],
) -> None:
    missing = [
        param
        for name, param in params.items()
        if name not in filled and not param.has_default and not may_be_null(param.type)
    ]
    if not missing:
        return
    noun = "field" if isinstance(callee, SchemaSymbol) else "argument"
    names = ", ".join(f"`{param.name}`" for param in missing)
    plural = "s" if len(missing) > 1 else ""
    sample = ", ".join(f"{param.name} = ..." for param in missing)
    context.reporter.report(
        "AFL2002",
        context.span(call.target),
        f"`{callee.name}` needs the {noun}{plural} {names}",
        f"{names} missing",
        secondary=[
            Label(callee.unit.span(param.node), f"`{param.name}` is declared here")
            for param in missing[:3]
            if not callee.unit.builtin
        ],
        suggestions=[advise(f"add `{sample}`")],
    )


def check_mixins(
    context: Context,
    scope: Scope,
    nodes: list[tree.Mixin],
    owner: FacetSymbol | SchemaSymbol | None,
    id: str,
    *,
    signature: bool,
) -> Mixed:
    """The `with` parts of a signature (`owner` is the declaration) or of a call (`owner` is the
    callee)."""
    mixed = Mixed()
    policies: dict[str, tree.Mixin] = {}
    if isinstance(owner, SchemaSymbol):
        if nodes:
            _report_schema_mixin(context, nodes[0])
        return mixed
    for node in nodes:
        symbol = find(context.index, scope.unit, node.call.target, "AFL1005", "facet or policy")
        if symbol is None:
            for arg in node.call.args:
                check_expr(context, scope, arg.value, UNKNOWN)
        elif not isinstance(symbol, FacetSymbol):
            context.reporter.report(
                "AFL4009",
                context.span(node.call.target),
                f"`{symbol.name}` cannot be mixed in",
                "not a facet",
                suggestions=[advise("mix in a facet, or a policy such as `Retry`")],
            )
        elif symbol.is_policy:
            if policy_fits(context, node, symbol, owner, policies, signature=signature):
                mixed.policies.append(_check_policy(context, scope, node, symbol, owner))
        else:
            _check_mixin(context, scope, node, symbol, owner, id, mixed, signature=signature)
    if owner is not None and not signature:
        check_call_clashes(context, owner, policies)
    return mixed


def _report_schema_mixin(context: Context, node: tree.Mixin) -> None:
    context.reporter.report(
        "AFL4028",
        context.span(node),
        "a schema value takes no policies and no mixins",
        "remove this",
        notes=["making a value is not work that could be retried or timed"],
    )


def _check_policy(
    context: Context,
    scope: Scope,
    node: tree.Mixin,
    policy: FacetSymbol,
    owner: FacetSymbol | None,
) -> ir.Policy:
    """The arguments of a policy that stands in a good place."""
    call = node.call
    args: dict[str, ir.Argument] = {}
    check: ir.Argument | None = None
    for arg in distinct_args(context, call.args):
        name = arg.name.text
        if policy.name == "Effect" and name == "check":
            check = check_effect(context, scope, owner, arg) if owner is not None else None
            continue
        place = argument_scope(scope, policy, name)
        argument = _check_arg(context, place, arg, policy.params, policy, "AFL2001")
        if argument is not None:
            args[name] = argument
    if call.complete:
        filled = {arg.name.text for arg in call.args}
        _report_missing(context, call, policy.params, policy, filled)
    check_values(context, node, policy, args)
    ordered = [args[name] for name in policy.params if name in args]
    return ir.Policy(policy.name, (*ordered, *([check] if check is not None else [])))


def _check_mixin(
    context: Context,
    scope: Scope,
    node: tree.Mixin,
    mixin: FacetSymbol,
    owner: FacetSymbol | None,
    id: str,
    mixed: Mixed,
    *,
    signature: bool,
) -> None:
    args = check_call(context, scope, node.call, mixin, Mixed())
    alias = node.alias.text if node.alias is not None else None
    if alias is not None and not signature:
        _check_alias(context, node, owner, mixed)
    if alias is None:
        args = _fitting(context, node, mixin, owner, args, mixed)
    if alias is None and not signature:
        for argument in args:
            mixed.plain.setdefault(
                argument.name, ir.Argument(argument.name, argument.value, "mixin")
            )
        return
    mixin_id = f"{id}/with/{alias or len(mixed.mixins)}"
    context.place(mixin_id, node)
    mixed.mixins.append(ir.Mixin(mixin_id, mixin.qname, alias, args))
    if alias is not None:
        mixed.aliases[alias] = mixin


def _fitting(
    context: Context,
    node: tree.Mixin,
    mixin: FacetSymbol,
    owner: FacetSymbol | None,
    args: tuple[ir.Argument, ...],
    mixed: Mixed,
) -> tuple[ir.Argument, ...]:
    """The arguments of a mixin without alias that can stand in for the owner's parameters."""
    result = []
    for argument in args:
        name = argument.name
        param = owner.params.get(name) if owner is not None else None
        if owner is None or param is None or _same_kind(param, mixin.params[name]):
            result.append(argument)
            continue
        mixed.misfits.add(name)
        context.reporter.report(
            "AFL4008",
            context.span(node.call.target),
            f"`{name}` is `{show(mixin.params[name].type)}` in `{mixin.name}`"
            f" and `{show(param.type)}` in `{owner.name}`",
            "does not fit",
            suggestions=[advise("give the mixin an alias with `as`")],
        )
    return tuple(result)


def _same_kind(param: ParamSymbol, mixed: ParamSymbol) -> bool:
    if isinstance(param.type, FacetRef) or isinstance(mixed.type, FacetRef):
        return param.type == mixed.type
    return fits(mixed.type, param.type)


def _check_alias(
    context: Context, node: tree.Mixin, callee: FacetSymbol | None, mixed: Mixed
) -> None:
    """An alias at a call must not be taken; those of signatures are checked with the signature."""
    taken = set(mixed.aliases)
    if callee is not None:
        taken |= {*callee.params, *callee.returns, *callee.aliases()}
    if node.alias is not None and node.alias.text in taken:
        context.reporter.report(
            "AFL4007",
            context.span(node.alias),
            f"`{node.alias.text}` is already taken",
            "already taken",
            suggestions=[advise("choose another alias")],
        )
