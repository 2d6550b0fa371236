"""Throws generated and broken programs at the whole front-end.

    python -m tests.lang.fuzz --count 100000 --seed 1

Every input must end with a program or with diagnostics, within two seconds of a quick machine and
without exception.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from afl.lang.api import compile_sources
from afl.lang.diagnostics.render_concise import render_concise
from afl.lang.diagnostics.render_human import render_human
from afl.lang.diagnostics.render_json import to_json
from afl.lang.diagnostics.render_sarif import to_sarif
from afl.lang.formatter import format_file
from tests.lang.generate import SourceText, random_program
from tests.lang.mutate import (
    mutate_bytes,
    mutate_letters,
    mutate_tokens,
    random_letters,
    random_tokens,
    splice,
)
from tests.lang.torture import CASES
from tests.pace import slowness

LIMIT_SECONDS = 2.0
CHUNK = 250
_KINDS = ("program", "tokens", "letters", "bytes", "splice", "random tokens", "random letters")
_WEIGHTS = (15, 30, 15, 10, 15, 10, 5)


@dataclass(slots=True)
class Result:
    """What became of one input, or of many."""

    inputs: int = 0
    programs: int = 0
    with_diagnostics: int = 0
    slowest_ms: float = 0.0
    slowest: str = ""
    failures: list[tuple[str, str]] = field(default_factory=list)
    by_kind: Counter[str] = field(default_factory=Counter)

    def add(self, other: Result) -> None:
        self.inputs += other.inputs
        self.programs += other.programs
        self.with_diagnostics += other.with_diagnostics
        self.failures += other.failures
        self.by_kind += other.by_kind
        if other.slowest_ms > self.slowest_ms:
            self.slowest_ms, self.slowest = other.slowest_ms, other.slowest


def make_input(seed: int, index: int) -> tuple[str, list[SourceText]]:
    """The input with a number: its kind and its files."""
    rng = Random(f"{seed}/{index}")
    kind = rng.choices(_KINDS, _WEIGHTS)[0]
    if kind == "random tokens":
        return kind, [("tokens.afl", random_tokens(rng, rng.randint(1, 300)))]
    if kind == "random letters":
        return kind, [("letters.afl", random_letters(rng, rng.randint(1, 500)))]
    files = random_program(rng, rng.randint(1, 6))
    chosen = rng.randrange(len(files))
    name, text = files[chosen]
    if kind == "tokens":
        text = mutate_tokens(text, rng, rng.randint(1, 8))
    elif kind == "letters":
        text = mutate_letters(text, rng, rng.randint(1, 8))
    elif kind == "bytes":
        text = mutate_bytes(text, rng)
    elif kind == "splice":
        text = splice(text, rng.choice(random_program(rng, 3))[1], rng)
    files[chosen] = (name, text)
    return kind, files


def run_front_end(files: list[SourceText]) -> tuple[bool, bool]:
    """All that the front-end does with files. Answers if it gave a program, and diagnostics."""
    compilation = compile_sources(files)
    found = compilation.diagnostics
    render_human(found, colour=True).encode("utf-8")
    render_concise(found).encode("utf-8")
    json.dumps(to_json(found)).encode("utf-8")
    json.dumps(to_sarif(found, version="0")).encode("utf-8")
    for file in compilation.files:
        if not any(diagnostic.is_error for diagnostic in file.diagnostics):
            format_file(file)
    broken = any(diagnostic.is_error for diagnostic in found)
    if broken == (compilation.program is not None):
        raise AssertionError("there must be a program exactly when there is no error")
    return compilation.program is not None, bool(found)


def try_input(name: str, kind: str, files: list[SourceText]) -> Result:
    """Runs one input; an exception or too much time is a failure."""
    result = Result(inputs=1, by_kind=Counter({kind: 1}))
    seconds = 0.0
    # the processor's time, not the clock's: others use this machine too
    for _ in range(2):
        start = time.thread_time()
        try:
            program, diagnostics = run_front_end(files)
        except Exception:  # noqa: BLE001  # any exception is what we are looking for
            result.failures.append((name, traceback.format_exc(limit=-6)))
            return result
        seconds = time.thread_time() - start
        if seconds <= LIMIT_SECONDS or seconds <= LIMIT_SECONDS * slowness():
            break
    else:
        result.failures.append((name, f"took {seconds:.1f} s"))
    result.programs, result.with_diagnostics = int(program), int(diagnostics)
    result.slowest_ms, result.slowest = seconds * 1000, name
    return result


def run_chunk(seed: int, start: int, end: int) -> Result:
    """The inputs of a range, one after another."""
    total = Result()
    for index in range(start, end):
        kind, files = make_input(seed, index)
        total.add(try_input(f"seed {seed} index {index}", kind, files))
    return total


def run_torture(name: str) -> Result:
    return try_input(name, "torture", [("torture.afl", CASES[name]())])


def run(count: int, seed: int, processes: int, *, torture: bool = True) -> Result:
    """All inputs, over several processes."""
    total = Result()
    with ProcessPoolExecutor(processes) as pool:
        jobs = [
            pool.submit(run_chunk, seed, start, min(start + CHUNK, count))
            for start in range(0, count, CHUNK)
        ]
        if torture:
            jobs += [pool.submit(run_torture, name) for name in CASES]
        for job in jobs:
            total.add(job.result())
    return total


def write_failures(result: Result, folder: Path) -> Iterator[str]:
    """Stores every failing input and tells where."""
    for number, (name, why) in enumerate(result.failures):
        if name in CASES:
            files = [("torture.afl", CASES[name]())]
        else:
            _, seed, _, index = name.split()
            files = make_input(int(seed), int(index))[1]
        for file, text in files:
            path = folder / f"failure-{number}-{file}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
            yield f"{name}: {path}"
        yield why


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.lang.fuzz", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--count", type=int, default=100_000, help="how many random inputs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--out", type=Path, default=Path("build/fuzz"), help="where failing inputs go"
    )
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    result = run(options.count, options.seed, options.processes)
    seconds = time.perf_counter() - start
    for line in write_failures(result, options.out):
        print(line)
    for kind, number in sorted(result.by_kind.items()):
        print(f"{kind:<16}{number:>10,}")
    print(f"{'seconds':<16}{seconds:>10.1f}")
    print(f"{'slowest, ms':<16}{result.slowest_ms:>10.0f}  {result.slowest}")
    figures = {
        "inputs": result.inputs,
        "seed": options.seed,
        "seconds": round(seconds, 1),
        "slowest_ms": round(result.slowest_ms),
        "programs": result.programs,
        "with_diagnostics": result.with_diagnostics,
        "crashes": len(result.failures),
    }
    print(json.dumps(figures))
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
