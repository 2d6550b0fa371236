"""`python -m afl` is the same program as the `afl` command."""

from __future__ import annotations

from afl.cli.main import main

if __name__ == "__main__":
    main()
