"""What the states of a step do. States that are not here have nothing to do."""

from __future__ import annotations

from collections.abc import Mapping

from afl.runtime.handlers.base import StateChangeResult, StateHandler
from afl.runtime.handlers.blocks import BlockExecutionBeginHandler, BlockExecutionContinueHandler
from afl.runtime.handlers.completion import (
    EventTransmitHandler,
    StatementBlocksBeginHandler,
    StatementBlocksContinueHandler,
    StatementCaptureBeginHandler,
    StatementCatchBeginHandler,
    StatementCatchContinueHandler,
    StatementCompleteHandler,
)
from afl.runtime.handlers.initialization import (
    FacetInitializationBeginHandler,
    FacetScriptsBeginHandler,
    FacetScriptsContinueHandler,
    MixinBlocksBeginHandler,
    MixinBlocksContinueHandler,
    MixinCaptureBeginHandler,
    ValueInitializationHandler,
)
from afl.runtime.states import (
    BLOCK_TRANSITIONS,
    STEP_TRANSITIONS,
    VALUE_TRANSITIONS,
    transitions_of,
)

__all__ = ["StateChangeResult", "StateHandler", "handlers_of"]

Handlers = Mapping[str, type[StateHandler]]


def _table(*handlers: type[StateHandler]) -> Handlers:
    return {handler.state_name: handler for handler in handlers}


_CATCH = (StatementCatchBeginHandler, StatementCatchContinueHandler)
_OF_TABLE: Mapping[int, Handlers] = {
    id(STEP_TRANSITIONS): _table(
        FacetInitializationBeginHandler,
        FacetScriptsBeginHandler,
        FacetScriptsContinueHandler,
        MixinBlocksBeginHandler,
        MixinBlocksContinueHandler,
        MixinCaptureBeginHandler,
        EventTransmitHandler,
        StatementBlocksBeginHandler,
        StatementBlocksContinueHandler,
        StatementCaptureBeginHandler,
        StatementCompleteHandler,
        *_CATCH,
    ),
    id(BLOCK_TRANSITIONS): _table(
        BlockExecutionBeginHandler,
        BlockExecutionContinueHandler,
        StatementCompleteHandler,
        *_CATCH,
    ),
    id(VALUE_TRANSITIONS): _table(ValueInitializationHandler, StatementCompleteHandler),
}


def handlers_of(object_type: str) -> Handlers:
    """The handlers of a step of this type, by state."""
    return _OF_TABLE[id(transitions_of(object_type))]
