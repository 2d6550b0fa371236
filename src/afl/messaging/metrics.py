"""Who hears how it goes with messages: nobody, or Prometheus, in its text format."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from afl.messaging.models import AgentId, MailboxCounts

#: What `PrometheusMessageMetrics.expose` is to be served as.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "agent_orchestration"
_DELIVERED = "messages_delivered_total"
_ERRORS = "messages_delivery_errors_total"
_RETRIES = "message_retries_total"
_NACKS = "message_nacks_total"
_PERMANENT = "message_permanent_failures_total"
_BACKOFF = "backoff_seconds"
_HELP = {
    _DELIVERED: ("counter", "Messages that were put into mailboxes."),
    _ERRORS: ("counter", "Messages that mailboxes refused."),
    _RETRIES: ("counter", "Messages that were scheduled to come again."),
    _NACKS: ("counter", "Messages that were not processed."),
    _PERMANENT: ("counter", "Messages that became dead letters."),
    _BACKOFF: ("gauge", "How long the last message to be retried has to wait."),
}


class _Silence:
    """Tells nobody."""

    def inc_delivered_ok(self, count: int) -> None: ...
    def inc_delivered_error(self, count: int) -> None: ...
    def inc_retries_scheduled(self, count: int, last_backoff_seconds: float) -> None: ...
    def inc_nacks(self, count: int) -> None: ...
    def inc_permanent(self, count: int) -> None: ...


SILENT = _Silence()


class PrometheusMessageMetrics:
    """Counts in memory; `expose` is the page that Prometheus reads. Threads may share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, float] = dict.fromkeys(_HELP, 0)
        self._mailboxes: dict[str, MailboxCounts] = {}

    def inc_delivered_ok(self, count: int) -> None:
        """Messages were put into mailboxes."""
        self._add(_DELIVERED, count)

    def inc_delivered_error(self, count: int) -> None:
        """Messages were refused."""
        self._add(_ERRORS, count)

    def inc_retries_scheduled(self, count: int, last_backoff_seconds: float) -> None:
        """Messages come again; the last of them after so many seconds."""
        with self._lock:
            self._values[_RETRIES] += count
            self._values[_BACKOFF] = last_backoff_seconds

    def inc_nacks(self, count: int) -> None:
        """Messages were not processed."""
        self._add(_NACKS, count)

    def inc_permanent(self, count: int) -> None:
        """Messages became dead letters."""
        self._add(_PERMANENT, count)

    def set_mailbox(self, agent_id: AgentId, counts: MailboxCounts) -> None:
        """What `MessageCoordinator.counts` told last about a mailbox."""
        with self._lock:
            self._mailboxes[str(agent_id)] = counts

    def expose(self) -> str:
        """Everything, in Prometheus' text format."""
        with self._lock:
            values, mailboxes = dict(self._values), sorted(self._mailboxes.items())
        lines: list[str] = []
        for name, (kind, help_) in _HELP.items():
            lines += [*_head(name, kind, help_), f"{_PREFIX}_{name} {values[name]:.12g}"]
        lines += _head("queue_length", "gauge", "Messages in a mailbox, by where they are.")
        lines += (
            _sample("queue_length", number, agent=agent, state=state)
            for agent, counts in mailboxes
            for state, number in _lengths(counts)
        )
        lines += _head("dlq_length", "gauge", "Dead letters of a mailbox.")
        lines += (_sample("dlq_length", counts.dead, agent=agent) for agent, counts in mailboxes)
        return "\n".join(lines) + "\n"

    def _add(self, name: str, count: int) -> None:
        with self._lock:
            self._values[name] += count


def _lengths(counts: MailboxCounts) -> Iterable[tuple[str, int]]:
    return (
        ("ready", counts.ready),
        ("delayed", counts.delayed),
        ("reserved", counts.reserved),
    )


def _head(name: str, kind: str, help_: str) -> list[str]:
    return [f"# HELP {_PREFIX}_{name} {help_}", f"# TYPE {_PREFIX}_{name} {kind}"]


def _sample(name: str, value: int, **labels: str) -> str:
    pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{_PREFIX}_{name}{{{pairs}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
