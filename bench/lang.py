"""How fast the compiler checks a large program: `python -m bench.lang`."""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from dataclasses import dataclass, field

from afl.lang.api import compile_files
from afl.lang.diagnostics.reporter import Reporter
from afl.lang.lexer import tokenize
from afl.lang.parser import parse
from afl.lang.source import Source
from bench.program import large_program

WARM_UP = 2
ROUNDS = 9


@dataclass(slots=True)
class Times:
    """Seconds of every round, by phase."""

    lexing: list[float] = field(default_factory=list)
    parsing: list[float] = field(default_factory=list)
    checking: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)


def measure(program: list[tuple[str, str]], rounds: int, warm_up: int) -> Times:
    """Checks a program several times. Lexing is also measured alone, to tell it from parsing."""
    times = Times()
    for number in range(warm_up + rounds):
        gc.collect()
        start = time.perf_counter()
        for name, text in program:
            tokenize(Source(name, text), Reporter())
        lexed = time.perf_counter()
        files = [parse(Source(name, text)) for name, text in program]
        parsed = time.perf_counter()
        compilation = compile_files(files)
        checked = time.perf_counter()
        if compilation.program is None:
            raise SystemExit(f"the program has errors: {compilation.errors[0].message}")
        if number >= warm_up:
            times.lexing.append(lexed - start)
            times.parsing.append((parsed - lexed) - (lexed - start))
            times.checking.append(checked - parsed)
            times.total.append(checked - lexed)
    return times


def report(times: Times, lines: int, files: int) -> str:
    """A table, and the figures as one JSON object in the last line."""
    rows = [f"{'phase':<10}{'median ms':>12}{'lowest':>10}{'highest':>10}"]
    for phase in ("lexing", "parsing", "checking", "total"):
        values = [seconds * 1000 for seconds in getattr(times, phase)]
        rows.append(
            f"{phase:<10}{statistics.median(values):>12.1f}{min(values):>10.1f}{max(values):>10.1f}"
        )
    seconds = statistics.median(times.total)
    figures = {
        "lines": lines,
        "files": files,
        "seconds": round(seconds, 4),
        "lines_per_second": round(lines / seconds),
    }
    return "\n".join([*rows, json.dumps(figures)])


def main() -> int:
    program = large_program()
    lines = sum(text.count("\n") for _, text in program)
    print(report(measure(program, ROUNDS, WARM_UP), lines, len(program)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
