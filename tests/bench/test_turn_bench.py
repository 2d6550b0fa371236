"""Turns: their text is stored once, their requests can be made again, suspended ones cost others
nothing."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest

from afl.app.migrating import migrate
from afl.kernel.model import (
    ClaimRequest,
    Close,
    Commit,
    Outcome,
    State,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.postgres.store import PostgresStore
from afl.testing.conformance.invariants import check_snapshot, take_snapshot
from afl.turns.feed import SilentFeed
from afl.turns.loop import TurnLoop
from afl.turns.models.scripted import Answer, ScriptedModel
from afl.turns.postgres_store import PostgresTurnStore
from afl.turns.prices import PriceBook
from bench import turn_storage, turn_suspended
from bench.turn import report
from bench.turn_storage import Sizes, Storage
from bench.turn_suspended import BRIEF, Costs, Series, suspend
from tests.bench.servers import SERVER, needs_postgres
from tests.kernel.postgres.databases import migrated_database
from tests.turns.driving import FacetTools, FixedBriefs, OneModel

SIZES = Sizes(1_100_000, 1_600_000, 2_000_000)
STORAGE = Storage(100, 90_000_000, 1_000_000, SIZES, 80_000, is_same=True, again=57)
SERIES = Series(Costs([1.0, 2.0, 9.0], [2.0]), Costs([1.0, 2.1, 2.2], [2.5]))


def test_the_figures_are_in_the_last_line() -> None:
    plan = turn_suspended.Plan()
    figures = json.loads(report(STORAGE, SERIES, plan).splitlines()[-1])
    assert (figures["bytes_ratio"], figures["transcript_ratio"]) == (1.6, 1.1)
    assert (figures["claim_ratio"], figures["reply_ratio"]) == (1.05, 1.25)
    assert figures["suspended_flatness"] == 1.25
    assert figures["suspended"] == 100_000


class AnyModel(OneModel):
    """Whatever it is called."""

    def find(self, name: str) -> ScriptedModel:
        assert isinstance(self.model, ScriptedModel)
        return self.model


@needs_postgres
def test_suspended_turns_are_sound_and_go_on_when_they_are_answered() -> None:
    worker, tools = WorkerId("w"), WorkerId("t")
    with migrated_database() as url:
        migrate(url)
        with PostgresStore.connect(url, max_size=4) as kernel:
            suspend(url, kernel, 3)
            assert check_snapshot(take_snapshot(kernel), trimmed=True) == []
            turns = [task for task in kernel.find_tasks() if task.kind == "turn"]
            assert [task.state for task in turns] == [State.WAITING] * 3
            lease = timedelta(hours=1)
            kernel.register(WorkerSpec(worker, "w", handlers=("agent:default",), lease=lease))
            kernel.register(WorkerSpec(tools, "t", lists=("tools",), lease=lease))
            served = kernel.claim(ClaimRequest(tools, ("docs.Read",), ("tools",), n=5))
            done = Close(Outcome.SUCCESS, result="read")
            kernel.commit([Commit(each.fence, done) for each in served])
            claims = kernel.claim(ClaimRequest(worker, ("agent:default",), n=5))
            assert {claim.task.lane for claim in claims} == {"agent-0", "agent-1", "agent-2"}
            model = ScriptedModel([Answer("never"), Answer("All is read.")], "scripted:bench")
            loop = TurnLoop(
                PostgresTurnStore(kernel),
                AnyModel(model),
                PriceBook(),
                FixedBriefs(BRIEF),
                FacetTools(),
                SilentFeed(),
            )
            for claim in claims:
                asyncio.run(loop.run(claim))
                ended = kernel.get_task(claim.task.id)
                assert ended is not None
                assert ended.result == {"text": "All is read."}
            assert check_snapshot(take_snapshot(kernel), trimmed=True) == []


@needs_postgres
@pytest.mark.slow
def test_a_turn_stores_its_text_once_and_its_requests_can_be_made_again() -> None:
    plan = turn_storage.Plan(requests=15, tokens=50_000, again=7)
    storage = turn_storage.measure(SERVER, plan)
    assert storage.requests == 15
    assert storage.is_same
    assert storage.sent > 10 * storage.unique
    assert storage.transcript_ratio < 1.2, storage
    assert storage.ratio < 1.2, storage


@needs_postgres
@pytest.mark.slow
def test_suspended_turns_do_not_slow_others_much() -> None:
    """A generous bound, since other tests use the machine at the same time."""
    plan = turn_suspended.Plan(few=50, many=5_000, rounds=10, turns=3)
    series = turn_suspended.measure(SERVER, plan)
    for costs in (series.few, series.many):
        assert (len(costs.claims), len(costs.replies)) == (60, 30)
    assert series.flatness < 3, series
