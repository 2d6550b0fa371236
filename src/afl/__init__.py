"""AgentFlow: durable flows, written in AFL and run by workers.

The package is layered: `base` at the bottom, then `ir` (the compiled program), `lang` (the compiler
front-end) and `cli` on top. Importing `afl` has no effect beyond naming the version.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
