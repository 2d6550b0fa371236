"""The apps of a project, loaded anew whenever its code has changed."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from afl.app.app import App
from afl.app.errors import BadHandler
from afl.base.errors import AflError
from afl.cli.dev.project import Project
from afl.runtime.handler_table import HandlerKind, HandlerTable
from afl.runtime.plan import Plan
from afl.runtime.programs import Plans


class HandlersBroken(AflError):
    """The code of a project cannot be loaded. The message is the traceback."""

    code = "dev.handlers_broken"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The apps of a project, and its modules as they were imported for them."""

    folder: Path
    apps: Sequence[App] = ()
    modules: Mapping[str, ModuleType] = field(default_factory=dict)

    def install(self) -> None:
        """Puts the modules where others find them by their names, as handlers in processes are."""
        _forget(self.folder)
        sys.modules.update(self.modules)


def load_apps(project: Project) -> Loaded:
    """Imports the modules of a project as if for the first time. Those from before stay in their
    place, for handlers that are at work.

    Raises:
        HandlersBroken: one of them cannot be imported.
    """
    here = str(project.folder)
    if here not in sys.path:
        sys.path.insert(0, here)
    # a file that is saved twice in a second would be taken for what was compiled first
    sys.dont_write_bytecode = True
    names = project.modules()
    before = _forget(project.folder, names)
    importlib.invalidate_caches()
    try:
        found = [_apps(importlib.import_module(name)) for name in names]
    except Exception as error:
        raise HandlersBroken(_told(error, project.folder)) from error
    finally:
        modules = _forget(project.folder)
        sys.modules.update(before)
    apps = {id(app): app for apps in found for app in apps}
    return Loaded(project.folder, list(apps.values()), modules)


def joined(apps: Iterable[App], plan: Plan, plans: Plans) -> HandlerTable:
    """The handlers of all apps as one table.

    Raises:
        BadHandler: one cannot serve its facet, or two serve the same.
    """
    table = HandlerTable()
    taken: dict[str, str] = {}
    for app in apps:
        own = app.table(plan, plans)
        for name in own.names():
            if name in taken:
                raise BadHandler(f"`{name}` has a handler in the app {taken[name]} already.")
            taken[name] = app.name
            handler = own.find(name)
            assert handler is not None
            table.register(name, handler.function, process=handler.kind is HandlerKind.PROCESS)
    return table


def _apps(module: ModuleType) -> list[App]:
    return [value for value in vars(module).values() if isinstance(value, App)]


def _forget(folder: Path, names: Collection[str] = ()) -> dict[str, ModuleType]:
    """Takes the modules of a folder out of those that are loaded, and those that have these names
    and stand elsewhere."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is None or name == "__main__":
            continue
        path = Path(file)
        is_own = path.is_relative_to(folder) and "site-packages" not in path.parts
        if is_own or name in names:
            found[name] = sys.modules.pop(name)
    return found


def _told(error: Exception, folder: Path) -> str:
    """The traceback from the first line of the project on."""
    told = traceback.TracebackException.from_exception(error)
    own = [
        position
        for position, frame in enumerate(told.stack)
        if Path(frame.filename).is_relative_to(folder)
    ]
    told.stack = traceback.StackSummary.from_list(list(told.stack)[own[0] :] if own else [])
    return "".join(told.format()).rstrip()
