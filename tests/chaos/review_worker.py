"""`afl worker` as a process that dies right before or right after a commit of a turn.

    python -m tests.chaos.review_worker FUSE SINK_PORT [OPTIONS OF afl worker]

Commits of a turn are those of the turn itself and of its tools. The process is the product's: only
the store's methods are watched, and what ends it is SIGKILL.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from afl.cli.main import cli
from afl.kernel.model import Claim, ClaimRequest, Commit, Committed, Fence, Task
from afl.kernel.port import Writes
from afl.kernel.postgres.tasks import PostgresTasks
from tests.chaos import review_handlers
from tests.chaos.review_fuse import AFTER, BEFORE, Fuse

T = TypeVar("T")


class Watch:
    """Knows which fence is whose, and what to count."""

    def __init__(self, fuse: Fuse) -> None:
        self._fuse = fuse
        self._claimed: dict[Fence, Task] = {}

    def take(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            self._claimed[claim.fence] = claim.task

    def around(self, commits: Sequence[Commit], act: Callable[[], T]) -> T:
        of_turn = [what for commit in commits if (what := self._name(commit)) is not None]
        if not of_turn:
            return act()
        deadly = self._fuse.count(", ".join(of_turn))
        if deadly == BEFORE:
            _die()
        done = act()
        if deadly == AFTER:
            _die()
        return done

    def _name(self, commit: Commit) -> str | None:
        task = self._claimed.get(commit.fence)
        if task is None:
            return None
        given = task.input if isinstance(task.input, dict) else {}
        if task.kind not in ("turn", "mcp") and "#" not in str(given.get("step")):
            return None
        kinds = "+".join(card.kind for card in commit.cards)
        then = type(commit.then).__name__.lower()
        return " ".join(part for part in (task.name, kinds, then) if part)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def watch(fuse: Fuse) -> None:
    """From now on, every commit of a turn in this process is counted."""
    watched = Watch(fuse)
    claim, commit = PostgresTasks.claim, PostgresTasks.commit
    commit_and_claim = PostgresTasks.commit_and_claim

    def claims(self: PostgresTasks, request: ClaimRequest) -> list[Claim]:
        found = claim(self, request)
        watched.take(found)
        return found

    def commits(
        self: PostgresTasks,
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        done = watched.around(commits, lambda: commit(self, commits, writes=writes, eager=eager))
        watched.take(claim for each in done for claim in each.eager)
        return done

    def both(
        self: PostgresTasks,
        commits: Sequence[Commit],
        request: ClaimRequest,
        *,
        writes: Writes | None = None,
    ) -> tuple[list[Committed], list[Claim]]:
        done, found = watched.around(
            commits, lambda: commit_and_claim(self, commits, request, writes=writes)
        )
        watched.take([*found, *(claim for each in done for claim in each.eager)])
        return done, found

    PostgresTasks.claim = claims  # type: ignore[method-assign]
    PostgresTasks.commit = commits  # type: ignore[method-assign]
    PostgresTasks.commit_and_claim = both  # type: ignore[method-assign]


def main(fuse: str, sink_port: str, *options: str) -> None:
    review_handlers.tell_sink_at(int(sink_port))
    watch(Fuse(Path(fuse)))
    cli.main(["worker", *options], prog_name="afl")


if __name__ == "__main__":
    main(*sys.argv[1:])
