"""Log lines under faults: a short storm, and a judge who can be displeased. `make chaos-logs` is
the long one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from afl.logs.model import WORKER_DIED, Gap, Line
from afl.logs.reading import Shown
from tests.chaos.logs import Options, run
from tests.chaos.logs_judge import LogVerdict, Tally
from tests.chaos.logs_worker import key_of, text_of
from tests.chaos.nats_server import nats_is_installed
from tests.chaos.server import find_binaries

SOUND = LogVerdict(
    lines=1_000_000,
    stored=1_000_000,
    lost=0,
    doubled=0,
    gaps=4,
    unexplained_gaps=0,
    written_by_dead=2000,
    stored_of_dead=2100,
    nats_kills=12,
    nats_disks_lost=1,
    sink_kills=6,
    postgres_away_s=60.0,
    seconds=100.0,
    lines_per_s=10_000,
    problems=(),
)


def line(seq: int, text: bytes | None = None) -> Shown:
    data = text_of(0, seq) if text is None else text
    return Shown(key_of(0, 0), Line(seq, seq, 0, False, data))


def test_lines_in_order_and_a_cut_end_please_the_judge() -> None:
    tally = Tally()
    gap = Shown(key_of(0, 0), Gap(4, None, WORKER_DIED, 9))
    tally.read(0, [3], [line(1), line(2), line(3), gap])
    assert tally == Tally(stored=3, gaps=1)


@pytest.mark.parametrize(
    ("shown", "lost", "doubled", "complaint"),
    [
        ([line(1), line(3)], 1, 0, "goes from line 1 to 3"),
        ([line(1), line(2)], 1, 0, "ends at 2 of 3"),
        ([line(1), line(2), line(2), line(3)], 0, 1, "has line 2 after 2"),
        ([line(1), line(2, b"x"), line(3)], 0, 0, "has another line 2"),
        (
            [line(1), line(2), line(3), Shown(key_of(0, 0), Gap(4, 5, "?", 9))],
            0,
            0,
            "has the gap",
        ),
        ([line(1), line(2), line(3), replace(line(4), key=key_of(9, 9))], 0, 0, "nobody"),
    ],
)
def test_what_is_otherwise_is_noticed(
    shown: list[Shown], lost: int, doubled: int, complaint: str
) -> None:
    tally = Tally()
    tally.read(0, [3], shown)
    assert (tally.lost, tally.doubled) == (lost, doubled)
    assert len(tally.problems) == 1
    assert complaint in tally.problems[0]


def test_a_run_that_is_sound_and_has_seen_faults_is_ok() -> None:
    assert SOUND.ok


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lost", 1),
        ("doubled", 1),
        ("unexplained_gaps", 1),
        ("problems", ("something",)),
        ("gaps", 0),
        ("nats_kills", 0),
        ("nats_disks_lost", 0),
        ("sink_kills", 0),
        ("postgres_away_s", 0.0),
    ],
)
def test_a_broken_promise_or_a_missing_fault_is_not_ok(field: str, value: object) -> None:
    assert not replace(SOUND, **{field: value}).ok  # type: ignore[arg-type]


@pytest.mark.slow
def test_no_line_is_lost_or_doubled_and_what_is_missing_is_a_gap() -> None:
    binaries = find_binaries()
    if binaries is None or not nats_is_installed():
        pytest.skip("there is no PostgreSQL or no NATS server to start on this machine")
    options = Options(
        lines=9000,
        producers=3,
        nats_every=1.5,
        # a slow machine must come to rest
        nats_kills=3,
        postgres_away=2,
        spread=5,
        doomed_lines=400,
    )
    verdict = run(options, binaries)
    assert verdict.problems == ()
    # a run in which nothing broke would prove nothing
    assert verdict.doubts == []
    assert (verdict.lines, verdict.stored) == (9000, 9000)
    assert (verdict.lost, verdict.doubled, verdict.gaps) == (0, 0, 4)
    assert verdict.stored_of_dead >= verdict.written_by_dead
    assert verdict.ok
