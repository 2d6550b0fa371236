"""Finding a step by name anywhere in a declaration, for complaints only."""

from __future__ import annotations

from afl.lang import tree


def find_step(declaration: tree.FacetDecl, name: str) -> tree.Name | None:
    """The name of the first step that is called so, however deep it stands."""
    found: list[tree.Name] = []
    parts: list[tree.Clause | tree.Catch | None] = [declaration.catch, *declaration.clauses]
    while parts:
        part = parts.pop()
        if part is None:
            continue
        if isinstance(part, tree.Clause):
            parts.append(part.catch)
        for block in _blocks(part.body):
            for statement in block.statements:
                if isinstance(statement, tree.Step):
                    parts += [statement.catch, *statement.clauses]
                    if statement.name.text == name:
                        found.append(statement.name)
    return min(found, key=lambda each: each.start, default=None)


def _blocks(body: tree.Block | tree.When | tree.Script) -> list[tree.Block]:
    if isinstance(body, tree.Block):
        return [body]
    return [case.block for case in body.cases] if isinstance(body, tree.When) else []
