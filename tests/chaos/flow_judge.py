"""The verdict on flows: what each had to come to, against the table of runs and the sink's file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from afl.kernel.model import TaskId
from afl.runtime.states import RunState
from tests.chaos.evidence import Audit, read_logs
from tests.chaos.flow_workload import Broken, Flow
from tests.chaos.sink import Record, read_records

FULL_FLOWS = 1000
#: for as many flows as `FULL_FLOWS`; a smaller run has to show proportionally less
MIN_STALE_REFUSED = 10
MIN_RECOVERED = 50
MIN_KILLS = 20
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class FlowVerdict:
    flows: int
    lost: int
    duplicate_effects: int
    wrong_outputs: int
    kills: int
    stops: int
    failovers: int
    recovered: int
    stale_refused: int
    stale_accepted: int
    acknowledged_lost: int
    effects: int
    attempts: int
    seconds: float
    problems: tuple[str, ...]

    @property
    def doubts(self) -> list[str]:
        """Why this run proves nothing, if it does not."""
        share = min(1.0, self.flows / FULL_FLOWS)
        least = {
            "stale_refused": max(1, int(MIN_STALE_REFUSED * share)),
            "recovered": max(1, int(MIN_RECOVERED * share)),
            "kills": max(1, int(MIN_KILLS * share)),
            "stops": 1,
        }
        seen = {name: getattr(self, name) for name in least}
        return [
            f"{name} is {seen[name]}, less than {n}" for name, n in least.items() if seen[name] < n
        ]

    @property
    def ok(self) -> bool:
        broken = (
            self.lost
            + self.duplicate_effects
            + self.wrong_outputs
            + self.stale_accepted
            + self.acknowledged_lost
        )
        return not (broken or self.problems or self.doubts)


End = tuple[str, Any, Any]


@dataclass(frozen=True, slots=True)
class FlowEvidence:
    """What a database says when all is over: the changes of tasks, the state, outputs and error of
    every run that was submitted by its key, which tasks ended well, and what has not ended."""

    audit: Audit
    ends: dict[str, list[End]]
    succeeded: set[TaskId]
    #: what the tasks look like that have not ended
    still_open: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class FlowCase:
    """All that there is to be judged."""

    evidence: FlowEvidence
    flows: Sequence[Flow]
    logs: Path
    sink_file: Path
    kills: int
    stops: int
    #: how often the database lost its server
    failovers: int
    #: what was seen to be wrong on the way
    seen: tuple[str, ...]
    seconds: float


def judge_flows(case: FlowCase) -> FlowVerdict:
    audit = case.evidence.audit
    logs = read_logs(case.logs)
    records = list(read_records(case.sink_file))
    problems = [*case.seen, *audit.problems, *audit.unfenced]
    lost, wrong = judge_ends(case.flows, case.evidence.ends, problems)
    if case.evidence.still_open:
        problems.append(f"tasks are open at the end: {case.evidence.still_open[:_SHOWN]}")
    return FlowVerdict(
        flows=len(case.flows),
        lost=lost,
        duplicate_effects=judge_effects(case.flows, records, problems),
        wrong_outputs=wrong,
        kills=case.kills,
        stops=case.stops,
        failovers=case.failovers,
        recovered=len(audit.recovered & case.evidence.succeeded),
        stale_refused=len(logs.refused - audit.accepted),
        stale_accepted=len(audit.unfenced),
        acknowledged_lost=len(logs.acknowledged - audit.accepted),
        effects=sum(record.effect for record in records),
        attempts=len(records),
        seconds=round(case.seconds, 1),
        problems=tuple(problems),
    )


def judge_ends(
    flows: Sequence[Flow], ends: dict[str, list[End]], problems: list[str]
) -> tuple[int, int]:
    """How many flows have not ended, and how many otherwise than they have to."""
    lost = wrong = 0
    for flow in flows:
        runs = ends.get(flow.key, [])
        if len(runs) > 1:
            problems.append(f"{flow.key} has become {len(runs)} runs")
        if not runs or not RunState.is_terminal(runs[0][0]):
            lost += 1
            problems.append(f"{flow.key} ({flow.kind}) is {runs[0][0] if runs else 'not there'}")
            continue
        state, outputs, error = runs[0]
        wanted = flow.outputs
        if wanted is None:
            right = state == RunState.FAILED and (error or {}).get("type") == Broken.__name__
        else:
            right = state == RunState.COMPLETED and outputs == wanted
        if not right:
            wrong += 1
            problems.append(f"{flow.key} ({flow.kind}) is {state}: {outputs}, {error}")
    return lost, wrong


def judge_effects(flows: Sequence[Flow], records: Sequence[Record], problems: list[str]) -> int:
    """How many effects there are too many: twice under one key, or under two keys for one step."""
    keys: dict[int, list[str]] = defaultdict(list)
    for record in records:
        if record.effect:
            keys[record.value].append(record.key)
    wanted = {n for flow in flows for n in flow.effects}
    if missing := wanted - keys.keys():
        problems.append(f"{len(missing)} effects never came, such as {min(missing)}")
    if others := keys.keys() - wanted:
        problems.append(f"{len(others)} effects belong to nobody, such as {min(others)}")
    doubled = {n: under for n, under in keys.items() if len(under) > 1}
    problems += [f"step {n} has had its effect under {under}" for n, under in doubled.items()]
    return sum(len(under) - 1 for under in doubled.values())
