"""Flows are measured by what they come to; a system that cheats or breaks has no rate."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from bench import flow_peers, latency
from bench.flow import Cell, Contest, Entry, Plan, figures, measure, table
from bench.flow_flatness import Cost, flatness
from bench.flow_flatness import measure as measure_flatness
from bench.flow_ours import ours
from bench.flow_peers import PEERS, Peer
from bench.flow_side import FAN, RESULTS, SEQUENCE, STEPS, Sample, WrongResult, drive
from bench.kernel_peers import PeerFailed, Process
from tests.bench.servers import NATS, SERVER, needs_nats, needs_postgres

PLAN = Plan(((SEQUENCE, 16), (FAN, 1)), rounds=2, warm_up=0.0, seconds=0.0, sizes=(100,))
#: A system that answers as its manner says.
PRETENDED = """
import asyncio
from bench.flow_side import RESULTS, serve

class Pretended:
    async def flow(self, shape, client):
        return RESULTS[shape] - {lacking}

asyncio.run(serve(Pretended(), "pretended 1.0"))
"""


def pretended(lacking: int) -> Peer:
    process = Process([sys.executable, "-c", PRETENDED.format(lacking=lacking)])
    return Peer("pretended", process.answer(), True, process)


class Instant:
    """Flows that take no time, by a clock that counts them."""

    def __init__(self, result: int) -> None:
        self.result = result
        self.clients: list[int] = []

    async def flow(self, shape: str, client: int) -> int:
        self.clients.append(client)
        await asyncio.sleep(0)
        return self.result


def test_every_client_runs_at_least_one_flow_and_all_are_counted() -> None:
    side = Instant(RESULTS[FAN])
    sample = asyncio.run(drive(side, FAN, 3, 0.0))
    assert sorted(side.clients) == [0, 1, 2]
    assert len(sample.taken) == 3
    assert Sample(2.0, [0.1] * 3).steps_per_second(FAN) == 3 * STEPS[FAN] / 2


def test_a_flow_that_left_out_a_step_is_not_counted() -> None:
    with pytest.raises(WrongResult, match="came to 9 instead of 10"):
        asyncio.run(drive(Instant(RESULTS[SEQUENCE] - 1), SEQUENCE, 1, 0.0))


def test_a_peer_is_measured_by_its_own_program() -> None:
    peer = pretended(lacking=0)
    try:
        assert peer.version == "pretended 1.0"
        assert len(peer.measure(SEQUENCE, 4, 0.01).taken) >= 4
    finally:
        peer.close()


def test_a_peer_whose_flows_lack_a_step_is_out() -> None:
    peer = pretended(lacking=1)
    contest = Contest([Entry(peer, [Cell(*load) for load in PLAN.loads])])
    try:
        with pytest.raises(PeerFailed, match="ended with"):
            peer.measure(SEQUENCE, 1, 0.01)
        contest.entries.append(Entry(Known("ours", 1.0), [Cell(*load) for load in PLAN.loads]))
        measure(contest, PLAN)
    finally:
        peer.close()
    assert [entry.system.name for entry in contest.entries] == ["ours"]
    assert list(contest.missing) == ["pretended"]


class Known:
    """A system whose flows take a known time."""

    version = "known"

    def __init__(self, name: str, seconds: float, stores_every_step: bool = True) -> None:
        self.name = name
        self.stores_every_step = stores_every_step
        self._seconds = seconds

    def measure(self, shape: str, clients: int, seconds: float) -> Sample:
        return Sample(self._seconds, [self._seconds] * clients)


def test_we_are_judged_by_the_best_peer_that_stores_every_step_and_by_bare_postgresql() -> None:
    systems = [
        Known("bare", 0.01),
        Known("slow", 1.0),
        Known("fast", 0.2),
        Known("forgetful", 0.001, stores_every_step=False),
        Known("ours", 0.1),
        Known("ours, 2 processes", 0.05),
    ]
    contest = Contest([Entry(each, [Cell(*load) for load in PLAN.loads]) for each in systems])
    measure(contest, PLAN)
    costs = [Cost(bound, 100, 1.0, 1.0, 3.0) for bound in ("unbounded", "limit 100")]
    costs.append(Cost("unbounded", 100_000, 1.0, 1.5, 2.0))
    costs.append(Cost("limit 100", 100_000, 1.5, 1.5, 6.0))
    told = figures(contest, PLAN, costs)
    assert (told["vs_best_peer"], told["vs_bare"]) == (4.0, 0.2)
    assert (told["vs_best_peer_fan"], told["vs_bare_fan"]) == (4.0, 0.2)
    assert (told["flatness_100k"], told["flatness_100k_wall"]) == (1.5, 2.0)
    assert told["largest_run"] == 100_000
    rows = table(contest)
    assert len(rows) == 1 + len(systems) * len(PLAN.loads) + len(systems)
    json.dumps(told)


def test_without_peers_and_costs_nothing_is_made_up() -> None:
    contest = Contest([Entry(Known("ours", 0.1), [Cell(*load) for load in PLAN.loads])])
    measure(contest, PLAN)
    told = figures(contest, PLAN, [])
    assert told["vs_best_peer"] is told["vs_bare"] is told["flatness_100k"] is None


def test_the_sides_take_turns_to_begin() -> None:
    order: list[str] = []

    class Noting(Known):
        def measure(self, shape: str, clients: int, seconds: float) -> Sample:
            order.append(self.name)
            return super().measure(shape, clients, seconds)

    entries = [Entry(Noting(name, 1.0), [Cell(SEQUENCE, 1)]) for name in ("a", "b", "c")]
    measure(Contest(entries), Plan(((SEQUENCE, 1),), 2, 0.0, 0.0, ()))
    assert order == ["a", "b", "c", "b", "c", "a", "c", "a", "b"]


def test_an_environment_and_a_server_that_are_there_are_not_installed_again(tmp_path: Path) -> None:
    kind = PEERS["restate"]
    python = tmp_path / "restate" / "bin" / "python"
    python.parent.mkdir(parents=True)
    (tmp_path / "restate" / "installed.txt").write_text("\n".join(kind.requirements))
    assert flow_peers.environment("restate", kind.requirements, tmp_path) == python
    assert list(python.parent.iterdir()) == []
    assert kind.server is not None
    server = tmp_path / f"node_modules/{kind.server}-linux-x64/bin/restate-server"
    server.parent.mkdir(parents=True)
    server.touch()
    assert flow_peers.binary(kind.server, tmp_path) == server


@needs_postgres
@pytest.mark.slow
def test_our_flows_come_to_what_they_should() -> None:
    with ours("ours", SERVER, NATS, processes=1) as system:
        for shape, clients in ((SEQUENCE, 4), (FAN, 1)):
            sample = system.measure(shape, clients, 0.2)
            assert len(sample.taken) >= clients
            assert sample.steps_per_second(shape) > 0


@needs_postgres
@pytest.mark.slow
def test_a_step_of_a_larger_run_does_not_cost_much_more() -> None:
    costs = measure_flatness(SERVER, NATS, (100, 1_000))
    assert len(costs) == 4
    assert all(each.worker_ms > 0 and each.server_ms > 0 and each.wall_ms > 0 for each in costs)
    for bound in ("unbounded", "limit 100"):
        # a cost that grows with the run would make this ten; a loaded machine blurs it
        assert flatness(costs, bound).cpu < 3, costs


@needs_postgres
@needs_nats
@pytest.mark.slow
def test_a_ring_starts_the_handler_long_before_the_worker_would_look() -> None:
    taken = latency.measure(SERVER, NATS, submits=7)
    assert all(value > 0 for value in taken), "nobody can start before the submit"
    told = json.loads(latency.report(taken).splitlines()[-1])
    assert told["submits"] == 7
    # an idle worker looks by itself after two seconds
    assert told["submit_to_start_p50_ms"] < 1000, taken
