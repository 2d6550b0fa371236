"""Yields: whom they go to, and which returns are yielded on which paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from afl.ir import model as ir
from afl.ir.types import JSON, ListOf
from afl.lang import tree
from afl.lang.checker.calls import distinct_args
from afl.lang.checker.expressions import check_expr, check_value
from afl.lang.checker.scope import Context, Owner, Scope
from afl.lang.checker.scripts import sets_anything
from afl.lang.checker.symbols import FacetSymbol, ParamSymbol
from afl.lang.checker.types import UNKNOWN, bare, may_be_null, show
from afl.lang.diagnostics.model import Edit, Label, Suggestion
from afl.lang.diagnostics.reporter import advise, replace
from afl.lang.diagnostics.suggest import nearest
from afl.lang.source import Span

#: The owner's id and the name of the return.
Key = tuple[str, str]

#: Stands for a yield that was reported: what seems to be missing may be what it was meant for.
_MISREAD: Key = ("", "")


@dataclass(frozen=True, slots=True)
class Given:
    """A yielded return: where, and whether it is a single value, of which there can be only one."""

    span: Span
    single: bool


@dataclass(frozen=True, slots=True)
class Yields:
    """What a part of a body yields: on every path through it, and on some."""

    always: frozenset[Key] = frozenset()
    some: dict[Key, Given] = field(default_factory=dict)

    def of(self, owner: str) -> tuple[set[str], set[str]]:
        """Returns of one owner: those always yielded, and those yielded at all."""
        return (
            {name for id, name in self.always if id == owner},
            {name for id, name in self.some if id == owner},
        )

    def without(self, owner: str) -> Yields:
        return Yields(
            frozenset(key for key in self.always if key[0] != owner),
            {key: given for key, given in self.some.items() if key[0] != owner},
        )


NOTHING = Yields()


def misread(span: Span) -> Yields:
    """What stands for a part that was reported: nobody is told what it does not yield."""
    return Yields(some={_MISREAD: Given(span, single=False)})


def together(context: Context, left: Yields, right: Yields) -> Yields:
    """Both parts run. A single value that both yield is a mistake; lists are joined."""
    if not right.some:
        return left
    if not left.some:
        return right
    both = {**right.some, **left.some}
    for key, second in right.some.items():
        first = left.some.get(key)
        if first is None or not second.single:
            continue
        if not first.single:
            both[key] = second
            continue
        context.reporter.report(
            "AFL3005",
            second.span,
            f"`{key[1]}` is yielded twice",
            "yielded again",
            secondary=[Label(first.span, "first yield")],
            notes=["both can happen in one run, and a single value has room for one; lists join"],
        )
    return Yields(left.always | right.always, both)


def either(parts: Iterable[Yields]) -> Yields:
    """One of the parts runs."""
    listed = list(parts)
    if not listed:
        return NOTHING
    always = frozenset.intersection(*(part.always for part in listed))
    some: dict[Key, Given] = {}
    for part in listed:
        some.update(part.some)
    return Yields(always, some)


def check_yield(
    context: Context, scope: Scope, node: tree.Yield, id: str
) -> tuple[ir.Yield, Yields]:
    context.open_needs()
    targets = []
    result = NOTHING
    for call in node.targets:
        owner = _find_owner(context, scope, call)
        if owner is None:
            for arg in call.args:
                check_expr(context, scope, arg.value, UNKNOWN)
            result = together(context, result, misread(context.span(call)))
            continue
        args, yields = _check_target(context, scope, call, owner)
        targets.append(ir.YieldTarget(owner.id, args))
        result = together(context, result, yields)
    needs = context.close_needs()
    context.place(id, node)
    return ir.Yield(id, tuple(targets), tuple(needs.direct)), result


def _check_target(
    context: Context, scope: Scope, call: tree.Call, owner: Owner
) -> tuple[tuple[ir.Argument, ...], Yields]:
    facet = owner.facet
    args: dict[str, ir.Argument] = {}
    some: dict[Key, Given] = {}
    unknown: dict[Key, Given] = {}
    for arg in distinct_args(context, call.args):
        name = arg.name.text
        declared = facet.returns.get(name)
        if declared is None:
            _report_unknown_return(context, facet, arg)
            check_expr(context, scope, arg.value, UNKNOWN)
            unknown[_MISREAD] = Given(context.span(arg), single=False)
            continue
        typed = check_value(
            context,
            scope,
            arg.value,
            declared.type,
            f"the return `{name}` of `{facet.name}`",
            Label(facet.unit.span(declared.node.name), f"`{name}` is `{show(declared.type)}`"),
        )
        args[name] = ir.Argument(name, typed[0])
        single = typed[1] != UNKNOWN and not any(
            isinstance(bare(type), ListOf) for type in (declared.type, typed[1])
        )
        some[owner.id, name] = Given(context.span(arg), single)
        if single and scope.foreach_depth > owner.foreach_depth:
            _report_single_in_foreach(context, arg, facet)
    ordered = tuple(args[name] for name in facet.returns if name in args)
    return ordered, Yields(frozenset(some), some | unknown)


def _report_single_in_foreach(context: Context, arg: tree.Arg, facet: FacetSymbol) -> None:
    name = arg.name.text
    declared = facet.returns[name]
    value = context.span(arg.value)
    edits = [Edit(value, f"[{value.text}]")]
    hint = f"yield `[{value.text}]`: lists are joined in order"
    if bare(declared.type) != JSON:
        type = facet.unit.span(declared.node.type)
        listed = f"[{type.text.rstrip('?')}]"
        edits.append(Edit(type, listed))
        hint = f"make `{name}` a list, `{listed}`, and {hint}"
    context.reporter.report(
        "AFL3006",
        context.span(arg),
        f"every iteration would yield its own `{name}`, and there is room for one",
        "inside a foreach",
        secondary=[Label(facet.unit.span(declared.node), f"`{name}` is `{show(declared.type)}`")],
        suggestions=[Suggestion(hint, tuple(edits))],
    )


def _report_unknown_return(context: Context, facet: FacetSymbol, arg: tree.Arg) -> None:
    span = context.span(arg.name)
    guess = nearest(arg.name.text, facet.returns)
    names = ", ".join(f"`{name}`" for name in facet.returns) or "none"
    context.reporter.report(
        "AFL3002",
        span,
        f"`{facet.name}` has no return `{arg.name.text}`",
        "unknown return",
        secondary=[Label(facet.unit.span(facet.node.name), f"`{facet.name}` is declared here")],
        notes=[f"returns of `{facet.name}`: {names}"],
        suggestions=[replace(span, guess, f"did you mean `{guess}`?")] if guess else [],
    )


def _find_owner(context: Context, scope: Scope, call: tree.Call) -> Owner | None:
    """The innermost owner of that name, unless it could mean two different facets."""
    target = call.target
    text = target.text
    matches = [
        owner
        for owner in reversed(scope.owners)
        if text in (owner.alias, owner.facet.name, owner.facet.qname)
    ]
    if not matches:
        _report_wrong_target(context, scope, call)
        return None
    first = matches[0]
    rivals = [
        owner
        for owner in matches[1:]
        if owner.facet is not first.facet or (owner.kind == "mixin" and first.kind == "mixin")
    ]
    if rivals and text != first.alias and text != first.facet.qname:
        hint = (
            f"name it by its alias, `{first.alias}`"
            if first.alias
            else f"write the full name: `{first.facet.qname}`"
        )
        context.reporter.report(
            "AFL3014",
            context.span(target),
            f"`{text}` can mean two owners here",
            "ambiguous",
            suggestions=[advise(hint)],
        )
        return None
    return first


def _report_wrong_target(context: Context, scope: Scope, call: tree.Call) -> None:
    owners = {owner.alias or owner.facet.name: owner for owner in reversed(scope.owners)}
    if not owners:
        return
    target = call.target
    span = context.span(target)
    listed = " or ".join(f"`{name}`" for name in owners)
    unnamed = {
        mixin.facet.name
        for mixin in (scope.facet.mixins if scope.facet is not None else ())
        if mixin.facet is not None and mixin.alias is None
    }
    if target.text in unnamed:
        hint = f"to yield to the mixin, give it an alias: `with {target.text}(...) as name`"
        suggestion = advise(hint)
    else:
        guess = nearest(target.text, owners) or _taker(owners, call)
        suggestion = replace(span, guess, f"yield to `{guess}`")
    context.reporter.report(
        "AFL3001",
        span,
        f"a yield here goes to {listed}, not to `{target.text}`",
        "not an owner of this block",
        suggestions=[suggestion],
    )


def _taker(owners: Mapping[str, Owner], call: tree.Call) -> str:
    """The innermost owner that has all the returns which a yield names, else the innermost."""
    names = {arg.name.text for arg in call.args}
    fitting = [name for name, owner in owners.items() if names <= owner.facet.returns.keys()]
    return [*fitting, *owners][0]


def check_coverage(
    context: Context, facet: FacetSymbol, owner: str, yields: Yields, where: tree.Node, what: str
) -> None:
    """Reports returns of a facet that are never yielded, or not on every path."""
    if _MISREAD in yields.some or (owner == facet.qname and _has_open_script(facet)):
        return
    always, some = yields.of(owner)
    needed = [
        declared
        for name, declared in facet.returns.items()
        if name not in always and not declared.has_default and not may_be_null(declared.type)
    ]
    never = [declared for declared in needed if declared.name not in some]
    sometimes = [declared for declared in needed if declared.name in some]
    if never:
        names = _names(never)
        sample = ", ".join(f"{declared.name} = ..." for declared in never)
        context.reporter.report(
            "AFL3003",
            context.span(where),
            f"{what} never yields {names}",
            f"{names} never yielded",
            secondary=[
                Label(facet.unit.span(declared.node), "declared here") for declared in never
            ],
            suggestions=[advise(f"add `{sample}` to a `yield {facet.name}(...)`")],
        )
    if sometimes:
        names = _names(sometimes)
        first = sometimes[0]
        context.reporter.report(
            "AFL3004",
            context.span(where),
            f"{what} does not yield {names} on every path",
            f"{names} may be missing",
            secondary=[
                Label(yields.some[owner, declared.name].span, "yielded only here")
                for declared in sometimes
            ],
            suggestions=[
                advise(
                    "yield on the other paths too, or make it optional: "
                    f"`{first.name}: {show(first.type)}?`"
                )
            ],
        )


def _has_open_script(facet: FacetSymbol) -> bool:
    """Whether a script of the body may set returns that are not written out in it."""
    return any(
        isinstance(clause.body, tree.Script) and sets_anything(clause.body)
        for clause in facet.node.clauses
    )


def _names(params: list[ParamSymbol]) -> str:
    quoted = [f"`{param.name}`" for param in params]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" and {quoted[-1]}"


def caught_returns(catch: tree.Catch, facet: FacetSymbol) -> set[str]:
    """Returns that every path through a step's catch yields to the step, read off the tree."""
    if isinstance(catch.body, tree.Block):
        return _yielded(catch.body, facet)
    paths = [_yielded(case.block, facet) for case in catch.body.cases]
    return set.intersection(*paths) if paths else set()


def _yielded(block: tree.Block, facet: FacetSymbol) -> set[str]:
    return {
        arg.name.text
        for statement in block.statements
        if isinstance(statement, tree.Yield)
        for call in statement.targets
        if call.target.text in (facet.name, facet.qname)
        for arg in call.args
    }
