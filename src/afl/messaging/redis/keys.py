"""The names of what a mailbox keeps in Redis.

queue       LIST  ids of all living letters in the order of sending; its length is what is full
sched       ZSET  for each priority: ids of letters that wait, by the time they are ready
reserved    HASH  token: when its letter was ready, and the letter's id
reserved_deadlines ZSET  tokens by their deadline
dlq         LIST  ids of dead letters, the oldest first
subs        SET   the subscribed types; `subscriptions` HASH says by whom
messages    HASH  id: when it was sent, and the message as it came
attempts, errors, deaths  HASH  by id
expiries    ZSET  ids of letters that nobody has received yet and that shall not wait for ever
dedup       ZSET  message ids by the time until which they are remembered
settled     ZSET  marks of what was answered lately
meta        HASH  counters, the last serial, the clock, the credits of priorities
config      HASH  the settings

Times are in microseconds. In the style `tagged` all keys of a mailbox are in one slot of a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from afl.messaging.models import AgentId

KeyStyle = Literal["plain", "tagged"]

_MAILBOX_KEYS: Mapping[str, str] = {
    "queue": "queue:{agent}",
    "high": "sched:{agent}:prio:9",
    "normal": "sched:{agent}:prio:5",
    "low": "sched:{agent}:prio:1",
    "reserved": "reserved:{agent}",
    "deadlines": "reserved_deadlines:{agent}",
    "dlq": "dlq:{agent}",
    "subs": "subs:{agent}",
    "subscriptions": "subscriptions:{agent}",
    "messages": "messages:{agent}",
    "attempts": "attempts:{agent}",
    "errors": "errors:{agent}",
    "deaths": "deaths:{agent}",
    "expiries": "expiries:{agent}",
    "dedup": "dedup:{agent}",
    "settled": "settled:{agent}",
    "meta": "meta:{agent}",
}


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The keys of one agent, and the channel of its doorbell."""

    bell: str
    named: Mapping[str, bytes]
    #: by script, since the same are asked for again and again
    _lists: dict[str, tuple[bytes, ...]] = field(default_factory=dict)

    def keys_of(self, script: str, names: Sequence[str]) -> tuple[bytes, ...]:
        """The keys of a script, in its order."""
        if script not in self._lists:
            self._lists[script] = tuple(self.named[name] for name in names)
        return self._lists[script]


@dataclass(frozen=True, slots=True)
class KeySpace:
    """The keys below a prefix."""

    prefix: str
    style: KeyStyle

    @property
    def config(self) -> str:
        """The settings that `configure` writes and that new mailboxes begin with."""
        return f"{self.prefix}:config"

    def mailbox(self, agent: AgentId) -> Mailbox:
        return self._mailbox(str(agent))

    def mailbox_of(self, key: str) -> Mailbox:
        """The one to which a key found by `every` belongs."""
        agent = key.removeprefix(f"{self.prefix}:").partition(":")[2]
        return self._mailbox(agent.strip("{}"))

    def every(self, name: str) -> str:
        """A pattern for the key of this name in every mailbox."""
        pattern = _MAILBOX_KEYS.get(name, f"{name}:{{agent}}").format(agent="*")
        return f"{_literal(self.prefix)}:{pattern}"

    def _mailbox(self, agent: str) -> Mailbox:
        tagged = self.style == "tagged"
        place = f"{{{agent}}}" if tagged else agent
        named = {
            name: f"{self.prefix}:{pattern.format(agent=place)}".encode()
            for name, pattern in _MAILBOX_KEYS.items()
        }
        # in a cluster a script cannot read the settings in another slot, so each mailbox has a copy
        config = f"{self.config}:{place}" if tagged else self.config
        return Mailbox(f"{self.prefix}:bell:{place}", {**named, "config": config.encode()})


def _literal(text: str) -> str:
    """As a pattern that means itself."""
    return "".join(f"\\{each}" if each in "*?[]\\^" else each for each in text)
