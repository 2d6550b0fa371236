"""What a program comes to, by an interpreter that is as simple as can be.

It has no store, no counters and no faults. A run is a tree of parts; all of them are looked at
again and again until nothing moves. It shares the evaluation of expressions with the runtime, and
nothing else: names are looked up in environments, yields are handed up from part to part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from afl.base.errors import AflError
from afl.ir import model as ir
from afl.ir.types import ListOf
from afl.kernel.model import Json
from afl.runtime.expressions import EvaluationError, constant
from afl.testing.flow_simulation.expected import Expected, Row, Status
from afl.testing.flow_simulation.parts import (
    Answers,
    Declarations,
    Env,
    Error,
    Failure,
    Given,
    Part,
    Run,
    error_of,
)


class Stuck(Exception):
    """Nothing moves, and the run has not ended."""


class Reference:
    """Runs the workflows of one program."""

    def __init__(self, program: ir.Program, answers: Answers) -> None:
        self._program = Declarations(program, answers)

    def run(self, workflow: str, inputs: Mapping[str, Json]) -> Expected:
        run = Run(self._program, self.run)
        root = _Call(run, "", Env(None), self._program.facets[workflow], dict(inputs))
        while root.status is None:
            moves = run.moves
            root.look()
            if run.moves == moves:
                raise Stuck(workflow)
        rows = {
            path: Row(_status(part), part.params, part.returns, part.error)
            for path, part in run.parts.items()
        }
        ambiguous = run.ambiguous or any(child.ambiguous for child in run.children.values())
        return Expected(
            _status(root),
            root.returns,
            root.error,
            rows,
            frozenset(run.events),
            run.limits,
            run.children,
            ambiguous,
        )


def _status(part: Part) -> Status:
    assert part.status is not None
    return part.status


class _Statement(Part):
    """A yield, a log, an assertion or a schema value, as soon as it has what it needs."""

    def __init__(self, run: Run, path: str, env: Env, node: ir.Statement) -> None:
        self._env = env
        self._node = node
        self._given: list[Given] = []
        super().__init__(run, path)

    def life(self) -> Iterator[None]:
        node, env, program = self._node, self._env, self.run.program
        yield from self.wait_for_needs(env, node.needs)
        match node:
            case ir.Yield():
                for target in node.targets:
                    values = program.values(target.args, env, node.id)
                    returns = program.facets[self._receiver(target.owner)].returns
                    record = program.conversions.record(values, returns, complete=False)
                    self._given.append((target.owner, record))
                    self.returns = record
            case ir.Assert():
                if program.value(node.condition, env, node.id) is not True:
                    message = f"The assertion `{node.id}` does not hold."
                    raise Failure(
                        {"type": "AssertionFailed", "message": message, "step": self.path}
                    )
            case ir.Log():
                self.params = program.values(node.args, env, node.id)
            case ir.Step():
                fields = program.schemas[node.facet].fields
                values = program.values(node.args, env, node.id)
                self.returns = program.conversions.record(values, fields, node.facet)

    def _receiver(self, owner: str) -> str:
        """The facet whose returns an owner has."""
        if "/" not in owner:
            return owner
        step = self._env.find(owner)
        assert isinstance(step, _Call)
        return step.facet.name

    def yielded(self) -> list[Given]:
        return self._given


class _Body(Part):
    """A block, or the case of a `when` that is chosen. With a path: an iteration, or a case."""

    def __init__(
        self, run: Run, path: str | None, at: str, env: Env, body: ir.Block | ir.When
    ) -> None:
        self._at = at
        self._env = env
        self._body = body
        self._parts: list[Part] = []
        super().__init__(run, path)

    def life(self) -> Iterator[None]:
        if isinstance(self._body, ir.Block):
            self._parts = [self._part(node) for node in self._body.statements]
        else:
            self._parts = [self._case(self._body)]
        yield from self.wait_for(self._parts)

    def _part(self, node: ir.Statement) -> Part:
        path = _join(self._at, node.id.rpartition("/")[2])
        part: Part
        if isinstance(node, ir.Step) and node.kind != "schema":
            part = _Call(self.run, path, self._env, self.run.program.facets[node.facet], step=node)
        else:
            part = _Statement(self.run, path, self._env, node)
        if isinstance(node, ir.Step):
            self._env.steps[node.id] = part
        return part

    def _case(self, when: ir.When) -> Part:
        for case in when.cases:
            program = self.run.program
            if case.condition is None or program.value(case.condition, self._env, case.id):
                path = _join(self._at, case.id.rpartition("/")[2])
                return _Body(self.run, path, path, Env(self._env), case.block)
        raise AssertionError("a `when` has a default case")

    def yielded(self) -> list[Given]:
        return list(chain.from_iterable(part.yielded() for part in self._parts))


class _Catch(Part):
    """What takes the place of a part that failed."""

    def __init__(self, run: Run, path: str, env: Env, catch: ir.Catch, error: Error) -> None:
        self._env = Env(env, errors={catch.id: error})
        self._catch = catch
        self._body: _Body | None = None
        super().__init__(run, path)
        self.params = error

    def life(self) -> Iterator[None]:
        yield from self.wait_for_needs(self._env, self._catch.needs)
        self._body = _Body(self.run, None, self.path, self._env, self._catch.body)
        yield from self.wait_for([self._body])

    def yielded(self) -> list[Given]:
        return [] if self._body is None else self._body.yielded()


class _Clause(Part):
    def __init__(self, run: Run, path: str, env: Env, clause: ir.Clause) -> None:
        self._env = env
        self._clause = clause
        self._counting: Sequence[Part] = ()
        super().__init__(run, path)

    def life(self) -> Iterator[None]:
        clause = self._clause
        yield from self.wait_for_needs(self._env, clause.needs)
        try:
            self._counting = self._bodies()
            yield from self.wait_for(self._counting)
        except (Failure, AflError) as problem:
            if clause.catch is None:
                raise
            error = problem.error if isinstance(problem, Failure) else error_of(problem, self.path)
            guard = _Catch(self.run, _join(self.path, "catch"), self._env, clause.catch, error)
            self._counting = [guard]
            yield from self.wait_for(self._counting)

    def _bodies(self) -> Sequence[Part]:
        clause, run, env = self._clause, self.run, self._env
        assert not isinstance(clause.body, ir.Script)
        if clause.foreach is None:
            # the steps of a plain block can be seen by later clauses
            inner = env if isinstance(clause.body, ir.Block) else Env(env)
            return [_Body(run, None, self.path, inner, clause.body)]
        items = run.program.value(clause.foreach.iterable, env, clause.id)
        assert isinstance(items, list)
        if clause.foreach.limit is not None:
            limit = run.program.value(clause.foreach.limit, env, clause.id)
            if not isinstance(limit, int) or limit < 1:
                raise EvaluationError(f"the limit of a foreach must be at least 1, not {limit}")
            run.limits[self.path] = limit
        paths = [_join(self.path, str(index)) for index in range(len(items))]
        envs = [Env(env, variables={clause.id: item}) for item in items]
        bodies = [
            _Body(run, path, path, inner, clause.body)
            for path, inner in zip(paths, envs, strict=True)
        ]
        for body, item in zip(bodies, items, strict=True):
            body.params = {clause.foreach.variable: item}
        return bodies

    def yielded(self) -> list[Given]:
        return list(chain.from_iterable(part.yielded() for part in self._counting))


class _Call(Part):
    """A step that calls a facet, a mixin that runs as a step, or the root of a run."""

    def __init__(
        self,
        run: Run,
        path: str,
        env: Env,
        facet: ir.Facet,
        inputs: dict[str, Json] | None = None,
        *,
        step: ir.Step | None = None,
    ) -> None:
        self.facet = facet
        self._env = env
        self._own = Env(None, call=self)
        self._step = step
        self._inputs = inputs
        self._counting: Sequence[Part] = ()
        self._caught_here = False
        self._passed_on: list[Given] = []
        super().__init__(run, path)

    def life(self) -> Iterator[None]:
        if self._step is not None:
            yield from self.wait_for_needs(self._env, self._step.needs)
        inside = False
        try:
            self.params = self._arguments()
            inside = True
            yield from self._mix_in()
            self._work()
            yield from self._do_body()
        except (Failure, AflError) as problem:
            error = problem.error if isinstance(problem, Failure) else error_of(problem, self.path)
            yield from self._do_catches(error, inside=inside)
        self._take_yields()

    def _arguments(self) -> dict[str, Json]:
        program, facet, given = self.run.program, self.facet, self._inputs
        if given is None:
            assert self._step is not None
            given = program.values(self._step.args, self._env, self._step.id)
        return program.conversions.record(given, facet.params, facet.name)

    def _mix_in(self) -> Iterator[None]:
        parts: dict[str, _Call] = {}
        for mixin in self.facet.mixins:
            if mixin.alias is not None:
                values = self.run.program.values(mixin.args, self._own, self.facet.name)
                path = _join(self.path, "with", mixin.alias)
                facet = self.run.program.facets[mixin.facet]
                parts[mixin.alias] = _Call(self.run, path, self._own, facet, values)
        yield from self.wait_for(list(parts.values()))
        for alias, part in parts.items():
            self.params[alias] = {**part.params, **part.returns}

    def _work(self) -> None:
        """Has outside work done."""
        run, facet = self.run, self.facet
        if facet.kind == "event":
            run.events.add(self.path)
            answer = run.program.answers(facet.name, self.params)
            if answer.result is None:
                raise Failure({**(answer.error or {}), "step": self.path})
            result = answer.result
        elif facet.kind == "workflow" and self.path:
            child = run.children[self.path] = run.call_workflow(facet.name, self.params)
            if child.status is not Status.COMPLETE:
                raise Failure({**(child.error or {"type": "Error"}), "step": self.path})
            result = child.outputs
        else:
            return
        self.returns = run.program.conversions.record(result, facet.returns, facet.name)

    def _do_body(self) -> Iterator[None]:
        """The clauses of the step, else those of its facet."""
        clauses: Sequence[ir.Clause] = ()
        env = self._own
        if self._step is not None and self._step.clauses:
            clauses, env = self._step.clauses, Env(self._env)
        elif self.facet.kind != "workflow" or not self.path:
            clauses = self.facet.clauses
        self._counting = [
            _Clause(self.run, _join(self.path, str(position)), env, clause)
            for position, clause in enumerate(clauses)
        ]
        yield from self.wait_for(self._counting)

    def _do_catches(self, error: Error, *, inside: bool) -> Iterator[None]:
        """The catch of the facet, then that of the step; the first that completes counts."""
        catches: list[tuple[str, Env, ir.Catch]] = []
        elsewhere = self.facet.kind == "workflow" and self.path
        if self.facet.catch is not None and inside and not elsewhere:
            catches.append(("facet-catch", self._own, self.facet.catch))
        if self._step is not None and self._step.catch is not None:
            catches.append(("catch", self._env, self._step.catch))
        for name, env, catch in catches:
            guard = _Catch(self.run, _join(self.path, name), env, catch, error)
            self.returns, self._counting = {}, [guard]
            self._caught_here = name == "catch"
            try:
                yield from self.wait_for(self._counting)
                return
            except Failure as failure:
                error = failure.error
        raise Failure(error)

    def _take_yields(self) -> None:
        mine = {self.facet.name} if self._step is None else {self.facet.name, self._step.id}
        record: dict[str, Json] = {}
        for part in self._counting:
            for owner, values in part.yielded():
                if owner not in mine:
                    self._passed_on.append((owner, values))
                    continue
                for name, value in values.items():
                    before = record.get(name)
                    both = isinstance(before, list) and isinstance(value, list)
                    record[name] = [*before, *value] if both else value  # type: ignore[misc]
        self.returns.update(record)
        for each in self.facet.returns:
            if each.name not in self.returns:
                # what the catch of a step leaves out is null for whoever reads the step
                is_list = isinstance(each.type, ListOf) and not self._caught_here
                empty: Json = [] if is_list else None
                self.returns[each.name] = empty if each.default is None else constant(each.default)

    def yielded(self) -> list[Given]:
        return self._passed_on


def _join(path: str, *parts: str) -> str:
    return "/".join((path, *parts)) if path else "/".join(parts)
