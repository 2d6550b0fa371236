"""A flow, killed at every point at which it commits, must come to the same end.

Each commit is a point at which a process may die twice: just before it, when nothing of it is kept,
and just after, when all of it is and nobody was told. For each, the run is done again from the
start; the process dies there, and another one that knows nothing goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from afl.kernel.model import Json, Task
from afl.runtime.driver import LEASE
from afl.testing.engine import Engine, Finished


class Diverged(AssertionError):
    """A run that was killed came to another end than one that was not."""


class _Killed(BaseException):
    """The process is gone. Not an Exception: nothing in it may go on."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a simulation has shown: how the run ends, however it is killed."""

    finished: Finished
    #: how many commits a run has
    commits: int
    #: how many processes were killed
    kills: int

    @property
    def outputs(self) -> Mapping[str, Json]:
        return self.finished.outputs


class _Killer:
    """Dies at one commit, before it or after it."""

    def __init__(self, at: int | None = None, *, after: bool = False) -> None:
        self._at = at
        self._after = after
        self.commits = 0

    def __call__(self, task: Task, commit: Callable[[], None]) -> None:
        # what cannot be taken back is not done again after a crash: a person has to look
        if task.max_crashes == 0:
            commit()
            return
        number, self.commits = self.commits, self.commits + 1
        if number != self._at:
            commit()
            return
        if self._after:
            commit()
        raise _Killed


def simulate(
    prepare: Callable[[Engine], None], workflow: str, inputs: Mapping[str, Json] | None = None
) -> Simulation:
    """Kills the flow at every commit point. `prepare` compiles the program and sets the stubs.

    Raises:
        Diverged: a killed run came to another end; the message says at which commit it was killed.
    """
    counted = _Killer()
    expected = _once(prepare, workflow, inputs, counted)
    kills = 0
    for at in range(counted.commits):
        for after in (False, True):
            end = _once(prepare, workflow, inputs, _Killer(at, after=after))
            kills += 1
            if _told(end) != _told(expected):
                when = "after" if after else "before"
                raise Diverged(
                    f"Killed {when} commit {at} of {counted.commits}, the run came to "
                    f"{_told(end)} instead of {_told(expected)}."
                )
    return Simulation(expected, counted.commits, kills)


def _once(
    prepare: Callable[[Engine], None],
    workflow: str,
    inputs: Mapping[str, Json] | None,
    killer: _Killer,
) -> Finished:
    engine = Engine(around_commit=killer)
    prepare(engine)
    run = engine.operations.submit(workflow, inputs).id
    while True:
        try:
            return engine.finish(run)
        except _Killed:
            engine.restart()
            engine.clock.jump(engine.clock.now() + LEASE * 2)


def _told(finished: Finished) -> tuple[str, Mapping[str, Json], Mapping[str, Json] | None]:
    return finished.state, finished.outputs, finished.error
