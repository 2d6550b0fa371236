"""What the commands that break things have in common: options, a table, and figures as JSON."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tests.chaos.server import find_binaries

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_SHOWN = 10


class Verdict(Protocol):
    """What a judge says; a dataclass."""

    @property
    def problems(self) -> tuple[str, ...]: ...
    @property
    def doubts(self) -> list[str]: ...
    @property
    def ok(self) -> bool: ...


Options = TypeVar("Options", bound="DataclassInstance")


def report(verdict: Verdict) -> None:
    """Print the table and the figures as JSON."""
    for problem in verdict.problems[:_SHOWN]:
        print(problem)
    if len(verdict.problems) > _SHOWN:
        print(f"and {len(verdict.problems) - _SHOWN} more problems")
    for doubt in verdict.doubts:
        print(f"This run proves nothing: {doubt}.")
    judged: Any = verdict
    figures: dict[str, object] = asdict(judged)
    figures["problems"] = len(verdict.problems)
    figures["ok"] = verdict.ok
    for name, value in figures.items():
        print(f"  {name.replace('_', ' '):<24}{value!s:>10}")
    print(json.dumps(figures))


def carry_out(
    name: str,
    about: str | None,
    defaults: Options,
    run: Callable[[Options, Path], Verdict],
    arguments: Sequence[str],
    find: Callable[[Options], Path | None] | None = None,
) -> int:
    """Run the command `python -m tests.chaos.<name>`, with an option for each field of `defaults`;
    answers its exit code. `find` says where the database server is; PostgreSQL unless given."""
    parser = argparse.ArgumentParser(
        prog=f"python -m tests.chaos.{name}", description=(about or "").splitlines()[0]
    )
    for field in fields(defaults):
        value = getattr(defaults, field.name)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(value), default=value)
    options = type(defaults)(**vars(parser.parse_args(arguments)))
    # that connections break is what this is about
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    binaries = find_binaries() if find is None else find(options)
    if binaries is None:
        print("There is no such database server on this machine: initdb and pg_ctl, or mongod.")
        return 2
    # so that everything is cleaned up
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    verdict = run(options, binaries)
    report(verdict)
    return int(not verdict.ok)
