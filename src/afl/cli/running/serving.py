"""Handlers from a module, and what a workflow needs that they do not serve."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import ModuleType

from afl.app.app import App
from afl.base.errors import AflError
from afl.cli.errors import CommandError, InputError, MissingError, RequestError
from afl.ir.model import Facet, Literal, Policy, Program, SourceSpan
from afl.ir.walking import calls, parts
from afl.lang.diagnostics.suggest import nearest
from afl.runtime.calls import ASK, SEND, SLEEP, UNTIL, WAIT

_BUILT_IN = (SLEEP, UNTIL, WAIT, SEND, ASK)
_NO_APP = (
    'it needs `app = afl.App("name")`, and `@app.handler("namespace.Facet")` before each function '
    "that serves a facet"
)


def _no_model(_facet: Facet) -> bool:
    """Whether a model answers a facet, where there is none."""
    return False


def load_app(handlers: str) -> App:
    """The app that `module`, `module:object` or `file.py:object` names."""
    name, _, attribute = handlers.partition(":")
    module = _load(name)
    if attribute:
        return _named(module, name, attribute)
    apps = {key: value for key, value in vars(module).items() if isinstance(value, App)}
    distinct = {id(app): key for key, app in reversed(apps.items())}
    if len(distinct) == 1:
        return apps[next(iter(distinct.values()))]
    if distinct:
        names = sorted(distinct.values())
        raise RequestError(
            f"the module {name} has several apps: {', '.join(names)}",
            help=f"name the one that is meant: `--handlers {name}:{names[0]}`",
        )
    raise MissingError(f"the module {name} has no app", help=_NO_APP)


def _named(module: ModuleType, name: str, attribute: str) -> App:
    found = getattr(module, attribute, None)
    if isinstance(found, App):
        return found
    if found is not None:
        raise RequestError(f"{name}:{attribute} is a {type(found).__name__}, not an afl.App")
    apps = [key for key, value in vars(module).items() if isinstance(value, App)]
    guess = nearest(attribute, apps) or next(iter(apps), None)
    raise MissingError(
        f"the module {name} has no {attribute}",
        help=f"did you mean `--handlers {name}:{guess}`?" if guess else _NO_APP,
    )


def _load(name: str) -> ModuleType:
    """Imports a module, from the current folder too, as `python -m` would."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    if name.endswith(".py"):
        return _load_file(name)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from error
        modules = [each.removesuffix(".py") for each in os.listdir(here) if each.endswith(".py")]
        guess = nearest(name, modules)
        raise MissingError(
            f"there is no module {name}",
            help=f"did you mean `--handlers {guess}`?"
            if guess
            else "it is looked for in the current folder, and among what is installed",
        ) from error
    except Exception as error:
        raise _broken(name, error) from error


def _load_file(path: str) -> ModuleType:
    if not os.path.isfile(path):
        raise InputError(f"cannot read {path}: there is no such file")
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _broken(path, error) from error
    return module


def _broken(name: str, error: Exception) -> CommandError:
    """What a module raised when it was imported, and where."""
    what = error.message if isinstance(error, AflError) else f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "importlib" not in frame.filename]
    where = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    return CommandError(f"the handlers of {name} cannot be loaded: {what}{where}")


@dataclass(frozen=True, slots=True)
class Need:
    """An event facet that a workflow calls, and the first step that does."""

    facet: Facet
    step: str
    place: SourceSpan | None


def needs_of(
    program: Program, workflow: str, by_model: Callable[[Facet], bool] = _no_model
) -> list[Need]:
    """The event facets that somebody has to serve for a workflow to get through: those that models
    do not answer, and the tools of those that they do."""
    facets = {facet.name: facet for facet in program.facets}
    found: dict[str, Need] = {}
    seen = {workflow}
    rest = [facets[workflow]]
    while rest:
        caller = rest.pop()
        called = [(part.facet, part.id) for part in calls(caller)]
        if caller.prompt is not None and by_model(caller):
            called += [(tool.name, caller.name) for tool in caller.prompt.tools]
        for name, where in called:
            facet = facets.get(name)
            if facet is None or facet.name in seen:
                continue
            seen.add(facet.name)
            rest.append(facet)
            if _is_served(facet) and not by_model(facet):
                found[facet.name] = Need(facet, where, program.spans.get(where))
    return list(found.values())


def missing_from(
    app: App | None,
    program: Program,
    workflow: str,
    by_model: Callable[[Facet], bool] = _no_model,
) -> list[Need]:
    """What a workflow needs and neither an app serves nor a model answers."""
    served = [] if app is None else app.facets

    def answers(facet: Facet) -> bool:
        return by_model(facet) and not _is_among(facet.name, served)

    needs = needs_of(program, workflow, answers)
    return [need for need in needs if not _is_among(need.facet.name, served)]


def unserved(program: Program, served: Collection[str]) -> list[str]:
    """The event facets of a program, but for those for people, that are not among the served."""
    return [
        facet.name
        for facet in program.facets
        if _is_served(facet) and not is_for_a_person(facet) and not _is_among(facet.name, served)
    ]


def is_for_a_person(facet: Facet) -> bool:
    """Whether a person does the work of a facet."""
    return any(policy.name.rpartition(".")[2] == "Human" for policy in facet.policies)


def _is_served(facet: Facet) -> bool:
    """Whether a facet needs somebody to serve it."""
    return facet.kind == "event" and facet.script is None and facet.name not in _BUILT_IN


def _is_among(name: str, served: Collection[str]) -> bool:
    return name in served or name.rpartition(".")[2] in served


def lists_of(program: Program) -> tuple[str, ...]:
    """The lists of tasks that a program names; one that it computes is not among them."""
    named = {
        argument.value.value
        for part in parts(program.facets)
        if isinstance(part, Policy) and part.name.rpartition(".")[2] == "Queue"
        for argument in part.args
        if isinstance(argument.value, Literal)
    }
    return ("default", *sorted(str(name) for name in named if name != "default"))
