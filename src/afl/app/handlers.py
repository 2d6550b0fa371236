"""Functions as handlers of facets: their signatures against the program, their arguments by name.

A function takes the parameters of its facet by name, and a `Context` if it asks for one. It answers
with the returns of the facet: as a map or a dataclass with their names, or, where there is only
one, as that value itself.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from operator import attrgetter
from pickle import PicklingError
from typing import Any, Union, get_args, get_origin, get_type_hints

from afl.app.context import Context
from afl.app.errors import BadHandler, Skip
from afl.app.values import record_of, to_json, to_python
from afl.ir import model as ir
from afl.ir.types import JSON, MapOf, OptionalOf, Primitive, SchemaRef, Type, type_text
from afl.kernel.model import Json
from afl.runtime.handler_table import HandlerFunction, Invocation, Permanent
from afl.runtime.operations import empty_result
from afl.runtime.plan import FacetPlan, Plan
from afl.runtime.programs import Plans

#: What a plain annotation can hold of the plain types of the language.
_HOLDS: Mapping[object, tuple[str, ...]] = {
    str: ("String",),
    int: ("Int", "Long", "Duration"),
    float: ("Double", "Int", "Long"),
    bool: ("Boolean",),
}
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function. Without an annotation it takes anything."""

    name: str
    annotation: object
    is_needed: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes: arguments of the facet by name, and a context under some name."""

    parameters: tuple[Parameter, ...]
    context: str | None
    takes_all: bool

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Signature:
        hints = _hints(function)
        context = None
        parameters = []
        takes_all = False
        for each in inspect.signature(function).parameters.values():
            hint = hints.get(each.name, Any)
            if each.kind is inspect.Parameter.VAR_KEYWORD:
                takes_all = True
            elif each.kind not in _NAMED:
                raise BadHandler(
                    f"`{function.__name__}` takes `{each.name}` by position; a handler gets its "
                    "arguments by name."
                )
            elif hint is Context or (each.name == "ctx" and hint is Any):
                context = each.name
            else:
                is_needed = each.default is inspect.Parameter.empty
                parameters.append(Parameter(each.name, hint, is_needed))
        return cls(tuple(parameters), context, takes_all)

    def arguments(self, params: Mapping[str, Json], invocation: Invocation) -> dict[str, Any]:
        """The arguments of a call, as they are annotated."""
        known = {each.name: each for each in self.parameters}
        given: dict[str, Any] = {
            name: to_python(value, known[name].annotation, name) if name in known else value
            for name, value in params.items()
            if self.takes_all or name in known
        }
        if self.context is not None:
            given[self.context] = Context(invocation)
        return given


@dataclass(frozen=True, slots=True)
class Registered:
    """A function that serves a facet."""

    facet: str
    function: Callable[..., Any]
    signature: Signature
    process: bool

    def problems(self, plan: Plan) -> list[str]:
        """Why the function cannot serve the facet of this program; nothing if it can."""
        facet = _facet_of(plan.program, self.facet)
        if isinstance(facet, str):
            return [f"`{self.function.__qualname__}` serves `{self.facet}`, but {facet}"]
        return [
            f"`{self.function.__qualname__}` cannot serve `{facet.name}`: {problem}"
            for problem in _mismatches(self.signature, facet)
        ]

    def handler(self, plans: Plans, plan: Plan) -> HandlerFunction:
        """The function as the worker calls it."""
        if self.process:
            facet = _facet_of(plan.program, self.facet)
            assert isinstance(facet, ir.Facet)
            return ProcessCall(self.function, facet.returns)
        if inspect.iscoroutinefunction(self.function):

            async def call_async(invocation: Invocation) -> Mapping[str, Json]:
                served = self._served(plans, invocation)
                try:
                    answer = await self.function(**self._arguments(invocation))
                except Skip as skip:
                    return served.skipped(skip)
                return served.result(answer)

            return call_async

        def call(invocation: Invocation) -> Mapping[str, Json]:
            served = self._served(plans, invocation)
            try:
                answer = self.function(**self._arguments(invocation))
            except Skip as skip:
                return served.skipped(skip)
            return served.result(answer)

        return call

    def _served(self, plans: Plans, invocation: Invocation) -> _Served:
        """The facet of a call. Its run may be pinned to an older program than the deployed one."""
        served = _Served.of(plans, invocation)
        facet = served.facet.facet
        if problems := _mismatches(self.signature, facet):
            raise Permanent(
                f"`{self.function.__qualname__}` cannot serve `{facet.name}` of the program that "
                f"this run is pinned to: {' '.join(problems)}"
            )
        return served

    def _arguments(self, invocation: Invocation) -> dict[str, Any]:
        return self.signature.arguments(invocation.params, invocation)


@dataclass(frozen=True, slots=True)
class ProcessCall:
    """A function on its way to another process. The result is checked when the run takes it in."""

    function: Callable[..., Any]
    returns: tuple[ir.Param, ...]

    def __call__(self, invocation: Invocation) -> Mapping[str, Json]:
        arguments = Signature.of(self.function).arguments(invocation.params, invocation)
        try:
            answer = self.function(**arguments)
        except Skip:
            return {}
        return named_result(answer, self.returns, None)

    def __reduce__(self) -> tuple[type[_ByName], tuple[str, str, tuple[ir.Param, ...]]]:
        # by its name, whatever has the name here now: the module may just be loaded anew
        module, name = self.function.__module__, self.function.__qualname__
        if "<" in name:
            raise PicklingError(
                f"`{name}` does not stand at the top level of a module, so another process cannot "
                "find it. Move it there, or leave `process` out."
            )
        return _ByName, (module, name, self.returns)


@dataclass(frozen=True, slots=True)
class _ByName:
    """A function that has come to another process."""

    module: str
    name: str
    returns: tuple[ir.Param, ...]

    def __call__(self, invocation: Invocation) -> Mapping[str, Json]:
        function = attrgetter(self.name)(import_module(self.module))
        return ProcessCall(function, self.returns)(invocation)


@dataclass(frozen=True, slots=True)
class _Served:
    """The facet that a task is for, in the program that its run is pinned to."""

    plan: Plan
    facet: FacetPlan

    @classmethod
    def of(cls, plans: Plans, invocation: Invocation) -> _Served:
        given = invocation.task.input
        assert isinstance(given, dict)
        plan = plans.get(str(given["program"]))
        return cls(plan, plan.facet(str(given["facet"])))

    def result(self, answer: object) -> Mapping[str, Json]:
        """The answer of a function, checked. A wrong field is an error that names it."""
        facet = self.facet.facet
        result = named_result(answer, facet.returns, self.plan)
        return self.plan.conversions.record(result, facet.returns, facet.name)

    def skipped(self, skip: Skip) -> Mapping[str, Json]:
        result = empty_result(self.facet)
        if isinstance(result, str):
            raise Permanent(
                f"The handler skipped `{self.facet.facet.name}` ({skip}), which returns `{result}` "
                "without a default."
            )
        return result


def named_result(
    answer: object, returns: tuple[ir.Param, ...], plan: Plan | None
) -> dict[str, Json]:
    """The answer of a function by the names of the returns."""
    if answer is None and not (len(returns) == 1 and _may_be_null(returns[0].type)):
        return {}
    record = record_of(answer)
    kinds = {each.name: each.type for each in returns}
    if record is not None and (
        len(returns) != 1 or record.keys() <= kinds.keys() or not _may_be_map(returns[0].type)
    ):
        return {name: to_json(value, kinds.get(name), plan) for name, value in record.items()}
    if len(returns) == 1:
        (only,) = returns
        return {only.name: to_json(answer, only.type, plan)}
    names = ", ".join(f"`{name}`" for name in kinds) or "nothing"
    raise Permanent(
        f"The handler answered with a {type(answer).__name__}, but the facet returns {names}. "
        "Answer with a map or a dataclass with these names."
    )


def _hints(function: Callable[..., Any]) -> Mapping[str, object]:
    try:
        return get_type_hints(function)
    except NameError as error:
        raise BadHandler(
            f"The annotations of `{function.__qualname__}` cannot be read: {error}. Import or "
            "define what they name where the module is loaded."
        ) from error


def _may_be_null(type_: Type) -> bool:
    return isinstance(type_, OptionalOf) or type_ == JSON


def _may_be_map(type_: Type) -> bool:
    inner = type_.of if isinstance(type_, OptionalOf) else type_
    return isinstance(inner, SchemaRef | MapOf) or inner == JSON


def _facet_of(program: ir.Program, name: str) -> ir.Facet | str:
    """The event facet of a name, full or short; else what is wrong with the name."""
    found = [each for each in program.facets if name in (each.name, each.name.rpartition(".")[2])]
    events = [each for each in found if each.kind == "event"]
    exact = [each for each in events if each.name == name]
    if exact or len(events) == 1:
        facet = (exact or events)[0]
        if facet.script is not None:
            return f"`{facet.name}` is served by its script."
        return facet
    if events:
        listed = ", ".join(f"`{each.name}`" for each in events)
        return f"several facets have that name: {listed}. Use a full name."
    if found:
        return f"`{found[0].name}` is a {found[0].kind}: only event facets have handlers."
    names = [each.name for each in program.facets if each.kind == "event"]
    near = get_close_matches(name, names, n=1)
    hint = f" Did you mean `{near[0]}`?" if near else ""
    return f"the deployed program has no such event facet.{hint}"


def _mismatches(signature: Signature, facet: ir.Facet) -> list[str]:
    params = {each.name: each for each in facet.params}
    known = {each.name for each in signature.parameters}
    found = []
    for parameter in signature.parameters:
        param = params.get(parameter.name)
        if param is None:
            if parameter.is_needed:
                near = get_close_matches(parameter.name, params.keys() - known, n=1)
                hint = f"; did you mean `{near[0]}`?" if near else "."
                found.append(f"it wants `{parameter.name}`, which the facet does not have{hint}")
        elif (wrong := _misfit(parameter.annotation, param.type)) is not None:
            found.append(f"`{parameter.name}` is {wrong}.")
    if not signature.takes_all:
        found += [f"it does not take `{name}`." for name in params if name not in known]
    return found


def _misfit(annotation: object, type_: Type) -> str | None:
    """What is wrong with an annotation for values of a type; None if nothing is known to be."""
    told = type_text(type_)
    if get_origin(annotation) in (Union, types.UnionType):
        options = [each for each in get_args(annotation) if each is not type(None)]
        inner = type_.of if isinstance(type_, OptionalOf) else type_
        misfits = [_misfit(each, inner) for each in options]
        return misfits[0] if options and all(misfits) else None
    if annotation is Any or annotation is object:
        return None
    if isinstance(type_, OptionalOf):
        return f"`{told}`, so it may be null; annotate it as optional"
    holds = _HOLDS.get(annotation)
    if holds is None or type_ == JSON or not isinstance(type_, Primitive) or type_.name in holds:
        return None
    name = getattr(annotation, "__name__", annotation)
    return f"`{told}` in the program and `{name}` in the function"
