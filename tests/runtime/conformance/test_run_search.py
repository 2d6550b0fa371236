"""Lists of runs in both stores: whatever is asked, those runs that fit, the newest first."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from random import Random

import pytest

from afl.kernel.port import Transaction
from afl.runtime.entities import Run
from afl.runtime.run_search import STATE_WORDS, RunFilter, state_word
from afl.runtime.step import WorkflowId
from tests.runtime.kept import HOUR, Kept, PostgresKept, begin, write

WORKFLOWS = ("shop.Order", "shop.Refund", "mail.Send", "a%b_c", "Ünder")
LABELS = (("env", "prod"), ("env", "test"), ("team", "blue"), ("odd", 'q"\\%_'))
MESSAGES = ("Disk full", "timed out after 5 s", "100% of it_", "Ärger", None)
TEXTS = (
    "SHOP",
    "order",
    "disk FULL",
    "%",
    "_",
    "0",
    "00000000-0000-7",
    "zzz",
    "key-1",
    "100%",
    "r",
    "äRGER",
    "ünd",
)


def _made(kept: Kept, rng: Random, count: int) -> list[Run]:
    """Runs of all kinds."""
    ids: list[WorkflowId] = []
    for number in range(count):
        run = begin(
            kept,
            workflow=rng.choice(WORKFLOWS),
            labels=dict(rng.sample(LABELS, rng.randint(0, 3))),
            key=rng.choice((None, f"Key-{number}")),
            tenant=rng.choice(("default", "acme")),
            parent=rng.choice(ids) if ids and rng.random() < 0.4 else None,
        )
        _move(kept, run, rng)
        ids.append(run)
        kept.advance(timedelta(minutes=rng.randint(0, 30)))
    return sorted(kept.store.get_runs(ids).values(), key=lambda each: each.id, reverse=True)


def _move(kept: Kept, run: WorkflowId, rng: Random) -> None:
    """Takes a run as far as chance will have it."""
    way = rng.choice(("created", "running", "paused", "completed", "failed", "canceled"))

    def work(transaction: Transaction) -> None:
        if way != "created":
            kept.store.start_run(transaction, run)
        if way in ("completed", "failed", "canceled"):
            message = rng.choice(MESSAGES)
            error = None if way == "completed" else {"type": "E", "message": message}
            kept.store.finish_run(transaction, run, way, None, error)

    # one that was asked to pause and has ended is not paused
    if way == "paused" or rng.random() < 0.2:
        kept.store.set_pause(run, True)
    write(kept, work)


def _random_filter(rng: Random, runs: list[Run]) -> RunFilter:
    def maybe(*values: object) -> object:
        return rng.choice(values) if rng.random() < 0.35 else None

    times = [each.created_at for each in runs]
    return RunFilter(
        state=maybe(*STATE_WORDS),  # type: ignore[arg-type]
        workflow=maybe(*WORKFLOWS, "nobody"),  # type: ignore[arg-type]
        labels=dict(rng.sample(LABELS, rng.choice((0, 0, 0, 1, 2)))),
        text=maybe(*TEXTS, rng.choice(runs).id[: rng.randint(1, 36)]),  # type: ignore[arg-type]
        since=maybe(*times),  # type: ignore[arg-type]
        until=maybe(*times),  # type: ignore[arg-type]
        parent=maybe(*(each.id for each in runs)),  # type: ignore[arg-type]
        top_only=rng.random() < 0.2,
        tenant=maybe("default", "acme"),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("seed", range(2))
def test_those_that_fit_are_found_and_counted(kept: Kept, seed: int) -> None:
    rng = Random(f"search {seed}")
    runs = _made(kept, rng, 60)
    found_any = 0
    for _ in range(150):
        wanted = _random_filter(rng, runs)
        fitting = [each for each in runs if wanted.fits(each)]
        found_any += bool(fitting)
        assert kept.store.search_runs(wanted, limit=1000) == fitting, wanted
        assert kept.store.search_runs(wanted, limit=3) == fitting[:3], wanted
        before = rng.choice(runs).id
        later = [each for each in fitting if each.id < before]
        assert kept.store.search_runs(wanted, before=before) == later, wanted
        counts = Counter(map(state_word, fitting))
        assert kept.store.count_runs(wanted) == counts, wanted
        assert kept.store.count_runs(wanted, cap=2) == {
            state: min(count, 2) for state, count in counts.items()
        }
    assert found_any > 50


def test_pages_come_to_all_runs(kept: Kept) -> None:
    runs = _made(kept, Random("pages"), 25)
    for wanted in (RunFilter(), RunFilter(text="e"), RunFilter(labels={"env": "prod"})):
        seen: list[Run] = []
        while page := kept.store.search_runs(wanted, before=seen[-1].id if seen else None, limit=4):
            seen += page
        assert seen == [each for each in runs if wanted.fits(each)]


@pytest.mark.parametrize("among", [1, 4, 15])
def test_labels_are_found_however_far_back(
    postgres_kept: PostgresKept, monkeypatch: pytest.MonkeyPatch, among: int
) -> None:
    """The newest runs are looked at first, then more of them, then the index is asked."""
    monkeypatch.setattr("afl.runtime.postgres.searching._AMONG", among)
    runs = _made(postgres_kept, Random("labels"), 40)
    for labels in (dict(LABELS[:1]), dict(LABELS[1:3]), {"env": "nowhere"}):
        wanted = RunFilter(labels=labels)
        fitting = [each for each in runs if wanted.fits(each)]
        for limit in (1, 2, 5, 8, 100):
            assert postgres_kept.store.search_runs(wanted, limit=limit) == fitting[:limit]


def test_a_text_is_no_pattern(kept: Kept) -> None:
    plain, odd = begin(kept, workflow="w.Plain"), begin(kept, workflow="w.100%_\\done")
    for text, found in (
        ("%", [odd]),
        ("_", [odd]),
        ("\\", [odd]),
        ("W.", [odd, plain]),
        ("w.%", []),
        ("", [odd, plain]),
        ("'; --", []),
    ):
        assert [each.id for each in kept.store.search_runs(RunFilter(text=text))] == found


def test_nobody_is_the_child_of_what_is_no_run(kept: Kept) -> None:
    begin(kept)
    wanted = RunFilter(parent=WorkflowId("nothing"))
    assert kept.store.search_runs(wanted) == []
    assert kept.store.count_runs(wanted) == {}


def test_ids_that_tell_the_time_and_those_that_do_not(server_kept: Kept) -> None:
    """A stretch of time is read as a stretch of ids as long as all ids tell the time."""
    kept = server_kept
    made: list[Run] = []
    for _ in range(20):
        now = kept.store.now()
        id_ = f"{int(now.timestamp() * 1000):012x}"
        run = Run(
            WorkflowId(f"{id_[:8]}-{id_[8:]}-7000-8000-{len(made):012x}"), "p", "w", inputs={}
        )
        write(kept, lambda transaction, run=run: kept.store.write_run(transaction, run))  # type: ignore[misc]
        found = kept.store.get_run(run.id)
        assert found is not None
        made.insert(0, found)
        kept.advance(HOUR / 2)
    wanted = RunFilter(since=made[12].created_at, until=made[5].created_at)
    assert kept.store.search_runs(wanted) == made[6:13]
    odd = kept.store.get_run(begin(kept))
    assert odd is not None
    since = RunFilter(since=made[12].created_at)
    assert kept.store.search_runs(since) == [*made[:13], odd]
    assert kept.store.search_runs(wanted) == made[6:13]
