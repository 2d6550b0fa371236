"""Tokens to tree: recursive descent with recovery.

`parse_x` reads an x that must stand here, `maybe_x` reads one if it does. A part that cannot be
read is reported once and left out or marked, and reading goes on at the next argument, statement or
declaration. The entry point is `parse`.
"""

from afl.lang.parser.program import parse

__all__ = ["parse"]
