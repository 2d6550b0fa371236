"""What uses a declaration: steps, mixins, tools of prompts, schedules, and types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from afl.cli.unparse import type_parts
from afl.ir import model as ir


def callers(program: ir.Program) -> Mapping[str, tuple[str, ...]]:
    """The full names of the declarations that use each one, sorted. Recursion does not count."""
    found: dict[str, set[str]] = {}
    for facet in program.facets:
        for name in (*_used(facet), *_types(facet.params), *_types(facet.returns)):
            found.setdefault(name, set()).add(facet.name)
    for schema in program.schemas:
        for name in _types(schema.fields):
            found.setdefault(name, set()).add(schema.name)
    for schedule in program.schedules:
        found.setdefault(schedule.workflow, set()).add(schedule.name)
    return {name: tuple(sorted(users - {name})) for name, users in found.items()}


def _types(params: tuple[ir.Param, ...]) -> Iterator[str]:
    for param in params:
        yield from (part.name for part in type_parts(param.type) if not isinstance(part, str))


def _used(facet: ir.Facet) -> Iterator[str]:
    yield from (mixin.facet for mixin in facet.mixins)
    if facet.prompt is not None:
        yield from (tool.name for tool in facet.prompt.tools if tool.kind == "facet")
    for block in _blocks(facet.clauses, facet.catch):
        for statement in block.statements:
            if isinstance(statement, ir.Step):
                yield statement.facet
                yield from (mixin.facet for mixin in statement.mixins)


def _blocks(clauses: tuple[ir.Clause, ...], catch: ir.Catch | None) -> Iterator[ir.Block]:
    """Every block of a declaration, however deep."""
    bodies = [clause.body for clause in clauses]
    bodies += [clause.catch.body for clause in clauses if clause.catch is not None]
    if catch is not None:
        bodies.append(catch.body)
    for body in bodies:
        match body:
            case ir.Block():
                yield from _inside(body)
            case ir.When(cases):
                for case in cases:
                    yield from _inside(case.block)


def _inside(block: ir.Block) -> Iterator[ir.Block]:
    yield block
    for statement in block.statements:
        if isinstance(statement, ir.Step):
            yield from _blocks(statement.clauses, statement.catch)
