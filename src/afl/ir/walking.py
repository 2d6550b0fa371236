"""Walks through programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from afl.ir.model import Facet, Mixin, Program, Step


def parts(part: object) -> Iterator[object]:
    """A part of a program, and everything in it."""
    yield part
    if isinstance(part, tuple):
        for each in part:
            yield from parts(each)
    elif is_dataclass(part):
        for each in fields(part):
            yield from parts(getattr(part, each.name))


def calls(facet: Facet) -> Iterator[Step | Mixin]:
    """Everything in a declaration that calls a facet."""
    for part in parts(facet):
        if isinstance(part, Step | Mixin):
            yield part


def reached(program: Program, workflow: str) -> list[Facet]:
    """A workflow and all that it can come to call, tools of prompts too."""
    facets = {facet.name: facet for facet in program.facets}
    found = {workflow: facets[workflow]}
    rest = [facets[workflow]]
    while rest:
        caller = rest.pop()
        names = [call.facet for call in calls(caller)]
        if caller.prompt is not None:
            names += [tool.name for tool in caller.prompt.tools]
        for name in names:
            facet = facets.get(name)
            if facet is not None and name not in found:
                found[name] = facet
                rest.append(facet)
    return list(found.values())
