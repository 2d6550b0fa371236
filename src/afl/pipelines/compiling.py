"""A text to a program, or to what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from afl.ir import model as ir
from afl.pipelines.lowering import lower
from afl.pipelines.nodes import Unreadable, read_nodes
from afl.pipelines.problems import Problem, Problems, Range
from afl.pipelines.reading import read_pipeline

_PART = re.compile(r"\w[\w-]*\Z")
_START = Range(0, 0)
_RESERVED = ("afl", "sys")


@dataclass(frozen=True, slots=True)
class Compiled:
    """What came of a text. Without a program there is at least one problem.

    `declared` is where its workflow gets its name.
    """

    program: ir.Program | None
    problems: tuple[Problem, ...]
    declared: Range


def compile_pipeline(
    text: str, workflow: str, library: ir.Program, place: Callable[[Range], ir.SourceSpan]
) -> Compiled:
    """Checks a text.

    Args:
        workflow: the name that it gets.
        library: has the facets that are built in.
        place: where a range of the text is, for people.
    """
    problems = Problems()
    _check_name(workflow, problems)
    try:
        node = read_nodes(text)
    except Unreadable as error:
        return Compiled(None, (*problems.found, error.problem), _START)
    pipeline = read_pipeline(node, problems)
    if pipeline is None:
        return Compiled(None, tuple(problems.found), _START)
    program = None
    if problems.are_harmless:
        program = lower(pipeline, workflow, library, place)
    return Compiled(program, tuple(problems.found), pipeline.name.range)


def _check_name(workflow: str, problems: Problems) -> None:
    parts = workflow.split(".")
    wrong = next((part for part in parts if not _PART.match(part)), None)
    if wrong is not None:
        message = (
            f"`{wrong}` cannot be part of the name of a workflow: it is made of letters, digits, "
            "`_` and `-`"
        )
    elif parts[0] in _RESERVED and len(parts) > 1:
        message = f"the namespace `{parts[0]}` belongs to the language"
    else:
        return
    problems.add(
        "AFL5010",
        _START,
        message,
        notes=("the name of a workflow is that of its file, and of the folders it is in",),
    )
