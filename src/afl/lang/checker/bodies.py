"""One declaration: its signature's policies and mixins, its prompt or script, its clauses and its
catch."""

from __future__ import annotations

from afl.ir import model as ir
from afl.lang import tree
from afl.lang.checker.blocks import check_catch, check_clauses
from afl.lang.checker.calls import Mixed, check_mixins
from afl.lang.checker.policies import check_clashes
from afl.lang.checker.prompts import check_prompt
from afl.lang.checker.scope import CallSite, Context, Owner, Scope
from afl.lang.checker.scripts import check_results, check_script
from afl.lang.checker.symbols import FacetSymbol, ParamSymbol
from afl.lang.checker.yields import Yields, check_coverage, either
from afl.lang.diagnostics.reporter import advise


def check_facet(context: Context, facet: FacetSymbol) -> ir.Facet:
    node = facet.node
    problems = len(context.reporter.diagnostics)
    context.declaration = node
    context.place(facet.qname, node)
    owner = Owner(facet.qname, facet, "declaration", 0)
    signature = Scope(facet, facet.unit)
    mixed = check_mixins(context, signature, node.mixins, facet, facet.qname, signature=True)
    _check_signature_clashes(context, facet)
    scope = Scope(facet, facet.unit, owners=(*_mixin_owners(facet), owner))
    prompt = check_prompt(context, facet, node.prompt) if node.prompt is not None else None
    script = _check_script(context, facet, node.script) if node.script is not None else None
    clauses, yields = check_clauses(context, scope, node.clauses, owner, facet.qname)
    catch, caught = check_catch(context, scope, node.catch, f"{facet.qname}/catch")
    _check_mixin_returns(context, facet, scope.owners, yields)
    if catch is not None and facet.kind == "event":
        what = f"the catch of `{facet.name}`"
        check_coverage(context, facet, facet.qname, caught, node.name, what)
    elif catch is not None:
        yields = either((yields, caught))
    _check_returns(context, facet, yields, sound=len(context.reporter.diagnostics) == problems)
    _note_calls(context, facet, mixed)
    return ir.Facet(
        facet.qname,
        facet.kind,
        compile_params(facet.params),
        compile_params(facet.returns),
        tuple(mixed.policies),
        tuple(mixed.mixins),
        catch,
        prompt,
        script,
        clauses,
    )


def compile_params(params: dict[str, ParamSymbol]) -> tuple[ir.Param, ...]:
    return tuple(ir.Param(param.name, param.type, param.default) for param in params.values())


def _mixin_owners(facet: FacetSymbol) -> tuple[Owner, ...]:
    """Mixins that run as steps of their own can be yielded to, by alias or by name."""
    return tuple(
        Owner(f"{facet.qname}/with/{mixin.alias}", mixin.facet, "mixin", 0, mixin.alias)
        for mixin in facet.mixins
        if mixin.facet is not None and mixin.alias is not None
    )


def _check_signature_clashes(context: Context, facet: FacetSymbol) -> None:
    policies: dict[str, tree.Mixin] = {}
    for mixin in facet.node.mixins:
        found = context.index.candidates(facet.unit, mixin.call.target.text)
        if len(found) == 1 and isinstance(found[0], FacetSymbol) and found[0].is_policy:
            policies.setdefault(found[0].name, mixin)
    check_clashes(context, facet, policies)


def _check_script(context: Context, facet: FacetSymbol, node: tree.Script) -> ir.Script:
    script = check_script(context, node)
    context.has_effect = True
    check_results(context, facet, node, before=facet.kind != "event")
    return script


def _check_returns(context: Context, facet: FacetSymbol, yields: Yields, *, sound: bool) -> None:
    """`sound`: nothing was reported about this declaration so far."""
    node = facet.node
    if node.damaged or facet.kind == "event":
        return
    if node.clauses:
        what = f"`{facet.name}`"
        check_coverage(context, facet, facet.qname, yields, node.name, what)
    elif facet.kind == "workflow" and sound:
        context.reporter.report(
            "AFL3016",
            context.span(node.name),
            f"the workflow `{facet.name}` has no body",
            "nothing to run",
            suggestions=[advise("add `andThen { ... }`")],
        )


def _check_mixin_returns(
    context: Context, facet: FacetSymbol, owners: tuple[Owner, ...], yields: Yields
) -> None:
    """A mixin that has no body of its own gets its returns from this one."""
    if facet.node.damaged:
        return
    for owner in owners:
        if owner.kind == "mixin" and owner.facet.kind == "facet" and not owner.facet.has_body:
            what = f"`{facet.name}`, which mixes in `{owner.facet.name}`,"
            check_coverage(context, owner.facet, owner.id, yields, facet.node.name, what)


def _note_calls(context: Context, facet: FacetSymbol, mixed: Mixed) -> None:
    for mixin in mixed.mixins:
        if mixin.alias is not None:
            context.calls.append(CallSite(mixin.facet, False, context.span(facet.node.name)))
