"""Handlers from a module."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from types import ModuleType

from afl.app.app import App
from afl.base.errors import AflError
from afl.cli.errors import CommandError, InputError, MissingError, RequestError
from afl.lang.diagnostics.suggest import nearest

_NO_APP = (
    'it needs `app = afl.App("name")`, and `@app.handler("namespace.Facet")` before each function '
    "that serves a facet"
)


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
