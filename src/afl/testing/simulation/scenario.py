"""The work of a simulation: random trees of flows, facets, turns and tools.

A scenario is made from its seed alone. What each piece of work comes to is determined
(`expected_answer`) as long as nobody stops it, it is in time, and its workers live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import TypeVar

from afl.kernel.model import CallSpec, CallStatus, Json, Outcome, Retry, TaskSpec, Wake

#: Every name that a worker must serve, by its short form.
HANDLERS = ("Flow", "Pay", "Ship", "Turn", "Search", "Write")
LISTS = ("default", "slow")
LANES = 4
LARGE = 1_000_003

_T = TypeVar("_T")
_WEIGHT = {CallStatus.ERROR: 3, CallStatus.TIMEOUT: 5, CallStatus.CANCELED: 7}


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of work: what it is, how long it takes, what it calls, and how it ends.

    It calls the pieces of one stage at the same time, and those of the next when all have answered.
    """

    path: str
    kind: str
    name: str
    number: int
    seconds: float
    stages: tuple[tuple[Piece, ...], ...] = ()
    lane: str | None = None
    hold: bool = True
    priority: int = 0
    delay: timedelta = timedelta(0)
    timeout: timedelta | None = None
    call_timeout: timedelta = timedelta(minutes=20)
    list: str = "default"
    #: how many times it fails before it succeeds
    fails: int = 0
    retry: Retry = field(default_factory=Retry)
    max_crashes: int = 5
    #: it kills every worker that does it
    poison: bool = False
    #: it fails when one of its calls did not succeed
    strict: bool = False
    #: it asks for a lane that it keeps itself, which is refused
    cycle: bool = False
    #: it commits once in the middle of its work
    checkpoint: bool = False
    #: in the middle of its work it asks for so much more time
    heartbeat: timedelta | None = None

    def walk(self) -> Iterator[Piece]:
        yield self
        for stage in self.stages:
            for piece in stage:
                yield from piece.walk()

    def spec(self, idem: str | None = None) -> TaskSpec:
        return TaskSpec(
            kind=self.kind,
            name=self.name,
            list=self.list,
            lane=self.lane,
            hold=self.hold,
            priority=self.priority,
            delay=self.delay,
            timeout=self.timeout,
            wake=Wake.ANY if self.kind == "flow" else Wake.ALL,
            retry=self.retry,
            max_crashes=self.max_crashes,
            input=self.path,
            idem=idem,
        )

    def call_spec(self) -> CallSpec:
        """The call to this piece, under its path as the key."""
        return CallSpec(self.path, self.spec(), self.call_timeout)


@dataclass(frozen=True, slots=True)
class Root:
    """A piece that a client submits, at some time, once or twice."""

    piece: Piece
    after: float
    twice: bool


@dataclass(frozen=True, slots=True)
class Scenario:
    roots: tuple[Root, ...]
    pieces: Mapping[str, Piece]

    @staticmethod
    def of(roots: tuple[Root, ...]) -> Scenario:
        return Scenario(roots, {p.path: p for root in roots for p in root.piece.walk()})

    def without(self, paths: frozenset[str]) -> Scenario:
        """The same scenario without some pieces and all that they call."""
        if not paths:
            return self
        kept = (root for root in self.roots if root.piece.path not in paths)
        return Scenario.of(tuple(replace(r, piece=_pruned(r.piece, paths)) for r in kept))


def _pruned(piece: Piece, paths: frozenset[str]) -> Piece:
    stages = (
        tuple(_pruned(child, paths) for child in stage if child.path not in paths)
        for stage in piece.stages
    )
    return replace(piece, stages=tuple(stage for stage in stages if stage))


# What work comes to

Answers = Mapping[str, tuple[CallStatus, Json]]


def verdict(piece: Piece, answers: Answers) -> tuple[Outcome, Json]:
    """How a piece ends whose calls were answered so, once it fails no more."""
    if piece.cycle or (piece.strict and any(s is not CallStatus.OK for s, _ in answers.values())):
        return Outcome.FAILED, {"piece": piece.path}
    total = piece.number
    for key, (status, body) in sorted(answers.items()):
        worth = body if isinstance(body, int) else _WEIGHT[status]
        total = (total * 31 + worth + len(key)) % LARGE
    return Outcome.SUCCESS, total


def expected_answer(piece: Piece) -> tuple[CallStatus, Json]:
    """What a piece answers when nothing goes wrong that is not part of the scenario."""
    if piece.poison or piece.fails > piece.retry.max_failures:
        return CallStatus.ERROR, {"piece": piece.path}
    answers = {child.path: expected_answer(child) for stage in piece.stages for child in stage}
    outcome, value = verdict(piece, answers)
    return (CallStatus.OK if outcome is Outcome.SUCCESS else CallStatus.ERROR), value


# Making one


def make_scenario(rng: Random) -> Scenario:
    maker = _Maker(rng)
    count = 1 + int(rng.random() * 3)
    return Scenario.of(tuple(maker.root(str(number)) for number in range(count)))


_Child = Callable[[str], Piece]


class _Maker:
    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def root(self, path: str) -> Root:
        chance = self._rng.random()
        if chance < 0.6:
            piece = self._flow(path)
        elif chance < 0.9:
            piece = self._turn(path, above=-1, depth=0)
        else:
            piece = self._leaf(path, "facet", "billing.Pay")
        if self._happens(0.15):
            piece = replace(piece, timeout=timedelta(seconds=self._between(20, 150)))
        return Root(piece, self._between(0, 15), self._happens(0.3))

    def _flow(self, path: str) -> Piece:
        def child(path: str) -> Piece:
            chance = self._rng.random()
            if chance < 0.45:
                return self._turn(path, above=-1, depth=1)
            if chance < 0.6:
                return replace(
                    self._leaf(path, "facet", "billing.Ship"),
                    stages=((self._leaf(f"{path}.0", "tool", "Search"),),),
                )
            return self._leaf(path, "facet", "billing.Pay")

        stages = self._stages(path, self._pick((1, 2, 2, 3)), child)
        return self._inner(path, "flow", "shop.Flow", stages)

    def _turn(self, path: str, above: int, depth: int) -> Piece:
        """A turn in a lane, or in none. Lanes that are kept are taken in order, as agents must:
        two turns that wait for each other's lanes would wait until their deadlines."""
        lane = above + 1 + int(self._rng.random() * 2)
        in_lane, hold = lane < LANES and self._happens(0.85), self._happens(0.7)
        below = lane if in_lane and hold else above

        def child(path: str) -> Piece:
            if depth < 2 and self._happens(0.1):
                return self._turn(path, below, depth + 1)
            return self._leaf(path, "tool", self._pick(("tools.Search", "tools.Write")))

        stages = self._stages(path, self._pick((0, 1, 1, 2)), child)
        piece = self._inner(path, "turn", "Turn", stages)
        if not in_lane:
            return piece
        cycle = hold and bool(stages) and self._happens(0.02)
        return replace(piece, lane=f"agent-{lane}", hold=hold, cycle=cycle)

    def _stages(self, path: str, count: int, child: _Child) -> tuple[tuple[Piece, ...], ...]:
        return tuple(
            tuple(child(f"{path}.{stage}{number}") for number in range(self._pick((1, 1, 2, 3))))
            for stage in range(count)
        )

    def _inner(
        self, path: str, kind: str, name: str, stages: tuple[tuple[Piece, ...], ...]
    ) -> Piece:
        piece = replace(self._leaf(path, kind, name), stages=stages, poison=False)
        return replace(
            piece,
            strict=self._happens(0.3),
            max_crashes=5,
            checkpoint=self._happens(0.15),
            list="default",
        )

    def _leaf(self, path: str, kind: str, name: str) -> Piece:
        piece = Piece(
            path,
            kind,
            name,
            number=int(self._rng.random() * LARGE),
            seconds=self._pick((0.0, 0.5, 2.0, 6.0, 15.0)),
            priority=self._pick((0, 0, 0, 1, 5)),
            list=self._pick(("default", "default", "default", "slow")),
        )
        if self._happens(0.1):
            piece = replace(piece, delay=timedelta(seconds=self._between(1, 20)))
        if self._happens(0.08):
            piece = replace(piece, call_timeout=timedelta(seconds=self._between(10, 60)))
        if self._happens(0.05):
            retry = Retry(self._pick((0, 2, 3)), timedelta(seconds=2))
            piece = replace(piece, fails=self._pick((1, 2, 3)), retry=retry)
        if self._happens(0.2):
            piece = replace(piece, heartbeat=timedelta(seconds=self._between(5, 60)))
        if self._happens(0.02):
            piece = replace(piece, poison=True, max_crashes=self._pick((0, 1, 2)))
        return piece

    def _happens(self, chance: float) -> bool:
        return self._rng.random() < chance

    def _between(self, low: float, high: float) -> float:
        return round(low + self._rng.random() * (high - low), 3)

    def _pick(self, choices: tuple[_T, ...]) -> _T:
        return choices[int(self._rng.random() * len(choices))]
