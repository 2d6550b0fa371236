"""The verdict on turns: what each had to deliver, against the rows, the events and the sink."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from afl.kernel.model import Card, Outcome, Task, TaskId
from afl.kernel.port import Store
from afl.turns.cards import find
from afl.turns.journal import ResultStatus, Thought, ToolResult
from afl.turns.model import Deliverable, Ending
from tests.chaos.evidence import Audit, read_audit
from tests.chaos.sink import Record, read_records
from tests.chaos.turns_workload import THOUGHTS, TOOL_CALLS, Work

FULL_TURNS = 500
#: for as many turns as `FULL_TURNS`; a smaller run has to show proportionally less
MIN_RECOVERED = 50
MIN_KILLS = 20
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class TurnVerdict:
    turns: int
    deliverables: int
    lost: int
    doubled: int
    kills: int
    recovered: int
    effects: int
    attempts: int
    seconds: float
    problems: tuple[str, ...]

    @property
    def doubts(self) -> list[str]:
        """Why this run proves nothing, if it does not."""
        share = min(1.0, self.turns / FULL_TURNS)
        least = {
            "recovered": max(1, int(MIN_RECOVERED * share)),
            "kills": max(1, int(MIN_KILLS * share)),
        }
        seen = {name: getattr(self, name) for name in least}
        return [
            f"{name} is {seen[name]}, less than {n}" for name, n in least.items() if seen[name] < n
        ]

    @property
    def ok(self) -> bool:
        broken = self.lost + self.doubled + (self.turns - self.deliverables)
        return not (broken or self.problems or self.doubts)


@dataclass(frozen=True, slots=True)
class End:
    """What became of a turn."""

    task: Task
    journal: Sequence[Card]
    #: how often it was told that the turn is closed
    told: int


@dataclass(frozen=True, slots=True)
class TurnCase:
    """All that there is to be judged."""

    url: str
    works: Sequence[Work]
    sink_file: Path
    kills: int
    #: what was seen to be wrong on the way
    seen: tuple[str, ...]
    seconds: float


@dataclass(slots=True)
class Tally:
    """What was counted, and what is wrong."""

    deliverables: int = 0
    lost: int = 0
    doubled: int = 0
    problems: list[str] = field(default_factory=list)


def judge_turns(case: TurnCase, store: Store, turns: Mapping[int, TaskId]) -> TurnVerdict:
    with psycopg.connect(case.url, autocommit=True) as connection:
        audit: Audit = read_audit(connection)
        row = connection.execute("select count(*) from afl.task where state <> 'closed'").fetchone()
        still_open = row[0] if row else 0
    records = list(read_records(case.sink_file))
    tally = Tally(problems=[*case.seen, *audit.problems, *audit.unfenced])
    ends = read_ends(store, turns)
    judge_ends(case.works, ends, tally)
    judge_effects(case.works, records, tally)
    if not tally.lost and still_open:
        tally.problems.append(f"{still_open} tasks are open although all turns have ended")
    return TurnVerdict(
        turns=len(case.works),
        deliverables=tally.deliverables,
        lost=tally.lost,
        doubled=tally.doubled,
        kills=case.kills,
        recovered=len(audit.recovered),
        effects=sum(record.effect for record in records),
        attempts=len(records),
        seconds=round(case.seconds, 1),
        problems=tuple(tally.problems),
    )


def read_ends(store: Store, turns: Mapping[int, TaskId]) -> dict[int, End]:
    told: Counter[TaskId] = Counter()
    last = 0
    while entries := store.read_outbox(last, _PAGE):
        last = entries[-1].id
        told.update(entry.task for entry in entries if entry.topic == "closed")
    ends = {}
    for number, turn in turns.items():
        task = store.get_task(turn)
        if task is not None:
            ends[number] = End(task, store.read_box(turn), told[turn])
    return ends


def judge_ends(works: Sequence[Work], ends: Mapping[int, End], tally: Tally) -> None:
    """Each turn has delivered what it had to, once."""
    for work in works:
        end = ends.get(work.number)
        delivered = [] if end is None else find(end.journal, Deliverable)
        tally.deliverables += bool(delivered)
        wanted = Deliverable(Ending.DONE, partial=False, fields=work.fields)
        if end is None or not delivered or delivered[0] != wanted:
            tally.lost += 1
            state = "not there" if end is None else f"{end.task.state.value}: {end.task.error}"
            tally.problems.append(f"turn {work.number} is {state}; it delivers {delivered}")
            continue
        more = len(delivered) - 1 + abs(end.told - 1)
        if more:
            tally.doubled += more
            tally.problems.append(f"turn {work.number} has ended {end.told} times: {delivered}")
        if flaw := _flaw(end):
            tally.problems.append(f"turn {work.number} {flaw}")


def _flaw(end: End) -> str | None:
    if end.task.outcome is not Outcome.SUCCESS:
        return f"has the outcome {end.task.outcome}"
    numbers = [thought.number for thought in find(end.journal, Thought)]
    if numbers != list(range(THOUGHTS)):
        return f"has had the thoughts {numbers}"
    results = find(end.journal, ToolResult)
    uses = {(each.number, each.index) for each in results if each.status is ResultStatus.OK}
    if len(results) != TOOL_CALLS or len(uses) != TOOL_CALLS:
        return f"has {len(results)} results of {len(uses)} tool uses"
    return None


def judge_effects(works: Sequence[Work], records: Sequence[Record], tally: Tally) -> None:
    """Each tool use has had one effect: not two under one key, nor under two keys."""
    keys: dict[int, list[str]] = defaultdict(list)
    for record in records:
        if record.effect:
            keys[record.value].append(record.key)
    wanted = {n for work in works for n in work.effects}
    if missing := wanted - keys.keys():
        tally.problems.append(f"{len(missing)} effects never came, such as {min(missing)}")
    if others := keys.keys() - wanted:
        tally.problems.append(f"{len(others)} effects belong to nobody, such as {min(others)}")
    for n, under in keys.items():
        if len(under) > 1:
            tally.doubled += len(under) - 1
            tally.problems.append(f"tool use {n} has had its effect under {under}")
