"""From a call to a step that is ready to work: arguments, scripts before the body, mixins."""

from __future__ import annotations

from afl.ir import model as ir
from afl.kernel.model import Json
from afl.runtime.calls import is_prepared, script_call
from afl.runtime.context import count
from afl.runtime.handlers.base import StateChangeResult, StateHandler, StepFailure
from afl.runtime.plan import Args, MixinPlan
from afl.runtime.scope import Place
from afl.runtime.states import ObjectType, StepState
from afl.runtime.step import join
from afl.runtime.timeouts import set_timer


class FacetInitializationBeginHandler(StateHandler):
    """Evaluates the arguments of a call, and fills in what the call leaves out."""

    state_name = StepState.FACET_INIT_BEGIN
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        step, plan = self.step, self.context.plan
        facet = plan.facet(step.facet_name)
        given, aliased = self._given()
        names = {param.name for param in facet.facet.params}
        if facet.fills:
            # what fills parameters may read others, with their defaults
            step.params = {**facet.param_defaults, **given, **aliased}
            own = Place(self.context, step.path)
            for name, value in facet.fills:
                if name in names and name not in given:
                    given[name] = value(own)
        extra = {name: value for name, value in given.items() if name not in names}
        known = {name: value for name, value in given.items() if name in names}
        step.params = {
            **plan.conversions.record(known, facet.facet.params, f"{facet.facet.name}"),
            **extra,
            **aliased,
        }
        set_timer(self.context, step)
        return self.transition()

    def _given(self) -> tuple[dict[str, Json], dict[str, Json]]:
        """The arguments, and the records that mixins of the call hand over by alias."""
        step, context = self.step, self.context
        if step.object_type == ObjectType.WORKFLOW:
            return dict(context.run.inputs), {}
        place = self.place
        if step.object_type == ObjectType.MIXIN:
            return _evaluated(_mixin_of(self).args, place), {}
        statement = context.plan.statement(step.statement_id)
        context.require([place.path(need) for need in statement.node.needs])
        given = _evaluated(statement.args, place)
        if context.run.fork is not None:
            given.update(context.run.fork.overrides.get(step.path, {}))
        return given, {str(mixin.alias): self._record(mixin, place) for mixin in statement.mixins}

    def _record(self, mixin: MixinPlan, place: Place) -> Json:
        plan = self.context.plan
        return plan.conversions.record(
            _evaluated(mixin.args, place), plan.facet(mixin.facet).facet.params, mixin.facet
        )


def _mixin_of(handler: StateHandler) -> MixinPlan:
    plan, step = handler.context.plan, handler.step
    declaration = plan.facet(step.statement_id.partition("/")[0])
    return next(mixin for mixin in declaration.mixins if mixin.id == step.statement_id)


def _evaluated(args: Args, place: Place) -> dict[str, Json]:
    return {name: value(place) for name, value in args.values}


class ValueInitializationHandler(StateHandler):
    """Evaluates what is complete as soon as it has its values: a schema, a yield, a log, an
    assertion."""

    state_name = StepState.FACET_INIT_BEGIN
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        step, context = self.step, self.context
        statement = context.plan.statement(step.statement_id)
        place = self.place
        context.require([place.path(need) for need in statement.node.needs])
        match step.object_type:
            case ObjectType.SCHEMA_INSTANTIATION:
                schema = context.plan.schema(step.facet_name)
                step.returns = context.plan.conversions.record(
                    _evaluated(statement.args, place), schema.fields, schema.name
                )
            case ObjectType.YIELD_ASSIGNMENT:
                self._yield(place)
            case ObjectType.SYS_LOG:
                step.params = _evaluated(statement.args, place)
                context.log(step.path, step.params)
            case ObjectType.SYS_ASSERT:
                assert statement.condition is not None
                if statement.condition(place) is not True:
                    raise StepFailure(
                        {
                            "type": "AssertionFailed",
                            "message": f"The assertion `{statement.id}` does not hold.",
                            "step": step.path,
                        }
                    )
        return self.transition()

    def _yield(self, place: Place) -> None:
        """The values that a yield gives to the owner named by `facet_name`."""
        step, plan = self.step, self.context.plan
        statement = plan.statement(step.statement_id)
        target = next(each for each in statement.targets if each.owner == step.facet_name)
        returns = plan.facet(self._receiver(target.owner)).facet.returns
        step.returns = plan.conversions.record(
            _evaluated(target.args, place), returns, complete=False
        )

    def _receiver(self, owner: str) -> str:
        """The facet whose returns the owner of a yield has."""
        plan = self.context.plan
        if "/" not in owner:
            return owner
        if "/with/" in owner:
            declaration = plan.facet(owner.partition("/")[0])
            return next(mixin.facet for mixin in declaration.mixins if mixin.id == owner)
        node = plan.statement(owner).node
        assert isinstance(node, ir.Step)
        return node.facet


class FacetScriptsBeginHandler(StateHandler):
    """Has the script before a body run; it sets inputs. A script on an event facet serves it."""

    state_name = StepState.FACET_SCRIPTS_BEGIN
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        facet = self.context.plan.facet(self.step.facet_name).facet
        prepared = is_prepared(self.context, self.step)
        if facet.script is not None and facet.kind != "event" and not prepared:
            self.step.frame["scripts"] = 1
            self.context.call(
                script_call(self.context, self.step, facet.script, self.step.params, tag="#script")
            )
        return self.transition()


class FacetScriptsContinueHandler(StateHandler):
    """Waits for the script."""

    state_name = StepState.FACET_SCRIPTS_CONTINUE
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        return self.stay() if count(self.step, "scripts") else self.transition()


def _running_mixins(handler: StateHandler) -> tuple[MixinPlan, ...]:
    context, step = handler.context, handler.step
    return () if is_prepared(context, step) else context.plan.facet(step.facet_name).mixins


class MixinBlocksBeginHandler(StateHandler):
    """Starts the mixins of the signature that run as steps."""

    state_name = StepState.MIXIN_BLOCKS_BEGIN
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        mixins = _running_mixins(self)
        self.step.frame["left"] = len(mixins)
        for mixin in mixins:
            path = join(self.step.path, "with", str(mixin.alias))
            self.context.create(path, ObjectType.MIXIN, mixin.id, mixin.facet)
        return self.transition()


class MixinBlocksContinueHandler(StateHandler):
    """Waits for the mixins."""

    state_name = StepState.MIXIN_BLOCKS_CONTINUE
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        if count(self.step, "left"):
            return self.stay()
        failed = self.step.frame.pop("error", None)
        if isinstance(failed, dict):
            raise StepFailure(failed)
        return self.transition()


class MixinCaptureBeginHandler(StateHandler):
    """Hands over what the mixins came to, by alias."""

    state_name = StepState.MIXIN_CAPTURE_BEGIN
    __slots__ = ()

    def process_state(self) -> StateChangeResult:
        step, context = self.step, self.context
        mixins = _running_mixins(self)
        context.require([join(step.path, "with", str(mixin.alias)) for mixin in mixins])
        for mixin in mixins:
            row = context.row(join(step.path, "with", str(mixin.alias)))
            step.params[str(mixin.alias)] = {**row.params, **row.returns}
        return self.transition()
