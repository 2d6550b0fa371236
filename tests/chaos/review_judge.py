"""The verdict on a review: what came of one run, and how it differs from the one without faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from afl import Client
from afl.app.services import Services
from afl.app.transcripts import transcript
from afl.kernel.model import Json, RunId, State, TaskId
from afl.turns.cards import DELIVERABLE
from tests.chaos.review_handlers import NAMES
from tests.chaos.sink import Record

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Review:
    """What came of one run, as far as it may not depend on what happened on the way."""

    state: str
    outputs: Json
    #: the hashes of the cards of each turn: what was said and done, word for word
    transcripts: tuple[tuple[str, ...], ...]
    #: how many of its cards deliver
    deliverables: int
    #: how often the outbox says that the turn has closed
    closed_events: int
    #: the tasks by name, all of them closed
    tasks: dict[str, int]
    #: what the world outside has seen
    effects: dict[str, int]
    #: requests in the accounts
    accounted: int


@dataclass(frozen=True, slots=True)
class Around:
    """What may depend on it: how often something was tried."""

    attempts: int
    model_requests: int
    #: model calls that the budget was charged with
    charged: int


def review_of(
    client: Client,
    services: Services,
    run: str,
    records: Sequence[Record],
    closed: Counter[TaskId],
) -> Review:
    """What came of a run that has ended; `closed` is how often the outbox said so of each task."""
    kernel = services.persistence.kernel
    tasks = kernel.find_tasks(run=RunId(run), limit=_PAGE)
    turns = [task for task in tasks if task.kind == "turn"]
    journals = [kernel.read_box(task.id) for task in turns]
    found = client.run(run)
    outputs = found.get().outputs
    for task in turns:
        told = transcript(kernel, task)
        assert all(told.is_as_it_was(asked.number) for asked in told.requests), "a request changed"
    return Review(
        state=str(found.state),
        outputs=None if outputs is None else dict(outputs),
        transcripts=tuple(tuple(card.hash for card in journal) for journal in journals),
        deliverables=sum(card.kind == DELIVERABLE for journal in journals for card in journal),
        closed_events=sum(closed[task.id] for task in turns),
        tasks=dict(Counter(task.name for task in tasks if task.state is State.CLOSED)),
        effects=dict(Counter(NAMES[record.value] for record in records if record.effect)),
        accounted=sum(each.requests for each in client.cost("run", run=run)),
    )


def differences(review: Review, expected: Review) -> list[str]:
    """What is not as it would have been without a fault."""
    names = Review.__slots__
    return [
        f"{name} is {_short(getattr(review, name))}, not {_short(getattr(expected, name))}"
        for name in names
        if getattr(review, name) != getattr(expected, name)
    ]


def faults(review: Review) -> list[str]:
    """What is wrong with a run that saw no fault: then nothing can be compared with it."""
    wanted = {
        "state": "completed",
        "deliverables": 1,
        "closed_events": 1,
        # the tests are run by a step, and by the model
        "effects": {"GetPull": 1, "RunTests": 2, "ReadFile": 1, "style/check": 1, "Merge": 1},
        "accounted": 3,
    }
    return [
        f"{name} is {_short(getattr(review, name))}, not {value}"
        for name, value in wanted.items()
        if getattr(review, name) != value
    ]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."
