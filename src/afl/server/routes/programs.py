"""Programs: what can be run, its sources, and trying it out."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter

from afl.app.errors import BadProgram
from afl.ir.codec import dumps, loads
from afl.ir.digest import program_hash
from afl.ir.errors import ProgramFormatError
from afl.ir.model import Program
from afl.runtime.definition_graph import definition_graph
from afl.runtime.views import state_word
from afl.server.access import EveryDeveloper, Viewer
from afl.server.backend import Work
from afl.server.models.runs import GraphView
from afl.server.models.system import (
    CheckResult,
    DeployForm,
    DeploymentLine,
    ProgramView,
    SourcesForm,
    TryForm,
    TryResult,
)
from afl.server.program_views.compiling import compile_sent, compiled, diagnostic_view
from afl.server.program_views.declarations import graph_view, workflow_views
from afl.server.program_views.deployed import (
    deployment_lines,
    program_view,
    programs_under,
    stored_program,
)
from afl.server.trying import try_out

router = APIRouter(prefix="", tags=["programs"])

#: How many outcomes are told, and among how many runs they are looked for.
_OUTCOMES, _LOOKED_AT = 20, 200


@router.get("/programs")
def list_programs(
    backend: Work,
    caller: Viewer,
) -> list[DeploymentLine]:
    """The deployed programs and their workflows."""
    return deployment_lines(backend)


@router.get("/programs/{program:path}/compiled")
def compiled_program(
    backend: Work,
    caller: Viewer,
    program: str,
) -> str:
    """A program as `afl compile` writes it."""
    digest = backend.client.operations.program(program)
    return dumps(stored_program(backend.services.persistence, digest))


@router.get("/programs/{program:path}/graph")
def program_graph(
    backend: Work,
    caller: Viewer,
    program: str,
    workflow: str,
) -> GraphView:
    """The definition graph of a workflow, before any run."""
    digest = backend.client.operations.program(program)
    found = stored_program(backend.services.persistence, digest)
    return graph_view(definition_graph(found, workflow))


@router.get("/programs/{program:path}/runs")
def recent_outcomes(
    backend: Work,
    caller: Viewer,
    program: str,
    workflow: str,
) -> list[str]:
    """The states of the last twenty runs of a workflow, the newest first."""
    programs = programs_under(backend, program)
    runs = backend.client.operations.list(workflow=workflow, limit=_LOOKED_AT)
    return [state_word(run) for run in runs if run.program in programs and caller.sees(run.tenant)][
        :_OUTCOMES
    ]


# behind the others: names may have slashes
@router.get("/programs/{program:path}")
def get_program(
    backend: Work,
    caller: Viewer,
    program: str,
) -> ProgramView:
    """A program by its hash or the name of its deployment, with sources and versions."""
    return program_view(backend, program)


@router.post("/programs")
def deploy(
    backend: Work,
    caller: EveryDeveloper,
    form: DeployForm,
) -> CheckResult:
    """Makes sources the program that new runs use. Nothing is deployed if they do not compile."""
    diagnostics = []
    if form.compiled is not None:
        program = _compiled(form.compiled)
    else:
        compilation = compile_sent(form.files)
        diagnostics = [diagnostic_view(each) for each in compilation.diagnostics]
        if compilation.program is None:
            return CheckResult(ok=False, diagnostics=diagnostics, program=None, workflows=[])
        program = compilation.program
    sources = {file.name: file.text for file in form.files}
    done = backend.client.operations.deploy(program, form.name, sources=sources or None)
    return CheckResult(
        ok=True,
        diagnostics=diagnostics,
        program=done.program,
        workflows=workflow_views(program),
        before=done.before,
        schedules={verb: list(names) for verb, names in asdict(done.schedules).items()},
    )


def _compiled(text: str) -> Program:
    try:
        return loads(text)
    except ProgramFormatError as error:
        raise BadProgram(f"This is no compiled program: {error}") from error


@router.post("/check")
def check(
    backend: Work,
    caller: Viewer,
    form: SourcesForm,
) -> CheckResult:
    """What the compiler says of sources; nothing is kept."""
    compilation = compile_sent(form.files)
    program = compilation.program
    return CheckResult(
        ok=program is not None,
        diagnostics=[diagnostic_view(each) for each in compilation.diagnostics],
        program=None if program is None else program_hash(program),
        workflows=[] if program is None else workflow_views(program),
    )


@router.post("/check/graph")
def check_graph(
    backend: Work,
    caller: Viewer,
    form: SourcesForm,
    workflow: str,
) -> GraphView:
    """The graph of a workflow in sources that are being edited."""
    return graph_view(definition_graph(compiled(form.files), workflow))


@router.post("/try")
def try_workflow(
    backend: Work,
    caller: Viewer,
    form: TryForm,
) -> TryResult:
    """Runs a workflow of sources in memory, with stubs for what is outside."""
    return try_out(form)
