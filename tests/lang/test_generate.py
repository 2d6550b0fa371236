"""Generated programs are good ones, and they use the whole language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from random import Random

import pytest
from hypothesis import given, settings

from afl.lang import tree
from afl.lang.api import compile_sources
from afl.lang.checker.prelude import prelude
from afl.lang.diagnostics.render_concise import render_concise
from tests.lang.generate import SourceText, programs, random_program

PARTS = 6
PROGRAMS = 1_200
OPERATORS = {
    *("||", "&&", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "contains", "startsWith"),
    *("endsWith", "??", "++", "+", "-", "*", "/", "%", "!"),
}


def nodes(value: object) -> Iterator[object]:
    """Everything in a tree that is a node."""
    if isinstance(value, list):
        for item in value:
            yield from nodes(item)
    elif is_dataclass(value):
        yield value
        for field in fields(value):
            yield from nodes(getattr(value, field.name))


@pytest.mark.parametrize("part", range(PARTS))
def test_generated_programs_have_no_errors(part: int) -> None:
    rng = Random(f"check {part}")
    for _ in range(PROGRAMS // PARTS):
        compilation = compile_sources(random_program(rng, rng.choice((1, 2, 3, 5, 8, 12))))
        assert compilation.errors == (), render_concise(compilation.errors)
        assert compilation.program is not None


@settings(max_examples=50, deadline=None)
@given(programs())
def test_programs_of_hypothesis_have_no_errors(program: list[SourceText]) -> None:
    assert compile_sources(program).errors == ()


def test_a_seed_gives_the_same_program_every_time() -> None:
    assert random_program(Random(4), 8) == random_program(Random(4), 8)
    assert random_program(Random(4), 8) != random_program(Random(5), 8)


def test_the_programs_use_the_whole_language() -> None:
    kinds: set[str] = set()
    operators: set[str] = set()
    policies: set[str] = set()
    styles: set[str] = set()
    for seed in range(400):
        compilation = compile_sources(random_program(Random(seed), 6))
        assert compilation.program is not None
        styles.add("several files" if len(compilation.files) > 1 else "one file")
        styles |= {"comments" for file in compilation.files if file.tokens.comments}
        policies |= {p.name for facet in compilation.program.facets for p in facet.policies}
        for file in compilation.files:
            for node in nodes(file.items):
                kinds.add(type(node).__name__)
                if isinstance(node, tree.Compare | tree.ChainLink | tree.Unary):
                    operators.add(node.op)
    assert kinds == _all_kinds()
    assert operators == OPERATORS
    assert policies == _all_policies()
    assert styles == {"several files", "one file", "comments"}


def _all_kinds() -> set[str]:
    made = {
        name
        for name, value in vars(tree).items()
        if isinstance(value, type) and value.__module__ == tree.__name__
    }
    return made - {"Node", "File", "BadExpr", "BadType"}


def _all_policies() -> set[str]:
    declared = prelude().namespaces[0].declarations
    return {node.name.text for node in declared if isinstance(node, tree.FacetDecl)}
