"""What goes wrong, how often, and the tape on which every such decision is noted.

An actor's fate at each point is drawn from a source of its own, so that leaving one fault out does
not shift the others. That is what makes it possible to replay a schedule with fewer of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random


class Fault(Enum):
    """Everything that can happen to an actor, its requests, or the time."""

    CRASH = "crash"  # the process ends; its request never arrives
    CRASH_AFTER = "crash after"  # the process ends when its request has been carried out
    ZOMBIE = "zombie"  # the process ends; its request arrives long after
    PAUSE = "pause"  # the process stands still for longer than its lease
    LOST_REQUEST = "lost request"  # the request never arrives; the caller hears of a failure
    LOST_ANSWER = "lost answer"  # the request is carried out; the caller hears of a failure
    ECHO = "echo"  # the request arrives a second time, later
    NAMESAKE = "namesake"  # a process that ended is born again under its old name
    LEAP = "leap"  # time goes on by a lot at once
    SWEEP = "sweep"  # every sweeper sweeps right now
    SKEW = "skew"  # an actor's own clock is wrong, and runs at the wrong speed
    STOP = "stop"  # somebody stops a task
    FORCED_STOP = "forced stop"  # somebody stops a task and does not wait for its worker
    OUTSIDE_REPLY = "outside reply"  # a call is answered by somebody else, as it should be
    SECOND_REPLY = "second reply"  # an answered call is answered again, the same way
    FALSE_REPLY = "false reply"  # an answered call is answered again, in another way
    REDRIVE = "redrive"  # a dead letter is driven again


#: What can happen when a request is on its way.
TO_REQUESTS = (
    Fault.CRASH,
    Fault.CRASH_AFTER,
    Fault.ZOMBIE,
    Fault.PAUSE,
    Fault.LOST_REQUEST,
    Fault.LOST_ANSWER,
    Fault.ECHO,
    Fault.LEAP,
    Fault.SWEEP,
)
#: What somebody does on purpose, now and then.
BY_PEOPLE = (
    Fault.STOP,
    Fault.FORCED_STOP,
    Fault.OUTSIDE_REPLY,
    Fault.SECOND_REPLY,
    Fault.FALSE_REPLY,
)

_RATES = (0.005, 0.015, 0.04)
_CHANCE = 0.6


@dataclass(frozen=True, slots=True)
class Mood:
    """Which faults a schedule has, and how often. Each has some and not others: a mixture of
    everything would hide what only two of them can do together."""

    rates: Mapping[Fault, float]
    people: tuple[Fault, ...]
    #: how likely an actor's own clock is wrong
    skew: float
    #: how likely a process that was born again has its old name
    namesakes: float
    #: whether dead letters are driven again
    redrives: bool
    #: how likely anything happens to a request
    total: float

    @staticmethod
    def of(rng: Random) -> Mood:
        rates = {
            fault: _RATES[int(rng.random() * len(_RATES))]
            for fault in TO_REQUESTS
            if rng.random() < _CHANCE
        }
        people = tuple(fault for fault in BY_PEOPLE if rng.random() < 0.4)
        skew = 0.5 if rng.random() < 0.4 else 0.0
        namesakes = 0.5 if rng.random() < 0.4 else 0.0
        redrives = rng.random() < 0.8
        return Mood(rates, people, skew, namesakes, redrives, sum(rates.values()))


CALM = Mood({}, (), 0.0, 0.0, False, 0.0)


@dataclass(frozen=True, slots=True)
class Entry:
    """A fault that happened. Its id says whose it was, and at which point of its life."""

    id: str
    seconds: float
    fault: Fault
    about: str = ""

    def __str__(self) -> str:
        return f"{self.seconds:10.3f}  {self.id:<12} {self.fault.value} {self.about}".rstrip()


class Tape:
    """The faults of one schedule, in order. With `only`, no others can happen."""

    def __init__(self, only: frozenset[str] | None = None) -> None:
        self._only = only
        self.entries: list[Entry] = []

    def allows(self, id: str) -> bool:
        return self._only is None or id in self._only

    def note(self, id: str, seconds: float, fault: Fault, about: str = "") -> None:
        self.entries.append(Entry(id, seconds, fault, about))
