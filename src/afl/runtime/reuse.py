"""Results that need not be worked for again: of the run this one was forked from, of a cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from afl.kernel.model import Json
from afl.runtime.calls import Settings
from afl.runtime.context import ExecutionContext
from afl.runtime.plan import FacetPlan
from afl.runtime.step import StepDefinition


def reused_returns(
    context: ExecutionContext, step: StepDefinition, facet: FacetPlan
) -> Mapping[str, Json] | None:
    """What outside work came to when it was done before, if that may be used again."""
    if context.run.fork is not None and not _redone(step.path, context.run.fork.redo):
        origin = context.origin(step.path)
        if (
            origin is not None
            and origin.facet_name == step.facet_name
            and _asked(origin) == step.params
            and ("answered" in origin.frame or "reused" in origin.frame)
        ):
            result = origin.frame.get("result")
            step.frame["reused"] = context.run.fork.run
            _take_mixins(step, origin)
            return result if isinstance(result, dict) else origin.returns
    key = memo_key(context, step, facet)
    if key is None:
        return None
    memo = context.memo(facet.facet.name, key)
    if memo is not None:
        step.frame["reused"] = "cache"
    return memo


def _asked(origin: StepDefinition) -> dict[str, Json]:
    """What the work of a step was asked with; a called run may have changed records of mixins."""
    given = origin.frame.get("given")
    return {**origin.params, **given} if isinstance(given, dict) else origin.params


def _take_mixins(step: StepDefinition, origin: StepDefinition) -> None:
    given = origin.frame.get("given")
    if isinstance(given, dict):
        step.frame["given"] = given
        step.params = {**step.params, **{alias: origin.params[alias] for alias in given}}


def memo_key(context: ExecutionContext, step: StepDefinition, facet: FacetPlan) -> str | None:
    """Under which key the result of a step is cached; None if it is not."""
    if "Cache" not in facet.policies and not _has_call_cache(context, step):
        return None
    given = Settings(context, step, facet).get("Cache")
    if given is None:
        return None
    key = given.get("key")
    text = json.dumps(step.params if key is None else key, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _has_call_cache(context: ExecutionContext, step: StepDefinition) -> bool:
    if step.object_type != "VariableAssignment":
        return False
    return "Cache" in context.plan.statement(step.statement_id).policies


def _redone(path: str, redo: tuple[str, ...]) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in redo)
