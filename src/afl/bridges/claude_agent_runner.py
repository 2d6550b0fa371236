"""`ClaudeAgentRunner`: a run from its beginning to its end in one call, in this process, with a
model for every event facet that no handler serves. Needs the extra `agents`.

It works by the same machines as workers do. What a run calls is born in its hands, so that nobody
else on the store can take it, and nothing is left behind to be taken.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from afl.base.system import SystemIds
from afl.bridges.any_facet import AnyFacet
from afl.bridges.facet_tools import FacetTools
from afl.bridges.run_in_hand import RunInHand
from afl.ir import model as ir
from afl.kernel.model import Json, TaskId, WorkerId
from afl.runtime.errors import BadInputs, UnknownRun
from afl.runtime.evaluator import Evaluator, ExecutionResult
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.runner import ToolRegistry
from afl.runtime.step import WorkflowId
from afl.turns.feed import SilentFeed
from afl.turns.loop import TurnLoop
from afl.turns.model import Limits
from afl.turns.models.registry import Registry
from afl.turns.models.script_files import load_script
from afl.turns.models.scripted import ScriptedModel
from afl.turns.ports import Model, Models, TurnStore
from afl.turns.prices import PriceBook, Rate

#: Whom to ask where neither the runner nor a prompt says.
DEFAULT_MODEL = "anthropic:claude-sonnet-5"
_SCRIPTED = "scripted:"


class ClaudeAgentRunner:
    """Executes workflows with a model, synchronously. Use one in one thread at a time."""

    def __init__(
        self,
        evaluator: Evaluator,
        persistence: PersistenceAPI,
        tool_registry: ToolRegistry | None = None,
        model: str | Model | None = None,
        max_turns: int = 10,
        max_retries: int = 2,
        max_tokens: int = 8192,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """
        Args:
            tool_registry: handlers of event facets, and of tools that prompts name. A facet is
                found by its qualified name, then by its short one, then goes to the default
                handler; what has none goes to the model.
            model: whom to ask, by its name or as it is; else the model that a prompt names, else
                `anthropic:claude-sonnet-5`.
            max_turns: how often the model is asked for one step.
            max_retries: how often in a row an answer that breaks the rules is handed back to it.
            max_tokens: how long one answer may be.
            sleep: how to wait for what time brings, such as `afl.time.Sleep`.
        """
        self._evaluator = evaluator
        self._persistence = persistence
        self._registry = tool_registry or ToolRegistry()
        self._model = model
        self._limits = Limits(model_calls=max_turns, repairs=max_retries)
        self._max_tokens = max_tokens
        self._sleep = sleep

    def run(
        self,
        workflow_ast: ir.Program | str,
        inputs: Mapping[str, Json] | None = None,
        workflow: str | None = None,
    ) -> ExecutionResult:
        """Starts a run of a program, and goes on until it has ended or waits for a person, an
        event or somebody else's work.

        Args:
            workflow_ast: the program, as it is or as its text.
            workflow: which of its workflows; not needed if there is only one.

        Raises:
            BadInputs: the program has no such workflow, or the inputs do not fit.
        """
        program = self._evaluator.plans.add(workflow_ast)
        chosen = workflow or _only_workflow(self._evaluator.plans.get(program).program)
        return self.resume(self._evaluator.start(program, chosen, inputs))

    def resume(self, workflow_id: WorkflowId) -> ExecutionResult:
        """Goes on with a run that waited: for a person who has answered, for an event that came."""
        root = self._persistence.kernel.get_task(TaskId(workflow_id))
        if root is None:
            raise UnknownRun(f"There is no run {workflow_id}.")
        models = _models(self._model)
        worker = WorkerId(f"claude-agent-runner-{SystemIds().new_id()}")
        with asyncio.Runner() as loop:
            run = RunInHand(
                self._evaluator,
                self._registry,
                lambda store: self._turns(store, models),
                root,
                worker,
                self._sleep,
                loop,
            )
            try:
                run.to_the_end()
            finally:
                run.leave()
                loop.run(models.close())
        return self._evaluator.result(workflow_id)

    def _turns(self, store: TurnStore, models: Registry) -> TurnLoop:
        plans = self._evaluator.plans
        briefs = AnyFacet(
            self._persistence,
            plans,
            model=DEFAULT_MODEL if self._model is None else _name_of(self._model),
            overrides=self._model is not None,
            limits=self._limits,
            max_tokens=self._max_tokens,
        )
        return TurnLoop(
            store,
            cast("Models", models),
            PriceBook(models.rate),
            briefs,
            FacetTools(store, self._persistence, plans),
            SilentFeed(),
        )


class _OneModel(Registry):
    """A model that was given as it is; others cannot be asked."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._only = model

    def find(self, name: str) -> Model:
        return self._only

    def rate(self, name: str) -> Rate | None:
        return self._only.rate if isinstance(self._only, ScriptedModel) else None


def _models(model: str | Model | None) -> Registry:
    if model is None or isinstance(model, str):
        if model is not None and model.startswith(_SCRIPTED):
            # whoever names a script here gives leave to read it
            script = model.removeprefix(_SCRIPTED)
            return Registry(scripted={script: load_script(Path(script), model)})
        return Registry()
    return _OneModel(model)


def _name_of(model: str | Model) -> str:
    if isinstance(model, str):
        return model
    return str(getattr(model, "name", type(model).__name__))


def _only_workflow(program: ir.Program) -> str:
    names = [facet.name for facet in program.facets if facet.kind == "workflow"]
    if len(names) == 1:
        return names[0]
    if not names:
        raise BadInputs("The program has no workflow to run.")
    raise BadInputs(f"The program has {len(names)} workflows; name one of {', '.join(names)}.")
