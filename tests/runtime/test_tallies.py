"""The tally of a run is what a count of its steps comes to, whatever is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from random import Random

import psycopg
import pytest

from afl.kernel.model import Json
from afl.kernel.port import Transaction
from afl.runtime.entities import Fork
from afl.runtime.persistence import IterationChanges
from afl.runtime.postgres.rows import pack_changes
from afl.runtime.postgres.statements import SQL
from afl.runtime.states import ObjectType, StepState
from afl.runtime.step import StepDefinition, WorkflowId
from afl.runtime.tallies import Tally, kind_of
from tests.runtime.conformance.chance import ChanceDriver, programs
from tests.runtime.conformance.driver import ORDERS, Driver, Order, add_one, failing
from tests.runtime.kept import (
    HOUR,
    Kept,
    PostgresKept,
    begin,
    changes,
    end,
    save,
    step,
    write,
)

STATES = (StepState.CREATED, StepState.STATEMENT_COMPLETE, StepState.STATEMENT_ERROR)
FAN = """
namespace t {
  event facet AddOne(input: Int) => (output: Int)
  workflow W(items: [Int]) => (n: [Int]) andThen foreach item in $.items {
    s = AddOne(input = $.item)
    yield W(n = [s.output])
  }
}
"""


def tally_of(steps: Iterable[StepDefinition]) -> list[Tally]:
    """The steps, counted one by one: what a kept tally must be equal to."""
    counts = Counter(map(kind_of, steps))
    return sorted(Tally(*kind, count) for kind, count in counts.items())


def assert_kept(kept: Kept, *runs: WorkflowId) -> None:
    """Judges the tallies of runs."""
    counted = {run: tally_of(kept.store.get_steps_by_workflow(run)) for run in runs}
    assert {run: kept.store.tally(run) for run in runs} == counted
    assert kept.store.tallies(runs) == {run: found for run, found in counted.items() if found}


def test_by_statement_facet_type_and_state(kept: Kept) -> None:
    run = begin(kept)
    made = [
        step(run, "", object_type=ObjectType.WORKFLOW, statement_id="w", facet_name="ns.W"),
        *(step(run, f"0/{n}", statement_id="w/0", facet_name="ns.Pay") for n in range(3)),
    ]
    save(kept, *made)
    made[1].state = StepState.STATEMENT_COMPLETE
    save(kept, made[1])
    call = ObjectType.VARIABLE_ASSIGNMENT
    assert kept.store.tally(run) == [
        Tally("w", "ns.W", ObjectType.WORKFLOW, StepState.CREATED, 1),
        Tally("w/0", "ns.Pay", call, StepState.STATEMENT_COMPLETE, 1),
        Tally("w/0", "ns.Pay", call, StepState.CREATED, 2),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_written(kept: Kept, seed: int) -> None:
    rng = Random(f"tally {seed}")
    runs = [begin(kept) for _ in range(3)]

    def some_step(run: WorkflowId) -> StepDefinition:
        return step(
            run,
            f"0/{rng.randrange(12)}",
            statement_id=rng.choice(("s", "t")),
            facet_name=rng.choice(("", "ns.Pay")),
            object_type=rng.choice((ObjectType.BLOCK, ObjectType.VARIABLE_ASSIGNMENT)),
            state=rng.choice(STATES),
        )

    def some_changes(run: WorkflowId) -> IterationChanges:
        made = changes(*(some_step(run) for _ in range(rng.randint(0, 5))))
        for _ in range(rng.randint(0, 3)):
            made.add_updated_step(some_step(run))
        return made

    for _ in range(25):
        written = [(run, some_changes(run)) for run in rng.choices(runs, k=rng.randint(1, 3))]
        write(kept, lambda transaction, w=written: kept.store.write_many(transaction, w))  # type: ignore[misc]
        assert_kept(kept, *runs)


def test_what_is_taken_back_is_not_counted(kept: Kept) -> None:
    run = begin(kept)
    save(kept, step(run, "0"))
    before = kept.store.tally(run)

    def fail(transaction: Transaction) -> None:
        kept.store.write_changes(
            transaction, run, changes(step(run, "0", state="x"), step(run, "1"))
        )
        raise LookupError

    with pytest.raises(LookupError):
        write(kept, fail)
    assert kept.store.tally(run) == before
    assert_kept(kept, run)


@pytest.mark.parametrize("order", ORDERS)
def test_random_programs(kept: Kept, order: Order) -> None:
    played = 0
    for program, workflow, inputs in programs(f"tallies {order}", 5):
        first_id = (played + 1) << 40
        driver = ChanceDriver(program, order, order=order, store=kept.store, first_id=first_id)
        run = driver.start(workflow.name, **inputs)
        for number in range(400):
            if not driver.step():
                break
            if number % 20 == 0:
                assert_kept(kept, run)
        played += 1
        assert_kept(kept, run, *(each.id for each in kept.store.find_runs(parent=run)))
    assert played >= 3


def test_forks_count_what_they_take_over(kept: Kept) -> None:
    items: list[Json] = [3, 1, 2]
    failed = Driver(kept.store, FAN, {"AddOne": failing()}).play(items=items)
    driver = Driver(kept.store, FAN, {"AddOne": add_one})
    first = driver.play(items=items)
    second = driver.fork(Fork(first.run.id), items=items)
    third = driver.fork(Fork(first.run.id, redo=("0/1/s",)), items=items)
    assert_kept(kept, failed.run.id, first.run.id, second.run.id, third.run.id)
    assert kept.store.tally(second.run.id) == kept.store.tally(first.run.id)


def test_a_large_foreach(kept: Kept) -> None:
    driver = Driver(kept.store, FAN, {"AddOne": add_one}, order="reverse")
    played = driver.play(items=list(range(100)))
    assert_kept(kept, played.run.id)
    assert sum(each.steps for each in kept.store.tally(played.run.id)) == len(played.steps)


def test_it_goes_with_its_run(kept: Kept) -> None:
    gone, stays = begin(kept), begin(kept)
    for run in (gone, stays):
        save(kept, step(run, "0"))
    end(kept, gone)
    kept.advance(HOUR)
    assert kept.store.forget_runs(timedelta(minutes=1)) == 1
    assert kept.store.tally(gone) == []
    assert kept.store.step_times(gone, ["0"]) == {}
    assert_kept(kept, gone, stays)


def test_no_rows_are_left_of_a_run_that_is_gone(postgres_kept: PostgresKept) -> None:
    test_it_goes_with_its_run(postgres_kept)
    with psycopg.connect(postgres_kept.url) as connection:
        left = connection.execute("select count(distinct run) from afl.step_tally").fetchone()
    assert left == (1,)


def test_workers_of_the_version_before_keep_it_too(postgres_kept: PostgresKept) -> None:
    kept = postgres_kept
    run = begin(kept)
    old = SQL["write_changes"].replace(b"_v2(", b"_v1(").replace(b", %(distinct)s::boolean", b"")
    assert old != SQL["write_changes"]
    for state in STATES:
        made = changes(*(step(run, f"0/{number}", state=state) for number in range(3)))
        with psycopg.connect(kept.url) as connection:
            connection.execute(old, pack_changes([(run, made)]))
        assert_kept(kept, run)
    assert [each.steps for each in kept.store.tally(run)] == [3]
