"""A program, indexed for running: what stands where, who waits for whom, which expressions mean
what.

Everything here is known before a run and shared by all runs of a program. Declarations are indexed
when they are first called, so a large program costs only what is used of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from afl.ir import model as ir
from afl.ir.types import Type
from afl.kernel.model import Json
from afl.runtime.conversions import Conversions
from afl.runtime.errors import UnknownFacet
from afl.runtime.expressions import Compiled, DeclaredTypes, TypeOf, compile_expr, constant

#: Arguments of policies by their short names.
Policies = Mapping[str, Mapping[str, Compiled]]

#: What a `catch` of a declaration is called below a step, which may have a `catch` of its own.
FACET_CATCH = "facet-catch"


@dataclass(frozen=True, slots=True)
class Args:
    """Arguments, ready to be evaluated."""

    values: tuple[tuple[str, Compiled], ...]

    @classmethod
    def of(cls, args: Sequence[ir.Argument], types: TypeOf) -> Args:
        return cls(tuple((arg.name, compile_expr(arg.value, types)) for arg in args))


@dataclass(frozen=True, slots=True)
class MixinPlan:
    """A mixin of a call or a signature."""

    id: str
    facet: str
    alias: str | None
    args: Args


@dataclass(frozen=True, slots=True)
class Target:
    """What a yield gives to one owner."""

    owner: str
    args: Args


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a block. `inner` are the needs within the block, `outer` those beyond it."""

    id: str
    name: str
    node: ir.Statement
    args: Args
    inner: tuple[str, ...]
    outer: tuple[str, ...]
    mixins: tuple[MixinPlan, ...] = ()
    policies: Policies = field(default_factory=dict)
    targets: tuple[Target, ...] = ()
    condition: Compiled | None = None


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """The statements of a block, and for everything that one of them needs, which do."""

    statements: tuple[Statement, ...]
    by_name: Mapping[str, Statement]
    dependents: Mapping[str, tuple[str, ...]]
    #: the needs of all statements that stand beyond the block
    outer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CasePlan:
    id: str
    condition: Compiled | None


@dataclass(frozen=True, slots=True)
class WhenPlan:
    cases: tuple[CasePlan, ...]


@dataclass(frozen=True, slots=True)
class MapPlan:
    """A foreach."""

    variable: str
    iterable: Compiled
    limit: Compiled | None


@dataclass(frozen=True, slots=True)
class Spot:
    """How to get from the path of a declaration's call to the path of something in it.

    A part is fixed, or None where the index of an iteration goes. `order` puts what stands in the
    declaration into the order in which it is written.
    """

    parts: tuple[str | None, ...]
    order: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class FacetPlan:
    """A declaration that can be called."""

    facet: ir.Facet
    policies: Policies
    #: mixins of the signature that run as steps, and arguments of those that only fill parameters
    mixins: tuple[MixinPlan, ...]
    fills: tuple[tuple[str, Compiled], ...]
    param_defaults: Mapping[str, Json]
    returns: Mapping[str, Type]
    return_defaults: Mapping[str, Json]

    @property
    def is_event(self) -> bool:
        return self.facet.kind == "event"


@dataclass(slots=True)
class _Index:
    """What the declarations indexed so far consist of, by id."""

    statements: dict[str, Statement] = field(default_factory=dict)
    blocks: dict[str, BlockPlan] = field(default_factory=dict)
    whens: dict[str, WhenPlan] = field(default_factory=dict)
    maps: dict[str, MapPlan] = field(default_factory=dict)
    scripts: dict[str, ir.Script] = field(default_factory=dict)
    clauses: dict[str, ir.Clause] = field(default_factory=dict)
    needs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    catches: dict[str, ir.Catch] = field(default_factory=dict)
    guards: dict[str, tuple[str, ...]] = field(default_factory=dict)
    spots: dict[str, Spot] = field(default_factory=dict)
    #: steps that something outside of their own block waits for
    awaited: set[str] = field(default_factory=set)


class Plan:
    """The index of a program."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.conversions = Conversions(program)
        self._types = DeclaredTypes(program)
        self._facets = {facet.name: facet for facet in program.facets}
        self._schemas = {schema.name: schema for schema in program.schemas}
        #: facets that catch what fails in a call of them, the step's own body included
        self._caught = frozenset(
            facet.name
            for facet in program.facets
            if facet.catch is not None and facet.kind != "workflow"
        )
        #: whether any declaration starts nothing more after a failure
        self.has_fail_fast = any(
            policy.name.rpartition(".")[2] == "FailFast"
            for facet in program.facets
            for policy in facet.policies
        )
        self._plans: dict[str, FacetPlan] = {}
        #: the ways of steps through their states: see `routes`
        self.routes: dict[tuple[str, str, str], Mapping[str, str]] = {}
        self._index = _Index()
        #: declarations, and ids of what is in them, that are known to be in the index
        self._known: set[str] = set()

    def _facet_plan(self, facet: ir.Facet) -> FacetPlan:
        types = self._types.within(facet.name)
        mixins = [_mixin(mixin, types) for mixin in facet.mixins]
        return FacetPlan(
            facet,
            policies_of(facet.policies, types),
            tuple(mixin for mixin in mixins if mixin.alias is not None),
            tuple(fill for mixin in mixins if mixin.alias is None for fill in mixin.args.values),
            self._defaults(facet.params),
            {each.name: each.type for each in facet.returns},
            self._defaults(facet.returns),
        )

    def _defaults(self, params: Sequence[ir.Param]) -> dict[str, Json]:
        return {
            each.name: self.conversions.value(constant(each.default), each.type)
            for each in params
            if each.default is not None
        }

    def has_facet(self, name: str) -> bool:
        return name in self._facets

    def facet(self, name: str) -> FacetPlan:
        """The declaration of this name. Unknown is an error, never a step without effect."""
        plan = self._plans.get(name)
        if plan is None:
            facet = self._facets.get(name)
            if facet is None:
                raise UnknownFacet(f"The program has no facet `{name}`.")
            plan = self._plans[name] = self._facet_plan(facet)
        return plan

    def schema(self, name: str) -> ir.Schema:
        found = self._schemas.get(name)
        if found is None:
            raise UnknownFacet(f"The program has no schema `{name}`.")
        return found

    def index(self, id: str) -> _Index:
        """The index, in which the declaration of this id is known."""
        if id in self._known:
            return self._index
        declaration = id.partition("/")[0]
        if declaration not in self._known:
            facet = self._facets.get(declaration)
            if facet is None:
                raise UnknownFacet(f"The program has no facet `{declaration}`.")
            _Indexer(self._index, facet, self._types.within(declaration), self._caught).run()
            self._known.add(declaration)
        self._known.add(id)
        return self._index

    def statement(self, id: str) -> Statement:
        return self.index(id).statements[id]

    def block(self, id: str) -> BlockPlan | None:
        return self.index(id).blocks.get(id)

    def when(self, id: str) -> WhenPlan | None:
        return self.index(id).whens.get(id)

    def map(self, id: str) -> MapPlan | None:
        return self.index(id).maps.get(id)

    def needs(self, id: str) -> tuple[str, ...]:
        """What a clause or a catch has to wait for before it starts."""
        return self.index(id).needs.get(id, ())

    def catch(self, guarded: str) -> ir.Catch | None:
        """The catch of a step, a clause or a declaration."""
        return self.index(guarded).catches.get(guarded)

    def has_body(self, id: str) -> bool:
        """Whether a step has clauses of its own."""
        statement = self.index(id).statements.get(id)
        return (
            statement is not None
            and isinstance(statement.node, ir.Step)
            and bool(statement.node.clauses)
        )

    def is_awaited(self, id: str) -> bool:
        """Whether something outside of its block may wait for a step."""
        return id in self.index(id).awaited

    def guards(self, id: str) -> tuple[str, ...]:
        """The catches that, if they ran, make a yield or a script clause not count."""
        return self.index(id).guards.get(id, ())

    def spot(self, id: str) -> Spot:
        return self.index(id).spots[id]

    def script(self, id: str) -> ir.Script:
        return self.index(id).scripts[id]


def policies_of(policies: Sequence[ir.Policy], types: TypeOf) -> Policies:
    """Policies by their short names."""
    return {
        policy.name.rpartition(".")[2]: dict(Args.of(policy.args, types).values)
        for policy in policies
    }


def _mixin(mixin: ir.Mixin, types: TypeOf) -> MixinPlan:
    return MixinPlan(mixin.id, mixin.facet, mixin.alias, Args.of(mixin.args, types))


class _Indexer:
    """One declaration, walked once. `guards` are the catches around the place."""

    def __init__(
        self, index: _Index, facet: ir.Facet, types: TypeOf, caught: frozenset[str]
    ) -> None:
        self._to = index
        self._facet = facet
        self._types = types
        self._caught = caught

    def run(self) -> None:
        facet, name = self._facet, self._facet.name
        for position, mixin in enumerate(facet.mixins):
            if mixin.alias is not None:
                self._to.spots[mixin.id] = Spot(("with", mixin.alias), (-1, position))
        if facet.catch is not None:
            self._to.catches[name] = facet.catch
            self._catch(facet.catch, Spot((FACET_CATCH,), (len(facet.clauses),)), ())
        guards = () if facet.catch is None else (facet.catch.id,)
        self._clauses(facet.clauses, Spot((), ()), guards)

    def _clauses(self, clauses: Sequence[ir.Clause], owner: Spot, guards: tuple[str, ...]) -> None:
        for position, clause in enumerate(clauses):
            spot = _below(owner, str(position), position)
            to = self._to
            to.spots[clause.id] = spot
            to.clauses[clause.id] = clause
            self._need(clause.id, clause.needs)
            inside = guards
            if clause.catch is not None:
                to.catches[clause.id] = clause.catch
                self._catch(clause.catch, _below(spot, "catch", -1), guards)
                inside = (*guards, clause.catch.id)
            if clause.foreach is not None:
                to.maps[clause.id] = MapPlan(
                    clause.foreach.variable,
                    compile_expr(clause.foreach.iterable, self._types),
                    None
                    if clause.foreach.limit is None
                    else compile_expr(clause.foreach.limit, self._types),
                )
                spot = Spot((*spot.parts, None), (*spot.order, None))
            self._body(clause.id, clause.body, spot, inside)

    def _body(
        self, id: str, body: ir.Block | ir.When | ir.Script, spot: Spot, guards: tuple[str, ...]
    ) -> None:
        if isinstance(body, ir.Script):
            self._to.scripts[id] = body
            self._to.guards[id] = guards
        elif isinstance(body, ir.Block):
            self._block(id, body, spot, guards)
        else:
            self._to.whens[id] = WhenPlan(
                tuple(
                    CasePlan(
                        case.id,
                        None
                        if case.condition is None
                        else compile_expr(case.condition, self._types),
                    )
                    for case in body.cases
                )
            )
            for position, case in enumerate(body.cases):
                place = _below(spot, f"case-{position}", position)
                self._to.spots[case.id] = place
                self._block(case.id, case.block, place, guards)

    def _catch(self, catch: ir.Catch, spot: Spot, guards: tuple[str, ...]) -> None:
        self._to.spots[catch.id] = spot
        self._need(catch.id, catch.needs)
        self._body(catch.id, catch.body, spot, guards)

    def _need(self, id: str, needs: tuple[str, ...]) -> None:
        self._to.needs[id] = needs
        self._to.awaited.update(needs)

    def _block(self, id: str, block: ir.Block, spot: Spot, guards: tuple[str, ...]) -> None:
        here = {statement.id for statement in block.statements}
        statements = []
        dependents: dict[str, list[str]] = {}
        for position, node in enumerate(block.statements):
            name = node.id.rpartition("/")[2]
            outer = tuple(need for need in node.needs if need not in here)
            statement = _statement(node, name, here, outer, self._types)
            statements.append(statement)
            self._to.statements[node.id] = statement
            self._to.awaited.update(outer)
            for need in node.needs:
                dependents.setdefault(need, []).append(name)
            place = _below(spot, name, position)
            self._to.spots[node.id] = place
            if isinstance(node, ir.Yield):
                self._to.guards[node.id] = guards
            elif isinstance(node, ir.Step):
                self._step(node, place, guards)
        self._to.blocks[id] = BlockPlan(
            tuple(statements),
            {each.name: each for each in statements},
            {need: tuple(names) for need, names in dependents.items()},
            tuple(dict.fromkeys(need for each in statements for need in each.outer)),
        )

    def _step(self, step: ir.Step, spot: Spot, guards: tuple[str, ...]) -> None:
        if step.catch is not None:
            self._to.catches[step.id] = step.catch
            self._catch(step.catch, _below(spot, "catch", len(step.clauses)), guards)
            guards = (*guards, step.catch.id)
        if step.clauses and step.facet in self._caught:
            by_facet = f"{step.id}/{FACET_CATCH}"
            self._to.spots[by_facet] = _below(spot, FACET_CATCH, len(step.clauses))
            guards = (*guards, by_facet)
        self._clauses(step.clauses, spot, guards)


def _below(spot: Spot, part: str, position: int) -> Spot:
    return Spot((*spot.parts, part), (*spot.order, position))


def _statement(
    node: ir.Statement, name: str, here: set[str], outer: tuple[str, ...], types: TypeOf
) -> Statement:
    inner = tuple(need for need in node.needs if need in here)
    match node:
        case ir.Step():
            mixins = tuple(_mixin(mixin, types) for mixin in node.mixins if mixin.alias is not None)
            policies = policies_of(node.policies, types)
            args = Args.of(node.args, types)
            return Statement(node.id, name, node, args, inner, outer, mixins, policies)
        case ir.Yield():
            targets = tuple(Target(each.owner, Args.of(each.args, types)) for each in node.targets)
            return Statement(node.id, name, node, Args(()), inner, outer, targets=targets)
        case ir.Assert():
            condition = compile_expr(node.condition, types)
            return Statement(node.id, name, node, Args(()), inner, outer, condition=condition)
        case ir.Log():
            return Statement(node.id, name, node, Args.of(node.args, types), inner, outer)
