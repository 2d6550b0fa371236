"""Random programs that are well formed and well typed, from a seed or for Hypothesis."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from tests.lang.generation.declarations import Declarations
from tests.lang.generation.layout import lay_out
from tests.lang.generation.world import Unit, World

SourceText = tuple[str, str]


def random_program(rng: Random, size: int, *, plain: bool = False) -> list[SourceText]:
    """A program of about `size` declarations, as names and texts of its files.

    A plain one has no comments or odd blanks.
    """
    world = World(rng)
    units = _units(rng, size)
    declarations = Declarations(world)
    for _ in range(size):
        declarations.add(rng.choice(units))
    texts = [""] * (1 + max(unit.file for unit in units))
    for unit in units:
        texts[unit.file] += _unit_text(rng, unit)
    if plain:
        texts = [text.replace("\x02", "").replace("\x03", "") for text in texts]
    else:
        texts = [lay_out(text, rng) for text in texts]
    return [(f"part{number}.afl", text) for number, text in enumerate(texts)]


def _units(rng: Random, size: int) -> list[Unit]:
    """Namespace blocks over files; a namespace may be opened more than once."""
    count = rng.randint(1, 1 + size // 3)
    files = rng.randint(1, count)
    names = [
        rng.choice(("shop", "a.b", "mail.in", "team.review.use")) + str(n) for n in range(count)
    ]
    if count > 1 and rng.random() < 0.3:
        names[-1] = names[0]
    units = [
        Unit(name, number if number < files else rng.randrange(files))
        for number, name in enumerate(names)
    ]
    rng.shuffle(units)
    return units


def _unit_text(rng: Random, unit: Unit) -> str:
    # a namespace is there even when nothing of it is used, so `use` before the items is enough
    items = [f"use {name}" for name in sorted(unit.uses - {unit.namespace})] + rng.sample(
        unit.items, len(unit.items)
    )
    doc = "\x02/** A namespace. */\x03\n" if rng.random() < 0.2 else ""
    body = "".join("\n".join(f"  {line}" for line in item.split("\n")) + "\n\n" for item in items)
    return f"{doc}namespace {unit.namespace} {{\n{body}}}\n\n"


def programs(max_size: int = 6) -> st.SearchStrategy[list[SourceText]]:
    """Programs for Hypothesis, which can make a failing one smaller."""
    return st.builds(
        random_program,
        st.randoms(use_true_random=False),
        st.integers(min_value=1, max_value=max_size),
    )
