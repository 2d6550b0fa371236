"""What the reference is made of: parts that end, and the environments in which names mean
something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from afl.base.errors import AflError
from afl.ir import model as ir
from afl.kernel.model import Json
from afl.runtime.conversions import Conversions
from afl.runtime.expressions import DeclaredTypes, compile_expr
from afl.testing.flow_simulation.answers import Answer
from afl.testing.flow_simulation.expected import Expected, Status

#: What an event facet answers.
Answers = Callable[[str, Mapping[str, Json]], Answer]
Error = dict[str, Json]
#: Values for the owner with an id, as a yield gives them.
Given = tuple[str, dict[str, Json]]


class Failure(Exception):
    def __init__(self, error: Error) -> None:
        super().__init__(error)
        self.error = error


class Skip(Exception):
    """Never to run, because of steps that failed."""

    def __init__(self, causes: frozenset[Part]) -> None:
        super().__init__()
        self.causes = causes


class Declarations:
    """A program: what is declared, and what its expressions mean."""

    def __init__(self, program: ir.Program, answers: Answers) -> None:
        self.answers = answers
        self.facets = {facet.name: facet for facet in program.facets}
        self.schemas = {schema.name: schema for schema in program.schemas}
        self.conversions = Conversions(program)
        self._types = DeclaredTypes(program)

    def value(self, expr: ir.Expr, env: Env, id: str) -> Json:
        return compile_expr(expr, self._types.within(id.partition("/")[0]))(env)

    def values(self, args: Sequence[ir.Argument], env: Env, id: str) -> dict[str, Json]:
        return {arg.name: self.value(arg.value, env, id) for arg in args}


@dataclass(slots=True)
class Run:
    program: Declarations
    #: runs a workflow that is called as a step
    call_workflow: Callable[[str, Mapping[str, Json]], Expected]
    parts: dict[str, Part] = field(default_factory=dict)
    events: set[str] = field(default_factory=set)
    limits: dict[str, int] = field(default_factory=dict)
    children: dict[str, Expected] = field(default_factory=dict)
    ambiguous: bool = False
    #: counts everything that happens
    moves: int = 0


class Env:
    """What can be seen at a place. Ids are unique, so no name can hide another."""

    def __init__(
        self,
        parent: Env | None,
        *,
        call: Part | None = None,
        variables: Mapping[str, Json] | None = None,
        errors: Mapping[str, Error] | None = None,
    ) -> None:
        self.parent = parent
        self.call: Part | None = call or (None if parent is None else parent.call)
        self.variables = variables or {}
        self.errors = errors or {}
        self.steps: dict[str, Part] = {}

    def find(self, id: str) -> Part | None:
        return next((env.steps[id] for env in self._chain() if id in env.steps), None)

    def input(self, name: str) -> Json:
        assert self.call is not None
        return self.call.params.get(name)

    def variable(self, clause: str, name: str) -> Json:
        return next(env.variables[clause] for env in self._chain() if clause in env.variables)

    def step(self, ref: ir.StepValue) -> Json:
        part = self.find(ref.step)
        assert part is not None
        if ref.source == "return":
            return part.returns.get(ref.name)
        if ref.source == "step":
            return {**part.params, **part.returns}
        return part.params.get(ref.name)

    def error(self, ref: ir.ErrorValue) -> Json:
        error = next(env.errors[ref.catch] for env in self._chain() if ref.catch in env.errors)
        return error.get(ref.field) if ref.field else dict(error)

    def _chain(self) -> Iterator[Env]:
        env: Env | None = self
        while env is not None:
            yield env
            env = env.parent


class Part:
    """Something that ends. With a path it is a step; without, a piece of one."""

    def __init__(self, run: Run, path: str | None) -> None:
        self.run = run
        self.status: Status | None = None
        self.error: Error | None = None
        #: the failed steps because of which it never ran
        self.causes: frozenset[Part] = frozenset()
        self.params: dict[str, Json] = {}
        self.returns: dict[str, Json] = {}
        self._life = self.life()
        run.moves += 1
        if path is not None:
            assert path not in run.parts
            run.parts[path] = self
        self.path = path or ""
        self._is_row = path is not None

    def look(self) -> None:
        """Goes on as far as it can now."""
        if self.status is not None:
            return
        try:
            next(self._life)
            return
        except StopIteration:
            self.status = Status.COMPLETE
        except Skip as skip:
            self.status, self.causes = Status.SKIPPED, skip.causes
        except Failure as failure:
            self.status, self.error = Status.FAILED, failure.error
        except AflError as error:
            self.status = Status.FAILED
            self.error = error_of(error, self.path)
        self.run.moves += 1

    def life(self) -> Iterator[None]:
        """Yields whenever it has to wait; raises if it fails or is skipped."""
        raise NotImplementedError

    def yielded(self) -> list[Given]:
        """What it gives to others, as written."""
        return []

    def wait_for(self, parts: Sequence[Part]) -> Iterator[None]:
        """Until all have ended; then as the first of them that did not complete."""
        while True:
            for part in parts:
                part.look()
            if all(part.status is not None for part in parts):
                break
            yield
        for part in parts:
            if part.status is Status.FAILED:
                assert part.error is not None
                raise Failure(part.error)
        causes = frozenset(chain.from_iterable(part.causes for part in parts))
        if causes:
            self._skip(causes)

    def _skip(self, causes: frozenset[Part]) -> None:
        """What was skipped because of a failure inside, which a catch has dealt with, is a failure
        of the step that both are in."""
        inside = [cause for cause in causes if _is_below(cause.path, self.path)]
        if not self._is_row or not inside:
            raise Skip(causes)
        self.run.ambiguous |= len(causes) > 1
        assert inside[0].error is not None
        raise Failure(inside[0].error)

    def wait_for_needs(self, env: Env, needs: Sequence[str]) -> Iterator[None]:
        """Until all have ended; one that is not complete is enough to be skipped."""
        while True:
            found = [part for part in map(env.find, needs) if part is not None]
            if len(found) == len(needs) and all(part.status is not None for part in found):
                break
            yield
        failed = frozenset(part for part in found if part.status is Status.FAILED)
        causes = failed.union(*(part.causes for part in found))
        if causes:
            raise Skip(causes)


def error_of(error: AflError, path: str) -> Error:
    return {"type": type(error).__name__, "message": str(error), "step": path}


def _is_below(path: str, above: str) -> bool:
    return not above or path.startswith(f"{above}/")
