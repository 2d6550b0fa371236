"""Kills a worker at every commit of a review by a model, and judges the outcome.

python -m tests.chaos.review

The review example runs on PostgreSQL with two `afl worker` processes, a provider of models on a
socket, a real MCP server, and a person. It is run once without a fault; then once for each commit
of the turn and of its tools and each side of it, with the worker that makes the commit killed there
by SIGKILL. Every run must come to the same transcript, word for word, and to the same effects.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from pathlib import Path

from afl import Client
from afl.app.services import Services, connect
from afl.kernel.model import Json
from afl.turns.model import Allowance
from tests.chaos.evidence import install_audit, read_closed
from tests.chaos.review_fleet import ReviewFleet
from tests.chaos.review_fuse import AFTER, BEFORE
from tests.chaos.review_handlers import EXAMPLE
from tests.chaos.review_judge import Around, Review, differences, faults, review_of
from tests.chaos.sink import read_records
from tests.cli.deployed import fresh_database

INPUTS: dict[str, Json] = {"repo": "demo", "number": 7}
#: Which commit of the turn and its tools, from 1, and on which side of it.
Kill = tuple[int, str]
_RUN_SECONDS = 120.0
_TENANT = "default"


@dataclass(frozen=True, slots=True)
class Case:
    """One run, and what was done to it."""

    at: int
    when: str
    #: the commit at which a worker was killed; empty if none was
    commit: str
    seconds: float
    around: Around
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything that was seen."""

    #: how many commits the turn and its tools make
    commits: int
    #: what a run without faults takes
    plain: Around
    cases: tuple[Case, ...]
    seconds: float

    @property
    def kills(self) -> int:
        return sum(bool(case.commit) for case in self.cases)

    @property
    def problems(self) -> list[str]:
        return [
            f"killed {case.when} commit {case.at} ({case.commit}): {problem}"
            for case in self.cases
            for problem in case.problems
        ]

    @property
    def ok(self) -> bool:
        return not self.problems and self.kills == len(self.cases) > 0


class World:
    """The example, deployed, with its workers. Runs it as often as one likes."""

    def __init__(self, url: str, client: Client, services: Services, fleet: ReviewFleet) -> None:
        self._url = url
        self._client = client
        self._services = services
        self._fleet = fleet

    def run(self, at: int = 0, when: str = BEFORE) -> tuple[Review, Around, str]:
        """One run from its submit to its end; what came of it, what it took, and the commit at
        which a worker was killed."""
        fleet = self._fleet
        fleet.wait_until_ready()
        before = self._around()
        fleet.fuse.arm(at, when)
        run = self._client.submit("review.ReviewPull", INPUTS)
        end = time.monotonic() + _RUN_SECONDS
        while run.state not in ("completed", "failed", "canceled"):
            if time.monotonic() > end:
                raise RuntimeError(f"the run does not end: {run.why().sentence}")
            fleet.tend()
            for item in self._client.inbox().list("maintainers"):
                self._client.inbox().answer(item.task, {"approved": True}, by="Grace")
            time.sleep(0.05)
        fuse = fleet.fuse.read()
        after = self._around()
        records = list(read_records(fleet.records))[before.attempts :]
        closed = read_closed(self._url)
        review = review_of(self._client, self._services, run.id, records, closed)
        took = Around(
            after.attempts - before.attempts,
            after.model_requests - before.model_requests,
            after.charged - before.charged,
        )
        return review, took, fuse.commits[at - 1] if fuse.has_fired else ""

    def commits(self) -> int:
        """How many commits the last run has counted."""
        return len(self._fleet.fuse.read().commits)

    def _around(self) -> Around:
        budget = self._client.costs.budget("tenant", _TENANT)
        assert budget is not None
        records = self._fleet.records
        seen = list(read_records(records)) if records.exists() else []
        return Around(len(seen), len(self._fleet.provider.requests), budget.spent.model_calls)


@contextmanager
def world() -> Iterator[World]:
    """A database, the workers and all that they talk to. Leaves nothing behind."""
    with (
        tempfile.TemporaryDirectory(prefix="afl-review-") as folder,
        fresh_database() as url,
        connect(url) as services,
        Client(services=services) as client,
    ):
        install_audit(url)
        client.deploy(EXAMPLE)
        # a budget that covers all makes each request reserve room first: one more commit
        client.costs.set_budget("tenant", _TENANT, Allowance(usd=Decimal(1000)))
        with ReviewFleet(url, Path(folder)) as fleet:
            yield World(url, client, services, fleet)


def crash(kills: Sequence[Kill] | None = None) -> Verdict:
    """Kills a worker at these commits; else at all of them, until a run has no more."""
    started = time.monotonic()
    cases: list[Case] = []
    with world() as reviews:
        expected, plain, _ = reviews.run()
        commits = reviews.commits()
        if wrong := faults(expected):
            raise RuntimeError(f"the run without faults is wrong: {'; '.join(wrong)}")
        for number in count(1):
            if kills is not None and number > len(kills):
                break
            at, when = _every(number) if kills is None else kills[number - 1]
            begun = time.monotonic()
            review, took, killed = reviews.run(at, when)
            if kills is None and not killed:
                break
            problems = (*differences(review, expected), *_unpaid(took))
            cases.append(Case(at, when, killed, time.monotonic() - begun, took, problems))
            print(_line(cases[-1]), flush=True)
    return Verdict(commits, plain, tuple(cases), time.monotonic() - started)


def _every(number: int) -> Kill:
    """Before the first commit, after it, before the second, and so on."""
    return (number + 1) // 2, BEFORE if number % 2 else AFTER


def _unpaid(took: Around) -> list[str]:
    """What was asked is paid for, also when the answer was lost."""
    if took.charged >= took.model_requests:
        return []
    return [f"{took.model_requests} requests were made, and {took.charged} counted as spent"]


def _line(case: Case) -> str:
    verdict = "same" if not case.problems else "DIFFERENT"
    figures = f"{case.seconds:6.1f}s {case.around.model_requests:>4} {case.around.attempts:>4}"
    return f"{case.at:>3} {case.when:<6} {figures}  {verdict:<9}  {case.commit or 'nobody died'}"


def report(verdict: Verdict) -> dict[str, object]:
    """Prints the figures, the last line as JSON; answers them."""
    for problem in verdict.problems:
        print(problem)
    requests = [case.around.model_requests - verdict.plain.model_requests for case in verdict.cases]
    attempts = [case.around.attempts - verdict.plain.attempts for case in verdict.cases]
    figures: dict[str, object] = {
        "commits": verdict.commits,
        "kills": verdict.kills,
        "different": sum(bool(case.problems) for case in verdict.cases),
        "requests_again": sum(requests),
        "most_requests_again": max(requests, default=0),
        "tool_attempts_again": sum(attempts),
        "slowest_seconds": round(max((case.seconds for case in verdict.cases), default=0.0), 1),
        "seconds": round(verdict.seconds, 1),
        "ok": verdict.ok,
    }
    for name, value in figures.items():
        print(f"  {name.replace('_', ' '):<24}{value!s:>10}")
    print(json.dumps(figures))
    return figures


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos.review", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--at", type=int, nargs="*", help="only at these commits, from 1")
    options = parser.parse_args(arguments)
    # so that everything is cleaned up
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print("  # side      time asks calls transcript commit")
    chosen = [(at, when) for at in options.at for when in (BEFORE, AFTER)] if options.at else None
    verdict = crash(chosen)
    report(verdict)
    return int(not verdict.ok)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
