"""The decisions that mailboxes share, and what metrics tell of them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.messaging.errors import MessageRefused
from afl.messaging.letters import read, written
from afl.messaging.metrics import PrometheusMessageMetrics
from afl.messaging.models import AgentId, CoordinatorConfig, FailureType, MailboxCounts
from afl.messaging.rules import ROUND, backoff_seconds, changed, deal, verdict
from afl.testing.mail_conformance.driver import message


@given(
    attempts=st.integers(1, 10_000),
    base=st.floats(0.001, 1e6),
    factor=st.floats(1, 1e6),
    most=st.floats(0.001, 1e6),
    chance=st.floats(0, 1),
)
def test_a_backoff_is_between_half_and_the_whole(
    attempts: int, base: float, factor: float, most: float, chance: float
) -> None:
    config = CoordinatorConfig(backoff_base=base, backoff_factor=factor, backoff_max=most)
    try:
        whole = min(base * factor ** (attempts - 1), most)
    except OverflowError:
        whole = most
    wait = backoff_seconds(config, attempts, chance)
    assert whole / 2 * 0.999999 <= wait <= whole * 1.000001


@pytest.mark.parametrize(
    ("attempts", "failure", "expected"),
    [
        (1, FailureType.TRANSIENT, None),
        (3, FailureType.TIMEOUT, None),
        (4, FailureType.TRANSIENT, "retries"),
        (1, FailureType.PERMANENT, "permanent"),
        (3, None, None),
        (4, None, "retries"),
    ],
)
def test_a_message_is_given_up_after_its_retries(
    attempts: int, failure: FailureType | None, expected: str | None
) -> None:
    assert verdict(attempts, 3, failure) == expected


def test_a_round_has_nine_five_and_one() -> None:
    assert Counter(int(level) for level in ROUND) == {9: 9, 5: 5, 1: 1}
    assert all(ROUND[at] < 9 or ROUND[at - 1] < 9 or ROUND[at - 2] < 9 for at in range(15))


@given(
    queues=st.dictionaries(st.sampled_from([1, 5, 9]), st.lists(st.integers(), max_size=20)),
    turn=st.integers(0, 100),
    fairness=st.sampled_from(["strict", "weighted"]),
)
def test_everything_is_dealt_and_in_its_order(
    queues: dict[int, list[int]], turn: int, fairness: str
) -> None:
    marked = {
        level: [(level, place) for place in range(len(items))] for level, items in queues.items()
    }
    dealt = list(deal(marked, fairness, turn))
    for level, items in marked.items():
        assert [each for each in dealt if each[0] == level] == items
    if fairness == "strict":
        assert dealt == sorted(dealt, key=lambda each: -each[0])


def test_settings_that_never_end_are_refused() -> None:
    with pytest.raises(MessageRefused, match="backoff_max must be a finite number"):
        changed(CoordinatorConfig(), {"backoff_max": float("inf")})
    assert changed(CoordinatorConfig(), {"queue_size": 7}).version == 1


@pytest.mark.parametrize("payload", [{"a": {1}}, {"a": float("nan")}, {"a": b"bytes"}])
def test_a_payload_that_is_not_json_is_refused(payload: dict[str, object]) -> None:
    with pytest.raises(MessageRefused, match="cannot be written as JSON"):
        written(message(payload=payload))


def test_half_a_character_is_kept() -> None:
    sent = message(payload={"half": "\ud800"})
    assert written(sent).isascii()
    assert read(written(sent)) == sent


def test_metrics_are_told_in_prometheus_format() -> None:
    metrics = PrometheusMessageMetrics()
    metrics.inc_delivered_ok(3)
    metrics.inc_delivered_error(1)
    metrics.inc_nacks(2)
    metrics.inc_retries_scheduled(1, 1.5)
    metrics.inc_permanent(1)
    metrics.set_mailbox(AgentId(type='a"b'), MailboxCounts(sent=3, ready=1, reserved=1, dead=1))
    lines = metrics.expose().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "agent_orchestration_messages_delivered_total 3",
        "agent_orchestration_messages_delivery_errors_total 1",
        "agent_orchestration_message_retries_total 1",
        "agent_orchestration_message_nacks_total 2",
        "agent_orchestration_message_permanent_failures_total 1",
        "agent_orchestration_backoff_seconds 1.5",
        'agent_orchestration_queue_length{agent="a\\"b:default",state="ready"} 1',
        'agent_orchestration_queue_length{agent="a\\"b:default",state="delayed"} 0',
        'agent_orchestration_queue_length{agent="a\\"b:default",state="reserved"} 1',
        'agent_orchestration_dlq_length{agent="a\\"b:default"} 1',
    ]
    assert "# TYPE agent_orchestration_messages_delivered_total counter" in lines
    assert len(lines) == 10 + 2 * 8
