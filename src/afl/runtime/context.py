"""What one iteration works on: the rows it knows, the copies it changes, what it leaves to do.

Rows that are read come from the memory of the run; a row that is not there is asked for by raising
`Unloaded`, and the iteration starts over when it has been loaded. Nothing is lost by that: only
copies are changed, and they reach the memory when the commit has been accepted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from afl.kernel.model import CallSpec, Json
from afl.runtime.entities import Run
from afl.runtime.persistence import IterationChanges, Loaded, LogLine, Needed, Wait
from afl.runtime.plan import Plan
from afl.runtime.states import StepState
from afl.runtime.step import ROOT, StepDefinition, is_below, parent_of
from afl.runtime.telemetry import SILENT, Telemetry

T = TypeVar("T")

#: After so many new steps an iteration is committed, and the next one goes on.
STEPS_PER_ITERATION = 1000
#: What these have begun goes on in the same iteration, but not for ever.
MAX_STEPS_PER_ITERATION = 5 * STEPS_PER_ITERATION


class Unloaded(Exception):
    """Rows that an iteration needs and that have not been loaded."""

    def __init__(self, needed: Needed) -> None:
        super().__init__(needed)
        self.needed = needed


class Search:
    """Finds all that an iteration misses, so that it starts over once for all of it.

    When something is missing, what was done so far counts for nothing; the rest of the work is gone
    through only to see what else it asks for.
    """

    def __init__(self) -> None:
        self._missing: list[Needed] = []

    def through(
        self, work: Callable[[ExecutionContext, T], None], context: ExecutionContext, item: T
    ) -> None:
        """Does a piece of work."""
        try:
            work(context, item)
        except Unloaded as unloaded:
            self._missing.append(unloaded.needed)
        except Exception:
            # half-done work may lead anywhere, and is done again from the beginning
            if not self._missing:
                raise
            self.end()

    def end(self) -> None:
        """Asks for what was missing."""
        if self._missing:
            raise Unloaded(
                Needed(
                    *(
                        frozenset().union(*(getattr(each, field.name) for each in self._missing))
                        for field in fields(Needed)
                    )
                )
            )


@dataclass(slots=True)
class Memory:
    """The rows of one run that are known. None is a row that is known not to exist.

    `born` are the steps that were made while this memory was kept: all that is below them is known.
    """

    steps: dict[str, StepDefinition | None] = field(default_factory=dict)
    yields: dict[str, list[str]] = field(default_factory=dict)
    waits: dict[str, list[str]] = field(default_factory=dict)
    born: set[str] = field(default_factory=set)
    #: the lists that foreachs go over, which are worth not computing again
    items: dict[str, list[Json]] = field(default_factory=dict)
    #: rows of the run that this one was forked from, by path
    origin: dict[str, StepDefinition | None] = field(default_factory=dict)
    memos: dict[tuple[str, str], Mapping[str, Json] | None] = field(default_factory=dict)
    #: paths of the steps that have not ended, by what they are below
    unended: dict[str, list[str]] = field(default_factory=dict)

    def add(self, needed: Needed, loaded: Loaded) -> None:
        """Takes in the rows that were asked for."""
        for path in needed.steps:
            self.steps.setdefault(path, loaded.steps.get(path))
        for path in needed.yields:
            rows = loaded.yields.get(path, ())
            self.yields[path] = [row.path for row in rows]
            for row in rows:
                self.steps.setdefault(row.path, row)
        for path in needed.waits:
            self.waits[path] = list(loaded.waits.get(path, ()))

    def knows(self, path: str) -> bool:
        """Whether everything below a path is known."""
        while True:
            if path in self.born:
                return True
            if path == ROOT:
                return False
            path = parent_of(path)


@dataclass(slots=True)
class ExecutionContext:
    """One iteration of one run. Made anew for every iteration, and shared by nobody."""

    run: Run
    plan: Plan
    memory: Memory
    now: datetime
    changes: IterationChanges = field(default_factory=IterationChanges)
    telemetry: Telemetry = SILENT
    #: the first iteration since the run came into these hands
    takes_over: bool = False
    #: the run is about to leave these hands: iterations that could start are left to the next
    winds_up: bool = False
    #: how many calls deep the task of the run is
    depth: int = 0
    #: calls that the kernel would not take, by key, and why
    refused: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    queue: deque[str] = field(default_factory=deque)
    _queued: set[str] = field(default_factory=set)
    _ended: set[str] = field(default_factory=set)
    _copies: dict[str, StepDefinition] = field(default_factory=dict)
    _yields: dict[str, list[str]] = field(default_factory=dict)
    _waits: dict[str, list[str]] = field(default_factory=dict)
    _born: set[str] = field(default_factory=set)
    _items: dict[str, list[Json]] = field(default_factory=dict)
    #: what is known of some rows is not in the store yet, so it cannot tell what has changed there
    _carries: bool = False

    def carry(self, before: ExecutionContext) -> None:
        """Goes on from an iteration that is committed together with this one.

        Its rows are what is known now. What it has added to what is known in part only stays beside
        that: the rest is loaded when it is asked for, and the store does not have this yet.
        """
        self._carries = True
        self.memory.steps.update(before._copies)
        self.memory.items.update(before._items)
        self.changes = before.changes.copy()
        self._yields = {owner: [*paths] for owner, paths in before._yields.items()}
        self._waits = {on: [*blocks] for on, blocks in before._waits.items()}
        self._born = {*before._born}

    # Reading

    def find(self, path: str) -> StepDefinition | None:
        """The step at a path, to be read."""
        step = self._copies.get(path)
        if step is not None:
            return step
        steps = self.memory.steps
        if path in steps:
            return steps[path]
        if self._knows(path):
            return None
        raise Unloaded(Needed(steps=frozenset((path,))))

    def row(self, path: str) -> StepDefinition:
        """The step at a path that is known to exist."""
        step = self.find(path)
        if step is None:
            raise LookupError(f"run {self.run.id} has no step {path!r}")
        return step

    def require(self, paths: Iterable[str]) -> None:
        """Asks for several rows at once, so that they are loaded together."""
        missing = [path for path in paths if not self._has(path)]
        if missing:
            raise Unloaded(Needed(steps=frozenset(missing)))

    def yields(self, owner: str) -> list[StepDefinition]:
        """What has been yielded to a step, in no order."""
        known = self.memory.yields.get(owner)
        if known is None and not self._knows(owner):
            raise Unloaded(Needed(yields=frozenset((owner,))))
        return [self.row(path) for path in (*(known or ()), *self._yields.get(owner, ()))]

    def waiting(self, on: str) -> list[str]:
        """The blocks that wait for a step outside of them."""
        known = self.memory.waits.get(on)
        if known is None and not self._knows(_owner_of(on)):
            raise Unloaded(Needed(waits=frozenset((on,))))
        return [*(known or ()), *self._waits.get(on, ())]

    def origin(self, path: str) -> StepDefinition | None:
        """The step at a path of the run that this one was forked from."""
        if path not in self.memory.origin:
            raise Unloaded(Needed(origin=frozenset((path,))))
        return self.memory.origin[path]

    def memo(self, facet: str, key: str) -> Mapping[str, Json] | None:
        """An earlier result of a pure facet."""
        for memo in self.changes.memos:
            if (memo.facet, memo.key) == (facet, key):
                return memo.returns
        if (facet, key) not in self.memory.memos:
            raise Unloaded(Needed(memos=frozenset(((facet, key),))))
        return self.memory.memos[facet, key]

    def unended_below(self, path: str) -> list[str]:
        """The paths of all steps below one that have not ended."""
        known = self.memory.unended.get(path)
        if known is None:
            if not self._knows(path):
                raise Unloaded(Needed(unended=frozenset((path,))))
            known = [each for each in self.memory.steps if is_below(each, path)]
        made = (step.path for step in self.changes.created_steps)
        new = [each for each in (*self._copies, *made) if is_below(each, path)]
        rows = {each: self.find(each) for each in (*known, *new)}
        return sorted(each for each, row in rows.items() if row is not None and not row.is_terminal)

    def items(self, path: str, compute: Callable[[], list[Json]]) -> list[Json]:
        """The list that a foreach goes over, computed once."""
        found = self.memory.items.get(path) or self._items.get(path)
        if found is None:
            found = self._items[path] = compute()
        return found

    def until(self, time: str) -> timedelta:
        """How long it is until a time."""
        moment = datetime.fromisoformat(time)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(moment - self.now, timedelta(0))

    def _has(self, path: str) -> bool:
        return path in self._copies or path in self.memory.steps or self._knows(path)

    def _knows(self, path: str) -> bool:
        while True:
            if path in self._born or path in self.memory.born:
                return True
            if path == ROOT:
                return False
            path = parent_of(path)

    # Writing

    def edit(self, path: str) -> StepDefinition:
        """The step at a path, to be changed."""
        step = self._copies.get(path)
        if step is None:
            step = self._copies[path] = self.row(path).clone()
            self.changes.add_updated_step(step)
        return step

    def create(
        self,
        path: str,
        object_type: str,
        statement_id: str,
        facet_name: str = "",
        *,
        params: Mapping[str, Json] | None = None,
        yields_to: str | None = None,
        skipped_because: str | None = None,
    ) -> StepDefinition:
        """A new step, which is walked before the iteration ends."""
        step = StepDefinition(
            self.run.id,
            path,
            object_type,
            statement_id,
            facet_name,
            params=dict(params or {}),
            yields_to=yields_to,
        )
        if skipped_because is not None:
            step.mark_skipped(skipped_because)
        self._copies[path] = step
        self._born.add(path)
        if yields_to is not None:
            self._yields.setdefault(yields_to, []).append(path)
        self.changes.add_created_step(step)
        self.push(path)
        return step

    def push(self, path: str) -> None:
        """Has a step walked before the iteration ends."""
        if path not in self._queued:
            self._queued.add(path)
            self.queue.append(path)

    def pop(self) -> str | None:
        """The next step to walk."""
        if not self.queue:
            return None
        path = self.queue.popleft()
        self._queued.discard(path)
        return path

    def first_end(self, path: str) -> bool:
        """Whether the end of a step is being told for the first time."""
        if path in self._ended:
            return False
        self._ended.add(path)
        return True

    def wait(self, on: str, block: str) -> None:
        """A block waits for a step outside of it."""
        blocks = self._waits.setdefault(on, [])
        if block not in blocks:
            blocks.append(block)
            self.changes.waits.append(Wait(on, block))

    def call(self, spec: CallSpec) -> None:
        """Has outside work done, for which the run stays open."""
        self.changes.calls.append(spec)
        root = self.edit(ROOT)
        root.frame["open"] = count(root, "open") + 1

    def set_timer(self, spec: CallSpec) -> None:
        """Has time come back with an answer. It does not keep the run open."""
        self.changes.calls.append(spec)

    def log(self, path: str, values: Mapping[str, Json]) -> None:
        self.changes.logs.append(LogLine(path, values))

    @property
    def is_full(self) -> bool:
        """Whether enough was started for one commit."""
        return self.winds_up or len(self.changes.created_steps) >= STEPS_PER_ITERATION

    @property
    def is_overfull(self) -> bool:
        """Whether so much was started that even what began has to wait."""
        return len(self.changes.created_steps) >= MAX_STEPS_PER_ITERATION

    def left_over(self) -> list[str]:
        """The steps that still are to be walked, without those whose end has been told."""
        return [path for path in self.queue if path not in self._ended]

    def leave_out_unchanged(self) -> None:
        """Does not have rows written that are in the end what they were."""
        if not self._carries:
            known = self.memory.steps
            changed = self.changes.updated_steps
            self.changes.leave_out({row.path for row in changed if known.get(row.path) == row})
            self.changes.same_params = {
                row.path
                for row in self.changes.updated_steps
                if (before := known.get(row.path)) is not None
                and _are_same(before.params, row.params)
            }

    def accepted_unseen(self) -> None:
        """The changes will be committed, after whatever comes before them: they are what is known
        from now on."""
        self.leave_out_unchanged()
        self._carries = True
        self.accepted()

    def accepted(self) -> None:
        """The changes were committed: they are what is known from now on."""
        memory = self.memory
        memory.steps.update(self._copies)
        memory.born |= self._born
        memory.items.update(self._items)
        # others make results too, and results grow old: the next iteration looks again
        memory.memos.clear()
        memory.unended.clear()
        # what is known in part only is not known: it is loaded when it is asked for
        for owner, paths in self._yields.items():
            if owner in memory.yields or memory.knows(owner):
                memory.yields.setdefault(owner, []).extend(paths)
        for on, blocks in self._waits.items():
            if on in memory.waits or memory.knows(_owner_of(on)):
                memory.waits.setdefault(on, []).extend(blocks)
        for path in self._copies:
            if StepState.is_terminal(self._copies[path].state):
                memory.items.pop(path, None)


def _are_same(before: Mapping[str, Json], now: Mapping[str, Json]) -> bool:
    """Whether two maps have the very same values: they are not compared, however large."""
    return len(before) == len(now) and all(
        name in before and before[name] is value for name, value in now.items()
    )


def _owner_of(path: str) -> str:
    """What the block of a step belongs to. All that can see the step is below that."""
    return parent_of(parent_of(path))


def count(step: StepDefinition, name: str) -> int:
    """A count in the frame of a step; 0 if it was never set."""
    value = step.frame.get(name, 0)
    assert isinstance(value, int)
    return value
