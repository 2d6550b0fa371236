"""Which workflow is meant, and the inputs that it is given on a command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

from afl.base.durations import parse_duration
from afl.base.errors import DurationError
from afl.cli.errors import InputError, MissingError, RequestError, cannot
from afl.ir.model import Facet, Program
from afl.ir.types import DURATION, STRING, EnumRef, OptionalOf, Type, type_text
from afl.kernel.model import Json
from afl.lang.diagnostics.suggest import nearest


def choose(program: Program, name: str | None) -> Facet:
    """The workflow that is meant, by its full or short name, or because it is the only one."""
    workflows = {facet.name: facet for facet in program.facets if facet.kind == "workflow"}
    if not workflows:
        raise MissingError("there is no workflow to run", help="declare one with `workflow`")
    if name is None:
        if len(workflows) == 1:
            return next(iter(workflows.values()))
        raise RequestError(
            f"there are {len(workflows)} workflows: {', '.join(workflows)}",
            help=f"name the one that is meant, such as `{next(iter(workflows))}`",
        )
    found = [full for full in workflows if name in (full, full.rpartition(".")[2])]
    if len(found) == 1 or name in found:
        return workflows[name if name in found else found[0]]
    if found:
        raise RequestError(
            f"'{name}' can be {' or '.join(found)}", help=f"write it in full: `{found[0]}`"
        )
    guess = nearest(name, [*workflows, *(full.rpartition(".")[2] for full in workflows)])
    raise MissingError(
        f"there is no workflow '{name}'",
        help=f"did you mean `{guess}`?" if guess else f"the workflows are {', '.join(workflows)}",
    )


def read_values(
    workflow: Facet, pairs: Sequence[tuple[str, str]], file: str | None
) -> dict[str, Json]:
    """The inputs of a workflow, as `--inputs` and `--input` give them."""
    values = {} if file is None else dict(read_object(file))
    types = {param.name: param.type for param in workflow.params}
    for name, text in pairs:
        if name not in types:
            raise RequestError(
                f"`{workflow.name}` takes no input `{name}`", help=_takes(workflow, name)
            )
        values[name] = _value(name, text, types[name])
    return values


def example_inputs(workflow: Facet) -> str:
    """The options that give what a workflow cannot do without, to be filled in."""
    needed = [
        param.name
        for param in workflow.params
        if param.default is None and not isinstance(param.type, OptionalOf)
    ]
    return "".join(f" --input {name}=..." for name in needed)


def _takes(workflow: Facet, name: str) -> str:
    names = [param.name for param in workflow.params]
    guess = nearest(name, names)
    if guess:
        return f"did you mean `--input {guess}=...`?"
    if not names:
        return "it takes none"
    return "it takes " + ", ".join(
        f"{param.name}: {type_text(param.type)}" for param in workflow.params
    )


def _value(name: str, text: str, type: Type) -> Json:
    """What a text on the command line means for this type."""
    if isinstance(type, OptionalOf):
        return None if text == "null" else _value(name, text, type.of)
    if type == STRING or isinstance(type, EnumRef):
        return text
    if type == DURATION:
        try:
            return parse_duration(text)
        except DurationError as error:
            raise RequestError(f"input `{name}`: {error.message}") from error
    try:
        value: Json = json.loads(text)
    except json.JSONDecodeError as error:
        raise RequestError(
            f"input `{name}` is of type {type_text(type)}, and '{text}' is not JSON: {error}",
            help="a text inside of JSON needs quotes; the shell needs quotes around all of it",
        ) from error
    return value


def read_object(file: str) -> Mapping[str, Json]:
    """The JSON object in a file, or on standard input."""
    try:
        if file == "-":
            text = sys.stdin.read()
        else:
            with open(file, encoding="utf-8") as opened:
                text = opened.read()
    except OSError as error:
        raise cannot("read", file, error) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8", help="save it as UTF-8") from error
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{file} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(
            f"{file} has to be a JSON object with an input for each name",
            help='it looks like {"name": "value"}',
        )
    return value
