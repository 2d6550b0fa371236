"""AgentFlow: durable flows, written in AFL and run by workers.

    from afl import App, Client, Context, Retry, Permanent, Skip

The package is layered: `base` at the bottom, then `ir` (the compiled program), `kernel` (tasks and
calls), `lang` (the compiler front-end) and `runtime` (runs), `app` (the SDK), and `cli` on top.
Importing `afl` has no effect beyond naming the version: the names of the SDK are loaded when they
are first used.
"""

from __future__ import annotations

import importlib

# what type checkers take for true, without loading `typing`, which takes longer than all the rest
TYPE_CHECKING = False
if TYPE_CHECKING:
    from afl.app.app import App
    from afl.app.client import Client
    from afl.app.context import Context
    from afl.app.errors import Permanent, Retry, Skip
    from afl.app.run import Run
    from afl.bridges.claude_agent_runner import ClaudeAgentRunner

__all__ = [
    "App",
    "ClaudeAgentRunner",
    "Client",
    "Context",
    "Permanent",
    "Retry",
    "Run",
    "Skip",
    "__version__",
]

__version__ = "0.1.0"

_HOMES = {
    "App": "afl.app.app",
    "ClaudeAgentRunner": "afl.bridges.claude_agent_runner",
    "Client": "afl.app.client",
    "Context": "afl.app.context",
    "Permanent": "afl.app.errors",
    "Retry": "afl.app.errors",
    "Run": "afl.app.run",
    "Skip": "afl.app.errors",
}


if not TYPE_CHECKING:  # a checker would take every name for one that is there

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'afl' has no attribute {name!r}")
        return getattr(importlib.import_module(home), name)
