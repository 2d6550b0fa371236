"""Random policies, where they may stand and with values in range."""

from __future__ import annotations

from random import Random

from tests.lang.generation.world import Facet

#: a person serves the event facet, so nothing else may
HUMAN = ('Human(group = "legal")', 'Human(group = "team-a", deadline = 3d)')
#: for what handlers serve
BREAKER = ("Breaker()", 'Breaker(service = "crm", failures = 3, cooldown = 30s)')
_RETRY = (
    "Retry()",
    "Retry(max_attempts = 5, delay = 2s, backoff = 1.5)",
    'Retry(on = ["Timeout"], jitter = false)',
)
_TIMEOUT = ("Timeout(minutes = 5)", "Timeout(hours = 1, seconds = 30)")
_EVENT = (
    _RETRY,
    _TIMEOUT,
    ('Queue(name = "gpu")',),
    ("Priority(level = 9)", "Priority(level = 0)"),
    ("Concurrency(max = 4)", 'Concurrency(max = 1, key = "k")'),
    ("RateLimit(max = 10, per = 1m)",),
    ("Budget(usd = 0.5)", "Budget(usd = 2.0, tokens = 100_000)"),
    ("Effect(kind = idempotent)", "Effect(kind = keyed)"),
    ("Effect(kind = pure) with Cache(ttl = 1d)",),
    ("Placement(kind = sticky)", 'Placement(kind = pinned, label = "eu")'),
)
_CALL = (_RETRY, _TIMEOUT, ("Priority(level = 3)",), ('Queue(name = "slow")',))


def event_policies(rng: Random, key: str) -> list[str]:
    """Policies of an event facet; `key` is a String that may read its parameters."""
    if rng.random() < 0.1:
        return [
            f"with RateLimit(max = 2, per = 30s, key = {key})",
            "with Effect(kind = irreversible)",
        ]
    chosen = rng.sample(_EVENT, rng.choice((0, 0, 1, 2)))
    if sum("Effect" in options[0] for options in chosen) > 1:
        chosen = chosen[:1]
    return [f"with {rng.choice(options)}" for options in chosen]


def flow_policies(rng: Random) -> list[str]:
    """Policies for the signature of a workflow."""
    return rng.choice(([], [], ["with FailFast()"], [f"with {rng.choice(_TIMEOUT)}"]))


def call_policies(rng: Random, callee: Facet, key: str) -> str:
    """Policies for a step; `key` is a String that may read what the step can read."""
    roll = rng.random()
    if callee.form not in ("event", "workflow") or roll < 0.8:
        return ""
    if roll < 0.9:
        return f" with Concurrency(max = 3, key = {key})"
    return f" with {rng.choice(rng.choice(_CALL if callee.retries else _CALL[1:]))}"
