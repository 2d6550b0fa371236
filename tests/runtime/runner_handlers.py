"""Handlers for runners that tests start as processes of their own."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from afl.runtime.runner import ToolRegistry

registry = ToolRegistry()
NUMBER = 1


def pay(params: dict[str, Any]) -> dict[str, Any]:
    return {"paid": params["amount"] + 1}


def slow(params: dict[str, Any]) -> dict[str, Any]:
    """Tells that it was called, and waits to be let through."""
    folder = Path(os.environ["SLOW_FOLDER"])
    (folder / f"entered-{os.getpid()}").touch()
    while not (folder / "leave").exists():
        time.sleep(0.01)
    return {"paid": params["amount"] + 1}


registry.register("Pay", pay)
registry.register("Slow", slow)
MORE = {"billing.Refund": lambda params: {"refunded": params["amount"]}}
