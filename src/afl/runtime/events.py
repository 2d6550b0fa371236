"""Events in the seeds' words: the outside work of a step, from its making to its end.

The kernel's calls are the truth about events: `persistence.get_event` reads one as it stands. The
classes here are for programs that carry events themselves, and for tests of handlers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from afl.base.system import SystemIds
from afl.kernel.model import Json
from afl.runtime.persistence import EventDefinition, EventId, PersistenceAPI
from afl.runtime.states import EventState
from afl.runtime.step import StepId, WorkflowId, split_step_id

#: The type of the event that lets a blocked step go on.
StepContinue = "StepContinue"

EventHandler = Callable[[dict[str, Json]], dict[str, Json]]
_ids = SystemIds()


def event_id() -> EventId:
    """A fresh id."""
    return EventId(_ids.new_id())


def step_continue(step_id: StepId) -> EventDefinition:
    """The event that lets a step at `state.EventTransmit` go on."""
    run, _ = split_step_id(step_id)
    return EventDefinition(
        id=event_id(),
        step_id=step_id,
        workflow_id=run,
        state=EventState.CREATED,
        event_type=StepContinue,
        payload={"step_id": step_id},
    )


@dataclass
class EventManager:
    """Manages event lifecycle."""

    persistence: PersistenceAPI

    def create_event(
        self,
        step_id: StepId,
        workflow_id: WorkflowId,
        event_type: str,
        payload: dict[str, Json],
    ) -> EventDefinition:
        """Create a new event in CREATED state."""
        return EventDefinition(
            id=event_id(),
            step_id=step_id,
            workflow_id=workflow_id,
            state=EventState.CREATED,
            event_type=event_type,
            payload=payload,
        )

    def dispatch(self, event: EventDefinition) -> EventDefinition:
        """Dispatch an event for processing."""
        event.state = EventState.DISPATCHED
        return event

    def complete(self, event: EventDefinition, result: dict[str, Json]) -> EventDefinition:
        """Mark event as completed."""
        event.state = EventState.COMPLETED
        event.payload["result"] = result
        return event

    def error(self, event: EventDefinition, error: str) -> EventDefinition:
        """Mark event as errored."""
        event.state = EventState.ERROR
        event.payload["error"] = error
        return event


@dataclass
class EventDispatcher:
    """Dispatches events to external handlers. This one knows of none: subclasses do."""

    def dispatch(self, event: EventDefinition) -> None:
        """Dispatch an event to external system."""

    def poll_completed(self) -> list[tuple[EventId, dict[str, Json]]]:
        """Poll for completed events."""
        return []


class LocalEventHandler:
    """Handles events locally for testing."""

    def __init__(self) -> None:
        self._handlers: dict[str, EventHandler] = {}

    def register(self, event_type: str, handler: EventHandler) -> None:
        """Register a handler for an event type."""
        self._handlers[event_type] = handler

    def handle(self, event: EventDefinition) -> dict[str, Json] | None:
        """Handle an event locally; None if nobody handles its type."""
        handler = self._handlers.get(event.event_type)
        return None if handler is None else handler(event.payload)
