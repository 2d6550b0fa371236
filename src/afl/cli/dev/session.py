"""A project as it is served: looked at after every change, deployed and loaded anew if it is good,
and told about if it is not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import Protocol

from afl.app.services import Services
from afl.base.errors import AflError
from afl.cli.dev.handlers import HandlersBroken, Loaded, load_apps
from afl.cli.dev.project import Project, Snapshot
from afl.cli.dev.serving import Offer, Serving
from afl.cli.running.watching import Change, Watched
from afl.ir.model import Facet, Program
from afl.ir.types import OptionalOf
from afl.kernel.errors import StoreUnavailable
from afl.kernel.model import Json
from afl.lang.diagnostics.model import Diagnostic
from afl.runtime.entities import Run
from afl.runtime.errors import UnknownProgram
from afl.server.dev_state import DevReport, DevState, shown

DEMO = "demo"


@dataclass(frozen=True, slots=True)
class Served:
    """What is served now."""

    workflows: tuple[str, ...]
    offer: Offer
    files: tuple[str, ...]


class Listener(Protocol):
    """Whom a session tells what it does."""

    def changed(self, change: Change) -> None: ...
    def broken(self, error: str) -> None: ...
    def mended(self) -> None: ...
    def served(self, served: Served) -> None: ...


class Session:
    """Looks at a project, and keeps what is served up to date. One thread looks at a time."""

    def __init__(
        self,
        project: Project,
        services: Services,
        serving: Serving,
        state: DevState,
        listener: Listener,
    ) -> None:
        self._project = project
        self._services = services
        self._serving = serving
        self._state = state
        self._listener = listener
        self._lock = Lock()
        self._sources: tuple[str, ...] = ()
        self._watched = Watched(())
        self._flows: Snapshot | None = None
        self._code: Snapshot | None = None
        self._loaded = Loaded(project.folder)
        self._deployed: str | None = None
        self._diagnostics: tuple[Diagnostic, ...] = ()
        #: why the flows cannot be deployed, why the handlers cannot be loaded, and why what is
        #: loaded cannot be served
        self._undeployed: str | None = None
        self._unloaded: str | None = None
        self._unfit: str | None = None
        self._reloaded_at: datetime | None = None
        self.now: Served | None = None

    def look(self) -> None:
        """Sees what has changed, and does what follows from it."""
        with self._lock:
            flows, code = self._project.flows(), self._project.code()
            changed = [flows != self._flows, code != self._code]
            if not any(changed):
                return
            self._flows, self._code = flows, code
            before = self._error
            renewed = [changed[0] and self._deploy(), changed[1] and self._load()]
            if any(renewed) or (self._unfit and not self._unloaded):
                self._serve()
            self._tell(before)

    def demo(self) -> Run | None:
        """Starts the first run of a project, if nothing ever ran and a workflow needs no inputs."""
        operations = self._services.operations
        if self._deployed is None or operations.list(limit=1):
            return None
        program = self._services.evaluator.plans.get(self._deployed).program
        for facet in program.facets:
            if facet.kind == "workflow" and not needed(facet):
                inputs: dict[str, Json] = {}
                return operations.submit(facet.name, inputs, key=DEMO)
        return None

    @property
    def _error(self) -> str | None:
        return self._undeployed or self._unloaded or self._unfit

    def _deploy(self) -> bool:
        """Makes the flows the current program if they compile; whether that is another one."""
        sources = self._project.sources()
        if sources != self._sources:
            self._sources, self._watched = sources, Watched(sources)
        try:
            change = self._watched.look()
        except AflError as error:  # what pipelines need is not installed
            self._undeployed = error.message
            return False
        if change is None:
            return False
        self._diagnostics = change.diagnostics
        self._listener.changed(change)
        self._undeployed = None
        try:
            program = self._current(change)
        except StoreUnavailable as error:
            # tried again with the next look, as if nothing had been seen
            self._flows, self._sources = None, ()
            self._undeployed = error.message
            return False
        except AflError as error:
            self._undeployed = error.message
            return False
        renewed, self._deployed = program != self._deployed, program
        return renewed

    def _current(self, change: Change) -> str | None:
        """The program that new runs are to use."""
        operations = self._services.operations
        if change.program is not None:
            return operations.deploy(change.program).program
        if self._deployed is not None:
            return self._deployed
        try:
            return operations.program()  # from an earlier life
        except UnknownProgram:
            return None

    def _load(self) -> bool:
        try:
            self._loaded = load_apps(self._project)
        except HandlersBroken as error:
            self._unloaded = error.message
            return False
        self._unloaded = None
        return True

    def _serve(self) -> None:
        if self._deployed is None:
            return
        self._unfit = None
        try:
            offer = self._renew(self._loaded)
        except AflError as error:
            self._unfit = error.message
            if self._serving.is_on:
                return
            # runs at least go on as far as they can without the handlers
            offer = self._renew(Loaded(self._project.folder))
        self._reloaded_at = datetime.now(UTC)
        program = self._services.evaluator.plans.get(self._deployed).program
        self.now = Served(workflows_of(program), offer, self._files())
        self._listener.served(self.now)

    def _renew(self, loaded: Loaded) -> Offer:
        assert self._deployed is not None
        return self._serving.renew(loaded, self._deployed, self._project.script())

    def _tell(self, before: str | None) -> None:
        error = self._error
        if error is not None and error != before:
            self._listener.broken(error)
        elif error is None and before is not None:
            self._listener.mended()
        self._state.tell(
            DevReport(shown(self._diagnostics), self._files(), self._reloaded_at, error)
        )

    def _files(self) -> tuple[str, ...]:
        return (*(self._flows or ()), *(self._code or ()))


def workflows_of(program: Program) -> tuple[str, ...]:
    """The names of all that can be started."""
    return tuple(facet.name for facet in program.facets if facet.kind == "workflow")


def needed(workflow: Facet) -> list[str]:
    """The inputs that a workflow cannot do without."""
    return [
        param.name
        for param in workflow.params
        if param.default is None and not isinstance(param.type, OptionalOf)
    ]
