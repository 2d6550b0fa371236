"""Handlers that run in a process of their own, so they are found by module and name."""

from __future__ import annotations

import os

from afl import Context


def square(n: int, ctx: Context) -> dict[str, int]:
    return {"n": n * n, "pid": os.getpid(), "attempt": ctx.attempt}
