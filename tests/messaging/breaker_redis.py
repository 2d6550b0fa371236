"""A Redis for breakers and registries: each test has a prefix of its own, and leaves nothing."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import redis

URL = "redis://127.0.0.1:6379/0"


@cache
def redis_is_there() -> bool:
    with redis.Redis.from_url(URL) as client:
        try:
            client.ping()
        except redis.ConnectionError:
            return False
    return True


@contextmanager
def prefix() -> Iterator[str]:
    """A prefix that nobody else has; its keys are removed afterwards."""
    name = f"afl-test-{secrets.token_hex(6)}"
    try:
        yield name
    finally:
        with redis.Redis.from_url(URL) as client:
            for key in client.scan_iter(f"{name}:*", count=1000):
                client.delete(key)
