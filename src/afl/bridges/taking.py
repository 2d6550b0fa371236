"""A store whose commits hand the tasks that they make to whoever commits: nobody else sees them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

from afl.kernel.model import Claim, ClaimRequest, Commit, Committed, TaskSpec, WorkerId
from afl.kernel.port import Store, Writes
from afl.turns.ports import TurnStore


class TakingKernel:
    """The kernel, with claims of all that its commits have made and somebody here serves."""

    def __init__(
        self, kernel: Store, worker: WorkerId, is_served: Callable[[TaskSpec], bool]
    ) -> None:
        self._kernel = kernel
        self._worker = worker
        self._is_served = is_served
        #: what was taken and not worked on yet, in the order in which it was made
        self.taken: deque[Claim] = deque()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the kernel has
        return getattr(self._kernel, name)

    def commit(
        self,
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        """Commits, and takes the tasks of new calls in the same transaction."""
        done = self._kernel.commit(commits, writes=writes, eager=eager or self._wish(commits))
        self.taken.extend(claim for each in done for claim in each.eager)
        return done

    def _wish(self, commits: Sequence[Commit]) -> ClaimRequest | None:
        made = [call.task for commit in commits for call in commit.calls]
        mine = [spec for spec in made if self._is_served(spec)]
        if not mine:
            return None
        names = tuple(dict.fromkeys(spec.name for spec in mine))
        lists = tuple(dict.fromkeys(spec.list for spec in mine))
        return ClaimRequest(self._worker, names, lists, len(mine))


class TakingStore:
    """The store of turns on such a kernel."""

    def __init__(self, store: TurnStore, kernel: Store) -> None:
        self._store = store
        self.kernel = kernel

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._store, name)


def taking(store: TurnStore, kernel: Store) -> TurnStore:
    """The store of turns, on a kernel that takes."""
    return cast("TurnStore", TakingStore(store, kernel))
