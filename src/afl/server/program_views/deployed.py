"""Deployed programs: by hash or by name, with their sources and versions."""

from __future__ import annotations

from collections.abc import Sequence

from afl.ir.codec import loads
from afl.ir.model import Program
from afl.kernel.model import Worker
from afl.runtime.deployments import DeployedVersion
from afl.runtime.errors import UnknownProgram
from afl.runtime.persistence import PersistenceAPI
from afl.server.backend import Backend
from afl.server.models.system import (
    DeploymentLine,
    ProgramVersion,
    ProgramView,
    SourceFile,
)
from afl.server.program_views.declarations import facet_views, unserved, workflow_views

#: How many earlier programs of a name are told of.
_VERSIONS = 50


def deployment_lines(backend: Backend) -> list[DeploymentLine]:
    """The current programs by name."""
    persistence = backend.services.persistence
    workers = persistence.kernel.live_workers()
    return [
        _line(name, program, stored_program(persistence, program), workers)
        for name, program in persistence.deployments().items()
    ]


def _line(name: str, hash: str, program: Program, workers: Sequence[Worker]) -> DeploymentLine:
    return DeploymentLine(
        name=name,
        program=hash,
        workflows=workflow_views(program),
        unserved=unserved(program, workers),
    )


def program_view(backend: Backend, name: str) -> ProgramView:
    """A program by its hash or the name of its deployment.

    Raises:
        UnknownProgram: there is none.
    """
    persistence = backend.services.persistence
    digest = backend.client.operations.program(name)
    program = stored_program(persistence, digest)
    names = [each for each, current in persistence.deployments().items() if current == digest]
    versions = _versions(persistence, digest)
    return ProgramView(
        program=digest,
        deployed_as=names,
        workflows=workflow_views(program),
        facets=facet_views(program, persistence.kernel.live_workers()),
        sources=[
            SourceFile(name=name, text=text)
            for name, text in persistence.get_sources(digest).items()
        ],
        versions=[ProgramVersion.model_validate(each) for each in versions],
    )


def _versions(persistence: PersistenceAPI, digest: str) -> list[DeployedVersion]:
    """All programs under the names that this one has, or had, the newest first."""
    found: list[DeployedVersion] = []
    for name in persistence.deployments():
        history = persistence.deployment_history(name, _VERSIONS)
        if any(each.program == digest for each in history):
            found += history
    return sorted(found, key=lambda each: each.deployed_at, reverse=True)


def programs_under(backend: Backend, name: str) -> set[str]:
    """The hashes that a name stands for, now and before; of a hash, itself."""
    digest = backend.client.operations.program(name)
    history = backend.services.persistence.deployment_history(name, _VERSIONS)
    return {digest, *(each.program for each in history)}


def stored_program(persistence: PersistenceAPI, digest: str) -> Program:
    """The program as it was saved last, with the lines of its sources."""
    text = persistence.get_program(digest)
    if text is None:
        raise UnknownProgram(f"There is no program {digest}. Deploy it with `afl deploy` first.")
    return loads(text)
