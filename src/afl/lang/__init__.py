"""The AFL front-end: from source text to a checked program. Pure: no file, no clock, no terminal.

The walk: `api` (what callers use), `lexer`, `parser`, `tree` (what stands in a file), `checker`
(names, types and data flow; it makes the program as it goes), `formatter`, `diagnostics`. May
import `afl.ir` and `afl.base`, nothing above.
"""
