from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.chaos.evidence import WorkerLogs, read_logs
from tests.chaos.judge import Verdict
from tests.chaos.sink import Sink, SinkClient, read_records

SOUND = Verdict(
    roots=2000,
    tasks=14000,
    lost=0,
    duplicate_closed=0,
    stale_accepted=0,
    acknowledged_lost=0,
    stale_refused=50,
    recovered=100,
    kills=1,
    stops=1,
    restarts=1,
    effects=8000,
    attempts=8000,
    told_and_sent=0,
    strays=1,
    looks=1,
    deadlocks=0,
    seconds=1.0,
    problems=(),
)


def logs_of(folder: Path, *events: tuple[object, ...]) -> WorkerLogs:
    lines = "".join(json.dumps(event) + "\n" for event in events)
    (folder / "worker-0001.jsonl").write_text(lines, encoding="utf-8")
    return read_logs(folder)


def test_a_commit_that_is_sent_after_the_worker_was_told_is_stale(tmp_path: Path) -> None:
    logs = logs_of(tmp_path, ("claim", "t", 5), ("told", 5), ("send", 5, 0), ("fenced", 5, 0))
    assert logs.sent_when_told == logs.refused == {(5, 0)}
    assert logs.acknowledged == set()


def test_a_commit_that_was_under_way_when_the_worker_was_told_is_not_stale(tmp_path: Path) -> None:
    logs = logs_of(tmp_path, ("send", 5, 0), ("told", 5), ("ok", 5, 0))
    assert logs.sent_when_told == set()
    assert logs.acknowledged == {(5, 0)}


def test_a_commit_that_is_repeated_after_the_worker_was_told_is_not_stale(tmp_path: Path) -> None:
    logs = logs_of(
        tmp_path, ("send", 5, 0), ("away", "gone"), ("told", 5), ("send", 5, 0), ("ok", 5, 0)
    )
    assert logs.sent_when_told == set()


def test_tasks_that_were_given_back_are_counted(tmp_path: Path) -> None:
    logs = logs_of(tmp_path, ("claim", "t", 5), ("stray", 6), ("send", 6, 0), ("ok", 6, 0))
    assert (logs.strays, logs.acknowledged) == (1, {(6, 0)})


def test_the_sink_keeps_the_first_effect_and_records_every_attempt(tmp_path: Path) -> None:
    path = tmp_path / "sink.jsonl"
    with (
        closing(Sink(path)) as sink,
        SinkClient(sink.port) as one,
        SinkClient(sink.port) as other,
    ):
        assert one.effect("k", 1, "one", 5) == 1
        assert other.effect("k", 2, "other", 6) == 1
        assert other.effect("j", 3, "other", 6) == 3
    seen = [(record.key, record.value, record.effect) for record in read_records(path)]
    assert seen == [("k", 1, True), ("k", 2, False), ("j", 3, True)]


def heard_by(sink: Sink) -> tuple[str, str]:
    while True:
        for heard in sink.heard():
            return heard
        time.sleep(0.01)


def test_the_sink_catches_one_in_the_middle_of_its_step(tmp_path: Path) -> None:
    path = tmp_path / "sink.jsonl"
    with (
        closing(Sink(path)) as sink,
        SinkClient(sink.port) as one,
        SinkClient(sink.port) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        sink.catch()
        answer = pool.submit(one.effect, "k", 1, "one", 5)
        assert heard_by(sink) == ("caught", "one")
        assert [record.value for record in read_records(path)] == [1]
        assert other.effect("j", 2, "other", 6) == 2
        assert not answer.done()
        assert other.effect("k", 3, "other", 7) == 1
        assert heard_by(sink) == ("taken", "one")
        sink.release()
        assert answer.result(timeout=10) == 1
        assert list(sink.heard()) == []


def test_a_run_that_keeps_all_promises_under_faults_is_ok() -> None:
    assert SOUND.ok


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lost", 1),
        ("duplicate_closed", 1),
        ("stale_accepted", 1),
        ("acknowledged_lost", 1),
        ("problems", ("something",)),
        ("stale_refused", 49),
        ("recovered", 99),
        ("strays", 0),
        ("kills", 0),
        ("stops", 0),
        ("restarts", 0),
        ("looks", 0),
    ],
)
def test_a_broken_promise_or_a_missing_fault_is_not_ok(field: str, value: object) -> None:
    figures = {name: getattr(SOUND, name) for name in Verdict.__slots__}
    assert not Verdict(**{**figures, field: value}).ok


def test_a_smaller_run_has_to_show_less() -> None:
    figures = {name: getattr(SOUND, name) for name in Verdict.__slots__}
    assert Verdict(**{**figures, "roots": 200, "stale_refused": 5, "recovered": 10}).ok
    assert not Verdict(**{**figures, "roots": 200, "stale_refused": 4, "recovered": 10}).ok
