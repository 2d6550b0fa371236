"""Tree to program: names, types and data flow are checked while the compiled program is made.

The passes: `collect` (what is declared where), `signatures` (types of parameters, returns and
fields), `bodies` with `blocks`, `calls`, `references`, `expressions` and `yields` (one declaration
at a time), then what needs the whole program: `recursion` and `effects`. The one resolver in
`references` is what a run relies on: a name means at run time what it means here. The entry point
is `check_files`.
"""

from afl.lang.checker.program import check_files

__all__ = ["check_files"]
