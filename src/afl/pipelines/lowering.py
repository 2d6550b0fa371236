"""A pipeline to the program that AFL would make of the same flow.

workflow daily() andThen {
  extract = afl.exec.Command(argv = ["curl", "..."])
  load = afl.exec.Command(argv = ["psql", "..."]) after extract
}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from afl.ir import model as ir
from afl.ir.types import STRING, EnumRef, ListOf, MapOf, OptionalOf, SchemaRef, Type
from afl.pipelines.model import Pipeline, Subprocess, Task, UvPython
from afl.pipelines.problems import Range

COMMAND = "afl.exec.Command"
UV = "afl.exec.Uv"
#: The facets that the tasks of a pipeline call.
FACETS = (COMMAND, UV)

_UV_PROGRAM = "uv"
_HERE = "."
_ZONE = "UTC"
#: Tasks of a pipeline leave files for one another, so all of a run is done on one worker.
_PINNED = ir.Policy(
    "Placement", (ir.Argument("kind", ir.Literal("pinned", EnumRef("afl.PlacementKind"))),)
)


def lower(
    pipeline: Pipeline, workflow: str, library: ir.Program, place: Callable[[Range], ir.SourceSpan]
) -> ir.Program:
    """The program with the one workflow.

    Args:
        workflow: its full name.
        library: has the facets that are built in.
        place: where a range of the file is, for people.
    """
    ids = {task.id: f"{workflow}/0/{task.id}" for task in pipeline.tasks}
    steps = [_step(task, ids) for task in pipeline.tasks]
    facets = [_workflow(workflow, steps), *_called(steps, library)]
    schemas = _schemas(facets[1:], library)
    schedule = _schedule(pipeline, workflow)
    built_in = {facet.name for facet in facets[1:]} | {schema.name for schema in schemas}
    spans = {name: span for name, span in library.spans.items() if name in built_in}
    spans[workflow] = place(pipeline.name.range)
    docs = {
        facet.name: library.docs[facet.name] for facet in facets[1:] if facet.name in library.docs
    }
    docs[workflow] = _doc(pipeline.name.value, pipeline.description)
    for task in pipeline.tasks:
        spans[ids[task.id]] = place(task.range)
        docs[ids[task.id]] = _doc(task.name, task.description)
    if schedule is not None and pipeline.cron is not None:
        spans[schedule.name] = place(pipeline.cron.range)
    return ir.Program(
        tuple(sorted(facets, key=lambda facet: facet.name)),
        schemas,
        (),
        () if schedule is None else (schedule,),
        spans,
        docs,
    )


def _workflow(name: str, steps: Sequence[ir.Step]) -> ir.Facet:
    clause = ir.Clause(f"{name}/0", None, ir.Block(tuple(steps)), None, ())
    return ir.Facet(name, "workflow", (), (), (_PINNED,), (), None, None, None, (clause,))


def _called(steps: Sequence[ir.Step], library: ir.Program) -> list[ir.Facet]:
    names = {step.facet for step in steps}
    return [facet for facet in library.facets if facet.name in names]


def _schemas(facets: Sequence[ir.Facet], library: ir.Program) -> tuple[ir.Schema, ...]:
    """The schemas that the facets name, and those that these name in turn."""
    known = {schema.name: schema for schema in library.schemas}
    found: dict[str, ir.Schema] = {}
    params = [param for facet in facets for param in (*facet.params, *facet.returns)]
    while params:
        name = _schema_in(params.pop().type)
        if name in known and name not in found:
            found[name] = known[name]
            params += known[name].fields
    return tuple(found[name] for name in sorted(found))


def _schema_in(type: Type) -> str:
    match type:
        case ListOf(of) | MapOf(of) | OptionalOf(of):
            return _schema_in(of)
        case SchemaRef(name):
            return name
    return ""


def _step(task: Task, ids: dict[str, str]) -> ir.Step:
    after = tuple(dict.fromkeys(ids[name.value] for name in task.link.depends))
    facet, args = _call(task.config)
    return ir.Step(
        id=ids[task.id],
        name=task.id,
        facet=facet,
        kind="event",
        args=args,
        mixins=(),
        policies=(),
        after=after,
        needs=after,
        catch=None,
        clauses=(),
    )


def _call(config: Subprocess | UvPython) -> tuple[str, tuple[ir.Argument, ...]]:
    """Another `uv` than the one on the path of the worker is a command like any other."""
    if isinstance(config, Subprocess):
        return COMMAND, (_texts("argv", (config.cmd, *config.args)),)
    if config.uv_path not in (None, _UV_PROGRAM):
        return COMMAND, _uv_command(config.uv_path or _UV_PROGRAM, config)
    args = [_text("script", config.script_path)]
    if config.is_uv_project:
        # what a project needs is written in the project
        args.append(_text("project", config.working_directory or _HERE))
    elif config.packages:
        args.append(_texts("packages", config.packages))
    if config.working_directory is not None:
        args.append(_text("cwd", config.working_directory))
    return UV, tuple(args)


def _uv_command(program: str, config: UvPython) -> tuple[ir.Argument, ...]:
    packages = () if config.is_uv_project else config.packages
    argv = [program, "run"]
    for package in packages:
        argv += ["--with", package]
    args = [_texts("argv", (*argv, config.script_path))]
    if config.working_directory is not None:
        args.append(_text("cwd", config.working_directory))
    return tuple(args)


def _schedule(pipeline: Pipeline, workflow: str) -> ir.Schedule | None:
    """Without `cron` there is none: a pipeline that only has a start is started by hand."""
    if pipeline.cron is None:
        return None
    start = pipeline.start_time
    return ir.Schedule(
        name=f"{workflow}.cron",
        workflow=workflow,
        args=(),
        cron=pipeline.cron.value,
        every_ms=None,
        zone=_ZONE,
        start=None if start is None else start.value,
        # what was missed while nobody was there is not made up for
        catch_up="none",
    )


def _text(name: str, value: str) -> ir.Argument:
    return ir.Argument(name, ir.Literal(value, STRING))


def _texts(name: str, values: Sequence[str]) -> ir.Argument:
    return ir.Argument(name, ir.ListExpr(tuple(ir.Literal(value, STRING) for value in values)))


def _doc(name: str, description: str | None) -> str:
    return name if description is None else f"{name}\n\n{description}"
