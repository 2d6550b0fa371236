"""The states of a step and the tables that say which follows which. The tables are the product.

A step walks its table from state to state; most states have nothing to do and are passed through.
Those that do something have a handler, whose action runs once, when the state is entered. A state
named `Continue` is where a step waits for what it has started. There are no flags beside the state:
where a step is says all about what it does next.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType


class StepState:
    """Where a step is. `COMPLETE`, `ERROR` and `SKIPPED` are final."""

    CREATED = "state.statement.Created"
    FACET_INIT_BEGIN = "state.facet.initialization.Begin"
    FACET_INIT_END = "state.facet.initialization.End"
    FACET_SCRIPTS_BEGIN = "state.facet.scripts.Begin"
    FACET_SCRIPTS_CONTINUE = "state.facet.scripts.Continue"
    FACET_SCRIPTS_END = "state.facet.scripts.End"
    MIXIN_BLOCKS_BEGIN = "state.mixin.blocks.Begin"
    MIXIN_BLOCKS_CONTINUE = "state.mixin.blocks.Continue"
    MIXIN_BLOCKS_END = "state.mixin.blocks.End"
    MIXIN_CAPTURE_BEGIN = "state.mixin.capture.Begin"
    MIXIN_CAPTURE_END = "state.mixin.capture.End"
    EVENT_TRANSMIT = "state.EventTransmit"
    STATEMENT_BLOCKS_BEGIN = "state.statement.blocks.Begin"
    STATEMENT_BLOCKS_CONTINUE = "state.statement.blocks.Continue"
    STATEMENT_BLOCKS_END = "state.statement.blocks.End"
    BLOCK_EXECUTION_BEGIN = "state.block.execution.Begin"
    BLOCK_EXECUTION_CONTINUE = "state.block.execution.Continue"
    BLOCK_EXECUTION_END = "state.block.execution.End"
    STATEMENT_CATCH_BEGIN = "state.statement.catch.Begin"
    STATEMENT_CATCH_CONTINUE = "state.statement.catch.Continue"
    STATEMENT_CATCH_END = "state.statement.catch.End"
    STATEMENT_CAPTURE_BEGIN = "state.statement.capture.Begin"
    STATEMENT_CAPTURE_END = "state.statement.capture.End"
    STATEMENT_END = "state.statement.End"
    STATEMENT_COMPLETE = "state.statement.Complete"
    STATEMENT_ERROR = "state.statement.Error"
    STATEMENT_SKIPPED = "state.statement.Skipped"

    @classmethod
    def is_terminal(cls, state: str) -> bool:
        """Whether nothing follows."""
        return state in TERMINAL


TERMINAL = frozenset(
    (StepState.STATEMENT_COMPLETE, StepState.STATEMENT_ERROR, StepState.STATEMENT_SKIPPED)
)


class ObjectType:
    """What a step is an instance of."""

    WORKFLOW = "Workflow"
    VARIABLE_ASSIGNMENT = "VariableAssignment"
    SCHEMA_INSTANTIATION = "SchemaInstantiation"
    MIXIN = "Mixin"  # an aliased mixin of a signature, which runs as a step
    YIELD_ASSIGNMENT = "YieldAssignment"
    SYS_LOG = "SysLog"
    SYS_ASSERT = "SysAssert"
    AND_THEN = "AndThen"  # a clause that is a block
    AND_MAP = "AndMap"  # a clause that is a foreach; its iterations are blocks
    AND_WHEN = "AndWhen"  # a clause, iteration or catch that chooses a case
    AND_CATCH = "AndCatch"
    AND_SCRIPT = "AndScript"  # a clause that is a script
    BLOCK = "Block"  # an iteration of a foreach, or a case


BLOCKS = frozenset(
    (
        ObjectType.AND_THEN,
        ObjectType.AND_MAP,
        ObjectType.AND_WHEN,
        ObjectType.AND_CATCH,
        ObjectType.AND_SCRIPT,
        ObjectType.BLOCK,
    )
)


def _chain(*states: str) -> Mapping[str, str]:
    return dict(pairwise(states))


_S = StepState
_CATCH = _chain(_S.STATEMENT_CATCH_BEGIN, _S.STATEMENT_CATCH_CONTINUE, _S.STATEMENT_CATCH_END)

#: A step that calls a facet, and the root of a run. A failure leads to the catch, if there is one.
STEP_TRANSITIONS: Mapping[str, str] = MappingProxyType(
    {
        **_chain(
            _S.CREATED,
            _S.FACET_INIT_BEGIN,
            _S.FACET_INIT_END,
            _S.FACET_SCRIPTS_BEGIN,
            _S.FACET_SCRIPTS_CONTINUE,
            _S.FACET_SCRIPTS_END,
            _S.MIXIN_BLOCKS_BEGIN,
            _S.MIXIN_BLOCKS_CONTINUE,
            _S.MIXIN_BLOCKS_END,
            _S.MIXIN_CAPTURE_BEGIN,
            _S.MIXIN_CAPTURE_END,
            _S.EVENT_TRANSMIT,
            _S.STATEMENT_BLOCKS_BEGIN,
            _S.STATEMENT_BLOCKS_CONTINUE,
            _S.STATEMENT_BLOCKS_END,
            _S.STATEMENT_CAPTURE_BEGIN,
            _S.STATEMENT_CAPTURE_END,
            _S.STATEMENT_END,
            _S.STATEMENT_COMPLETE,
        ),
        **_CATCH,
        _S.STATEMENT_CATCH_END: _S.STATEMENT_CAPTURE_BEGIN,
    }
)

#: A clause, an iteration, a case or a catch.
BLOCK_TRANSITIONS: Mapping[str, str] = MappingProxyType(
    {
        **_chain(
            _S.CREATED,
            _S.BLOCK_EXECUTION_BEGIN,
            _S.BLOCK_EXECUTION_CONTINUE,
            _S.BLOCK_EXECUTION_END,
            _S.STATEMENT_END,
            _S.STATEMENT_COMPLETE,
        ),
        **_CATCH,
        _S.STATEMENT_CATCH_END: _S.STATEMENT_END,
    }
)

#: A yield, a schema value, a `sys` statement.
VALUE_TRANSITIONS: Mapping[str, str] = MappingProxyType(
    _chain(
        _S.CREATED,
        _S.FACET_INIT_BEGIN,
        _S.FACET_INIT_END,
        _S.STATEMENT_END,
        _S.STATEMENT_COMPLETE,
    )
)


def transitions_of(object_type: str) -> Mapping[str, str]:
    """The table that a step of this type walks."""
    if object_type in BLOCKS:
        return BLOCK_TRANSITIONS
    if object_type in (
        ObjectType.WORKFLOW,
        ObjectType.VARIABLE_ASSIGNMENT,
        ObjectType.MIXIN,
    ):
        return STEP_TRANSITIONS
    return VALUE_TRANSITIONS


class EventState:
    """Where the outside work of a step is. `COMPLETED` and `ERROR` are final."""

    CREATED = "event.Created"
    DISPATCHED = "event.Dispatched"
    PROCESSING = "event.Processing"
    COMPLETED = "event.Completed"
    ERROR = "event.Error"

    @classmethod
    def is_terminal(cls, state: str) -> bool:
        """Whether the work is over."""
        return state in (cls.COMPLETED, cls.ERROR)


EVENT_TRANSITIONS: Mapping[str, str] = MappingProxyType(
    {
        EventState.CREATED: EventState.DISPATCHED,
        EventState.DISPATCHED: EventState.PROCESSING,
        EventState.PROCESSING: EventState.COMPLETED,
    }
)


class RunState:
    """Where a run is. The last three are final."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"

    @classmethod
    def is_terminal(cls, state: str) -> bool:
        """Whether the run is over."""
        return state in (cls.COMPLETED, cls.FAILED, cls.CANCELED)
