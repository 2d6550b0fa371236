"""Turns of an engine: prompt facets are answered by scripts, in the engine's thread and order.

Needs the extra `agents`; the engine loads it when a test wants a model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from afl.base.clock import Clock
from afl.base.durations import parse_duration
from afl.bridges.facet_tools import FacetTools
from afl.bridges.prompt_facets import PromptFacets
from afl.kernel.model import Claim, Commit, Committed, Json, Task
from afl.kernel.port import Store
from afl.runtime.driver import AroundCommit
from afl.runtime.memory_store import MemoryStore
from afl.runtime.programs import Plans
from afl.turns.budget_waits import wake_waiting
from afl.turns.deliverable import SUBMIT
from afl.turns.errors import ModelBusy, ModelFailure, ModelRefused
from afl.turns.feed import SilentFeed
from afl.turns.loop import TurnLoop
from afl.turns.memory_store import MemoryTurnStore
from afl.turns.model import Usage
from afl.turns.models.scripted import Answer, Call, ScriptedModel, Step
from afl.turns.ports import Briefing, Briefs, Model, TurnStore
from afl.turns.prices import PriceBook

#: What a model says: a text, a result to hand in, or one of the steps that `FakeLlm` makes.
Said = str | Mapping[str, Json] | Step
_NAME = "scripted:{facet}"


class FakeLlm:
    """Models that follow scripts. Every turn of a facet gets the replies of its script in order."""

    def __init__(
        self,
        store: MemoryStore,
        plans: Callable[[], Plans],
        clock: Clock,
        around_commit: AroundCommit,
        facet_named: Callable[[str], str],
    ) -> None:
        self.store = MemoryTurnStore(store.kernel)
        self._persistence = store
        self._plans = plans
        self._clock = clock
        self._around_commit = around_commit
        self._facet_named = facet_named
        self._models: dict[str, ScriptedModel] = {}
        self.scripts: dict[str, tuple[Said, ...]] = {}

    # What tests use

    def script(self, facet: str, *replies: Said) -> ScriptedModel:
        """Has a prompt facet answered by these replies. What was asked is in `requests`.

        Args:
            facet: its name; the short one will do where only one facet has it.
            replies: a text, a result to hand in by its names, or what the methods below make.
        """
        name = self._facet_named(facet)
        self.scripts[name] = replies
        model = ScriptedModel([_step(said) for said in replies], _NAME.format(facet=name))
        self._models[name] = model
        return model

    def says(self, text: str, *, tokens: tuple[int, int] | None = None) -> Answer:
        """A text, with the tokens that were read and written."""
        return Answer(text=text, usage=_usage(tokens))

    def submits(
        self, result: Mapping[str, Json], *, tokens: tuple[int, int] | None = None
    ) -> Answer:
        """The result, by its names."""
        return self.calls((SUBMIT, result), tokens=tokens)

    def calls(
        self, *tools: tuple[str, Mapping[str, Json]], tokens: tuple[int, int] | None = None
    ) -> Answer:
        """Calls of tools, each with its arguments."""
        made = tuple(Call(name, dict(arguments)) for name, arguments in tools)
        return Answer(calls=made, usage=_usage(tokens))

    def busy(self, after: str | None = None) -> ModelBusy:
        """No answer now, every time; `after` such as `10s` says when to ask again."""
        span = None if after is None else timedelta(milliseconds=parse_duration(after))
        return ModelBusy("the model is busy", after=span)

    def refuses(self, message: str) -> ModelRefused:
        """No answer, ever."""
        return ModelRefused(message)

    @property
    def tokens(self) -> tuple[int, int]:
        """The tokens that all models have read and written so far."""
        sums = [each.usage for each in self.store.usage("model")]
        return sum(each.input for each in sums), sum(each.output for each in sums)

    # What the driver uses

    def serves(self, task: Task) -> bool:
        """Whether a task is a turn that a script answers."""
        return task.kind == "turn" and task.name in self._models

    def run(self, claim: Claim) -> None:
        """Goes on with a turn as far as it can."""
        plans = self._plans()
        briefs = PromptFacets(self._persistence, plans, models=("scripted:",), overrides=True)
        loop = TurnLoop(
            cast("TurnStore", _AtCommit(self.store, self._around_commit, claim.task)),
            self,
            PriceBook(),
            _Scripted(briefs),
            FacetTools(self.store, self._persistence, plans),
            SilentFeed(),
            clock=self._clock,
        )
        asyncio.run(loop.run(claim))

    def wake(self) -> int:
        """Lets turns go on whose budgets have room again."""
        return wake_waiting(self.store)

    def find(self, name: str) -> Model:
        """The model of a facet; see `ports.Models`."""
        return self._models[name.partition(":")[2]]


class _Scripted:
    """Briefs in which each facet has a model of its own."""

    def __init__(self, briefs: Briefs) -> None:
        self._briefs = briefs

    def names(self) -> tuple[str, ...]:
        return self._briefs.names()

    def brief(self, task: Task) -> Briefing:
        briefing = self._briefs.brief(task)
        models = (_NAME.format(facet=briefing.facet),)
        return replace(briefing, brief=replace(briefing.brief, models=models))


class _AtCommit:
    """A store of turns whose commits go through the engine, which may die there."""

    def __init__(self, store: MemoryTurnStore, around_commit: AroundCommit, task: Task) -> None:
        self._store = store
        self.kernel = _Kernel(store.kernel, around_commit, task)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._store, name)


class _Kernel:
    def __init__(self, kernel: Store, around_commit: AroundCommit, task: Task) -> None:
        self._kernel = kernel
        self._around_commit = around_commit
        self._task = task

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the kernel has
        return getattr(self._kernel, name)

    def commit(self, commits: Sequence[Commit], **options: Any) -> list[Committed]:  # noqa: ANN401
        done: list[Committed] = []
        self._around_commit(
            self._task, lambda: done.extend(self._kernel.commit(commits, **options))
        )
        return done


def _step(said: Said) -> Step:
    if isinstance(said, str):
        return Answer(text=said)
    if isinstance(said, Answer | ModelFailure):
        return said
    return Answer(calls=(Call(SUBMIT, dict(said)),))


def _usage(tokens: tuple[int, int] | None) -> Usage | None:
    return None if tokens is None else Usage(*tokens)
