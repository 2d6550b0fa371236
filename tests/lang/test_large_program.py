"""The program that the measurements use is a good one, and large enough."""

from __future__ import annotations

from afl.lang.api import compile_sources
from bench.lang import Times, measure, report
from bench.program import large_program


def test_ten_thousand_lines_check_without_errors() -> None:
    program = large_program()
    assert len({name for name, _ in program}) == 20
    assert sum(text.count("\n") for _, text in program) == 10_000
    compilation = compile_sources(program)
    assert compilation.diagnostics == ()
    assert compilation.program is not None
    assert len(compilation.program.facets) == 20 * 8 * 4


def test_the_report_ends_with_its_figures() -> None:
    times = Times(lexing=[0.1, 0.2], parsing=[0.3, 0.4], checking=[0.5], total=[2.0, 1.0, 4.0])
    rows = report(times, 500, 3).splitlines()
    assert rows[-1] == '{"lines": 500, "files": 3, "seconds": 2.0, "lines_per_second": 250}'
    assert [row.split()[0] for row in rows[1:-1]] == ["lexing", "parsing", "checking", "total"]
    assert rows[-2].split()[1:] == ["2000.0", "1000.0", "4000.0"]


def test_every_round_is_measured() -> None:
    times = measure(large_program()[:1], rounds=2, warm_up=1)
    assert len(times.total) == len(times.lexing) == 2
    assert all(seconds > 0 for seconds in times.total)
