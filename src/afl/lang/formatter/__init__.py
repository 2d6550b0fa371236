"""AFL in its one layout: two blanks of indentation, lines of up to 100 characters.

The walk: `program` (the entry), `declarations`, `blocks`, `expressions` and `brackets` write the
tree in source order through `tokens_out`, which hands on every token once, with the comments around
it as `gaps` has sorted them; `doc` holds what was written and `layout` makes lines of it.

Invariants: the tree of the result is the tree that came in, all comments are there in their order,
and formatting twice is formatting once. May import the parser; pure.
"""

from __future__ import annotations

from afl.lang.formatter.program import FormatResult, format_file, format_source

__all__ = ["FormatResult", "format_file", "format_source"]
