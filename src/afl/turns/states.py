"""Where a turn is: for others by its task, for itself by its journal. The tables are the product.

For others, by the state of the task:

| kernel   | turn       | meaning                                                        |
|----------|------------|----------------------------------------------------------------|
| queued   | idle       | another turn of the agent goes first                           |
| ready    | dispatched | it may be claimed: new, answered, or its worker was lost       |
| running  | running    | a worker holds it, and is at a stage below                     |
| waiting  | suspended  | for tools, people, a model that is busy, a budget; no worker   |
| closed   | idle       | it has delivered                                               |

For itself, when it runs, by its last answer and what has come of it:

| stage   | told by                                        | next                                  |
|---------|------------------------------------------------|---------------------------------------|
| new     | no answer of the model yet                     | ask                                   |
| acting  | a tool use of the last answer has no result,   | call what was agreed to; suspend      |
|         | and no reply to take in                        |                                       |
| heard   | every tool use has a result or a reply, or a   | terminate, or end at a limit, or ask  |
|         | note was made of the answer                    |                                       |

A wait for a model or a budget is not a stage: its reply is taken in, and the turn asks again.
"""

from __future__ import annotations

from enum import Enum

from afl.kernel.model import State


class Status(Enum):
    """Where a turn is, as others see it."""

    IDLE = "idle"
    DISPATCHED = "dispatched"
    RUNNING = "running"
    SUSPENDED = "suspended"


class Stage(Enum):
    """Where a turn that runs is, as it sees itself."""

    NEW = "new"
    ACTING = "acting"
    HEARD = "heard"


_STATUSES = {
    State.QUEUED: Status.IDLE,
    State.READY: Status.DISPATCHED,
    State.RUNNING: Status.RUNNING,
    State.WAITING: Status.SUSPENDED,
    State.CLOSED: Status.IDLE,
}


def status_of(state: State) -> Status:
    """Where a turn is whose task is in this state."""
    return _STATUSES[state]
