from __future__ import annotations

import pytest

from afl.runtime.events import (
    EventDispatcher,
    EventManager,
    LocalEventHandler,
    StepContinue,
    step_continue,
)
from afl.runtime.memory_store import MemoryStore
from afl.runtime.persistence import EventDefinition
from afl.runtime.states import EVENT_TRANSITIONS, EventState
from afl.runtime.step import WorkflowId, step_id

RUN = WorkflowId("run-1")
STEP = step_id(RUN, "0/count")


@pytest.fixture
def manager() -> EventManager:
    return EventManager(MemoryStore())


@pytest.fixture
def event(manager: EventManager) -> EventDefinition:
    return manager.create_event(STEP, RUN, "example.Count", {"n": 1})


def test_a_new_event(manager: EventManager, event: EventDefinition) -> None:
    assert (event.step_id, event.workflow_id) == (STEP, RUN)
    assert (event.state, event.event_type) == (EventState.CREATED, "example.Count")
    assert event.payload == {"n": 1}
    assert manager.create_event(STEP, RUN, "example.Count", {}).id != event.id


def test_from_its_making_to_its_end(manager: EventManager, event: EventDefinition) -> None:
    assert manager.dispatch(event) is event
    assert event.state == EventState.DISPATCHED == EVENT_TRANSITIONS[EventState.CREATED]
    assert manager.complete(event, {"count": 3}) is event
    assert event.state == EventState.COMPLETED
    assert event.payload == {"n": 1, "result": {"count": 3}}


def test_an_event_that_fails(manager: EventManager, event: EventDefinition) -> None:
    assert manager.error(event, "no such file") is event
    assert EventState.is_terminal(event.state)
    assert (event.state, event.payload["error"]) == (EventState.ERROR, "no such file")


def test_the_dispatcher_knows_of_no_others(event: EventDefinition) -> None:
    dispatcher = EventDispatcher()
    dispatcher.dispatch(event)
    assert dispatcher.poll_completed() == []


def test_a_local_handler_is_found_by_the_type(event: EventDefinition) -> None:
    local = LocalEventHandler()
    assert local.handle(event) is None
    local.register("example.Count", lambda payload: {"count": payload["n"]})
    assert local.handle(event) == {"count": 1}


def test_the_event_that_lets_a_step_go_on() -> None:
    event = step_continue(STEP)
    assert (event.event_type, StepContinue) == ("StepContinue", "StepContinue")
    assert (event.step_id, event.workflow_id) == (STEP, RUN)
    assert (event.state, event.payload) == (EventState.CREATED, {"step_id": STEP})
