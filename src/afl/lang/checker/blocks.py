"""Clauses, blocks and steps."""

from __future__ import annotations

from collections.abc import Sequence

from afl.ir import model as ir
from afl.ir.types import JSON, ListOf
from afl.lang import tree
from afl.lang.checker.calls import check_call, check_mixins, distinct_args
from afl.lang.checker.cases import check_default, check_reachable
from afl.lang.checker.cycles import check_cycles
from afl.lang.checker.expressions import (
    check_condition,
    check_expr,
    check_value,
)
from afl.lang.checker.facts import NO_FACTS, facts
from afl.lang.checker.foreach import check_foreach
from afl.lang.checker.lookup import find_callable
from afl.lang.checker.references import report_unknown_step
from afl.lang.checker.scope import CallSite, Context, Owner, Scope, StepSymbol
from afl.lang.checker.scripts import check_results, check_script
from afl.lang.checker.symbols import FacetSymbol, SchemaSymbol
from afl.lang.checker.types import UNKNOWN, bare, may_be_null
from afl.lang.checker.yields import (
    NOTHING,
    Given,
    Yields,
    caught_returns,
    check_coverage,
    check_yield,
    either,
    misread,
    together,
)
from afl.lang.diagnostics.model import Label
from afl.lang.diagnostics.reporter import advise


def check_clauses(
    context: Context, scope: Scope, clauses: Sequence[tree.Clause], owner: Owner | None, path: str
) -> tuple[tuple[ir.Clause, ...], Yields]:
    """The clauses of a declaration or a step. Each sees the steps of the plain blocks before it."""
    seen: dict[str, StepSymbol] = {}
    result = []
    yields = NOTHING
    for position, clause in enumerate(clauses):
        place = scope.after_clauses(dict(seen))
        id = f"{path}/{position}"
        compiled, part, steps = _check_clause(context, place, clause, owner, id)
        result.append(compiled)
        yields = together(context, yields, part)
        seen.update(steps)
    return tuple(result), yields


def _check_clause(
    context: Context, scope: Scope, clause: tree.Clause, owner: Owner | None, id: str
) -> tuple[ir.Clause, Yields, dict[str, StepSymbol]]:
    context.open_needs()
    context.place(id, clause)
    foreach: ir.Foreach | None = None
    body: ir.Block | ir.When | ir.Script
    inside = scope
    if clause.foreach is not None:
        foreach, inside = check_foreach(context, scope, clause.foreach, id)
        context.conditional += 1
    steps: dict[str, StepSymbol] = {}
    match clause.body:
        case tree.Block():
            place = inside.inner()
            body, yields = check_block(context, place, clause.body, id)
            steps = place.steps if foreach is None else {}
        case tree.When():
            body, yields = _check_when(context, inside, clause.body, id)
        case tree.Script():
            body, yields = _check_script_clause(context, clause.body, owner)
    if foreach is not None:
        context.conditional -= 1
        # no iteration, or none that yields, leaves a list empty
        yields = Yields(frozenset(yields.some), yields.some)
    catch, caught = check_catch(context, scope, clause.catch, f"{id}/catch")
    if catch is not None:
        yields = either((yields, caught))
    needs = tuple(context.close_needs().direct)
    return ir.Clause(id, foreach, body, catch, needs), yields, steps


def _check_when(
    context: Context, scope: Scope, node: tree.When, path: str
) -> tuple[ir.When, Yields]:
    cases = []
    parts = []
    known = NO_FACTS
    conditions: set[ir.Expr] = set()
    decided = False
    for position, case in enumerate(node.cases):
        place = scope.with_facts(known)
        condition: ir.Expr | None = None
        body_scope = place
        if case.condition is not None:
            condition = check_condition(context, place, case.condition)
            when_true, when_false = facts(case.condition)
            body_scope = place.with_facts(when_true)
            known = known | when_false
        decided = check_reachable(context, case, condition, conditions, decided)
        id = f"{path}/case-{position}"
        context.place(id, case)
        context.conditional += 1
        block, yields = check_block(context, body_scope.inner(), case.block, id)
        context.conditional -= 1
        cases.append(ir.Case(id, condition, block))
        parts.append(yields)
    check_default(context, node)
    if not cases:
        return ir.When(()), misread(context.span(node))
    return ir.When(tuple(cases)), either(parts)


def _check_script_clause(
    context: Context, node: tree.Script, owner: Owner | None
) -> tuple[ir.Script, Yields]:
    script = check_script(context, node)
    context.has_effect = True
    if owner is None:
        return script, NOTHING
    results = check_results(context, owner.facet, node, before=False)
    given = {
        (owner.id, name): Given(
            context.span(node), not isinstance(bare(owner.facet.returns[name].type), ListOf)
        )
        for name in sorted(results & {*owner.facet.returns})
    }
    return script, Yields(frozenset(given), given)


def check_catch(
    context: Context, scope: Scope, node: tree.Catch | None, id: str
) -> tuple[ir.Catch | None, Yields]:
    if node is None:
        return None, NOTHING
    context.open_needs()
    context.place(id, node)
    context.conditional += 1
    place = scope.in_catch(id)
    body: ir.Block | ir.When
    if isinstance(node.body, tree.Block):
        body, yields = check_block(context, place.inner(), node.body, id)
    else:
        body, yields = _check_when(context, place, node.body, id)
    context.conditional -= 1
    needs = tuple(context.close_needs().direct)
    return ir.Catch(id, body, needs), yields


def check_block(
    context: Context, scope: Scope, block: tree.Block, path: str
) -> tuple[ir.Block, Yields]:
    """The statements of a block; its steps are put into `scope.steps`."""
    for statement in block.statements:
        if isinstance(statement, tree.Step):
            _declare(context, scope, statement, path)
    # what is known of an earlier step is not known of one that takes its name
    scope.narrowed = frozenset(key for key in scope.narrowed if key[0] not in scope.steps)
    statements: list[ir.Statement] = []
    waits: dict[str, set[str]] = {}
    yields = NOTHING
    counts = {"yield": 0, "log": 0, "assert": 0}
    for statement in block.statements:
        match statement:
            case tree.Step():
                symbol = scope.steps[statement.name.text]
                if symbol.node is not statement:
                    continue
                step, part, waits[symbol.id] = _check_step(context, scope, symbol)
                if step is not None:
                    statements.append(step)
            case tree.Yield():
                id = _numbered(path, "yield", counts)
                compiled, part = check_yield(context, scope, statement, id)
                statements.append(compiled)
            case tree.SysLog() | tree.SysAssert():
                statements.append(_check_sys(context, scope, statement, path, counts))
                part = NOTHING
        yields = together(context, yields, part)
    check_cycles(context, scope, waits)
    return ir.Block(tuple(statements)), yields


def _numbered(path: str, word: str, counts: dict[str, int]) -> str:
    position = counts[word]
    counts[word] = position + 1
    return f"{path}/{word}-{position}"


def _declare(context: Context, scope: Scope, node: tree.Step, path: str) -> None:
    name = node.name.text
    first = _taken(scope, name)
    if first is not None:
        context.reporter.report(
            "AFL1010",
            context.span(node.name),
            f"there is already a step `{name}`",
            "second one",
            secondary=[Label(context.span(first.node.name), "first one")],
            suggestions=[advise("rename one of them")],
        )
        if name in scope.steps:
            return
    if name == "error" and scope.catch is not None:
        context.reporter.report(
            "AFL1017",
            context.span(node.name),
            "a step `error` hides the error of this catch",
            "hides the error",
            suggestions=[advise("choose another name")],
        )
    callee = None
    if node.call is not None:
        callee = find_callable(context.index, scope.unit, node.call.target)
    symbol = StepSymbol(name, f"{path}/{name}", node, callee)
    if node.catch is not None and isinstance(callee, FacetSymbol):
        caught = caught_returns(node.catch, callee)
        symbol.uncaught = frozenset(set(callee.returns) - caught)
    scope.steps[name] = symbol
    context.steps.append(symbol)


def _taken(scope: Scope, name: str) -> StepSymbol | None:
    """A step of this block or of one around it that has the name already."""
    for place in scope.chain():
        if name in place.steps and not place.earlier:
            return place.steps[name]
    return None


def _check_step(
    context: Context, scope: Scope, step: StepSymbol
) -> tuple[ir.Step | None, Yields, set[str]]:
    """A step, what it yields to others, and all steps that it or its body waits for."""
    node, callee, id = step.node, step.callee, step.id
    context.open_needs()
    context.place(id, node)
    place = scope.of_step(step)
    mixed = check_mixins(context, place, node.mixins, callee, id, signature=False)
    step.aliases = mixed.aliases
    args: tuple[ir.Argument, ...] = ()
    if node.call is not None and callee is not None:
        args = check_call(context, place, node.call, callee, mixed)
        span = context.span(node.call.target)
        # a body at the step runs instead of the callee's own, so that is not called again
        replaced = isinstance(callee, FacetSymbol) and callee.has_body and bool(node.clauses)
        context.calls.append(CallSite(callee.qname, context.conditional > 0 or replaced, span))
    elif node.call is not None:
        for arg in node.call.args:
            check_expr(context, place, arg.value, UNKNOWN)
    after = _check_after(context, scope, step)
    needs = tuple(context.needs[-1].direct)
    clauses, catch, yields = _check_step_parts(context, scope, step)
    waits = context.close_needs().all
    if callee is None:
        return None, yields, waits
    kind = "schema" if isinstance(callee, SchemaSymbol) else callee.kind
    compiled = ir.Step(
        id,
        step.name,
        callee.qname,
        kind,
        args,
        tuple(mixed.mixins),
        tuple(mixed.policies),
        after,
        needs,
        catch,
        clauses,
    )
    return compiled, yields, waits


def _check_step_parts(
    context: Context, scope: Scope, step: StepSymbol
) -> tuple[tuple[ir.Clause, ...], ir.Catch | None, Yields]:
    """The body and the catch of a step."""
    node, callee, id = step.node, step.callee, step.id
    if not node.clauses and node.catch is None:
        if isinstance(callee, FacetSymbol):
            _check_own_returns(context, step, callee, NOTHING)
        return (), None, NOTHING
    owner: Owner | None = None
    if isinstance(callee, FacetSymbol):
        owner = Owner(id, callee, "step", scope.foreach_depth)
    clauses, yields = check_clauses(
        context, scope.in_step(step, "body", owner), node.clauses, owner, id
    )
    catch_scope = scope.in_step(step, "catch", owner)
    catch, caught = check_catch(context, catch_scope, node.catch, f"{id}/catch")
    if isinstance(callee, FacetSymbol):
        _check_own_returns(context, step, callee, yields)
    if catch is not None:
        yields = either((yields, caught))
    return clauses, catch, yields.without(id)


def _check_own_returns(
    context: Context, step: StepSymbol, callee: FacetSymbol, yields: Yields
) -> None:
    """That the step's facet gets its returns, where this step has to see to it."""
    if callee.kind == "event" or callee.node.damaged:
        return
    if step.node.clauses:
        what = f"the body of step `{step.name}`"
        check_coverage(context, callee, step.id, yields, step.node.name, what)
        return
    needed = [
        name
        for name, declared in callee.returns.items()
        if not declared.has_default and not may_be_null(declared.type)
    ]
    broken = callee.kind == "workflow" or callee.node.prompt or callee.node.script
    if needed and not callee.has_body and not broken and step.node.call is not None:
        names = ", ".join(f"`{name}`" for name in needed)
        context.reporter.report(
            "AFL3013",
            context.span(step.node.call.target),
            f"`{callee.name}` has no body, so nothing yields {names}",
            "needs a body here",
            secondary=[Label(callee.unit.span(callee.node.name), "declared without a body")],
            suggestions=[
                advise(f"add `andThen {{ ... yield {callee.name}(...) }}` to this step"),
                advise(f"or declare `event facet {callee.name}`, so that a handler does the work"),
            ],
        )


def _check_after(context: Context, scope: Scope, step: StepSymbol) -> tuple[str, ...]:
    result = []
    read = set(context.needs[-1].direct)
    for name in step.node.after:
        found = scope.step(name.text)
        if found is step:
            context.reporter.report(
                "AFL1015",
                context.span(name),
                f"step `{step.name}` would wait for itself",
                "itself",
            )
        elif found is None:
            report_unknown_step(context, scope, name)
        elif found.id in read or found.id in scope.inside:
            found.read = True
            context.reporter.report(
                "AFL3019",
                context.span(name),
                f"`{step.name}` waits for `{name.text}` already",
                "adds no order",
                notes=["a step waits for every step that its arguments read, once"],
            )
        else:
            found.read = True
            read.add(found.id)
            context.need(found.id)
            result.append(found.id)
    return tuple(result)


def _check_sys(
    context: Context,
    scope: Scope,
    node: tree.SysLog | tree.SysAssert,
    path: str,
    counts: dict[str, int],
) -> ir.Log | ir.Assert:
    context.has_effect = True
    context.open_needs()
    if isinstance(node, tree.SysAssert):
        id = _numbered(path, "assert", counts)
        context.place(id, node)
        condition = check_condition(context, scope, node.condition)
        return ir.Assert(id, condition, tuple(context.close_needs().direct))
    id = _numbered(path, "log", counts)
    context.place(id, node)
    args = []
    for arg in distinct_args(context, node.args):
        value, _ = check_value(context, scope, arg.value, JSON, f"`{arg.name.text}` of a log")
        args.append(ir.Argument(arg.name.text, value))
    return ir.Log(id, tuple(args), tuple(context.close_needs().direct))
