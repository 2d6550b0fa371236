"""What the runtime refuses, and how steps fail that no handler has failed.

AflError
└── RunError
    ├── UnknownFacet      the program has no facet, workflow or schema of that name
    ├── UnknownRun        there is no such run
    ├── UnknownStep       there is no such step
    ├── UnknownWorker     there is no such worker
    ├── UnknownProgram    no program is kept under that hash or name
    ├── BadInputs         a run was given inputs that its workflow does not take
    ├── RunConflict       the key of a submit is taken by another run
    ├── RunEnded          the run is over, so it cannot be changed
    ├── NotForkable       the fork would repeat what cannot be taken back
    ├── NotSkippable      the step has results that nothing can stand in for
    ├── UnknownItem       no person is asked for anything under that id
    ├── AlreadyAnswered   what a person was asked for has its answer, or its time is over
    ├── UnknownSchedule   there is no schedule of that name
    ├── BadSchedule       a schedule is not possible as it was asked for
    ├── SchedulingMissing a library that cron needs is not installed
    ├── StillRunning      the run has not ended
    ├── RunFailed         the run was waited for, and has failed
    └── RunCanceled       the run was waited for, and was canceled
"""

from __future__ import annotations

from afl.base.errors import AflError


class RunError(AflError):
    """The runtime cannot do this."""

    code = "runtime"


class UnknownFacet(RunError):
    """The program has no such facet."""

    code = "runtime.unknown_facet"


class UnknownRun(RunError):
    """There is no such run."""

    code = "runtime.unknown_run"


class UnknownStep(RunError):
    """There is no such step."""

    code = "runtime.unknown_step"


class UnknownWorker(RunError):
    """There is no such worker."""

    code = "runtime.unknown_worker"


class UnknownProgram(RunError):
    """There is no such program."""

    code = "runtime.unknown_program"


class BadInputs(RunError):
    """The inputs are not those that the workflow takes."""

    code = "runtime.bad_inputs"


class RunConflict(RunError):
    """Another run has this key."""

    code = "runtime.run_conflict"


class RunEnded(RunError):
    """The run is over."""

    code = "runtime.run_ended"


class NotForkable(RunError):
    """The fork would repeat what cannot be taken back."""

    code = "runtime.not_forkable"


class NotSkippable(RunError):
    """The step has results that nothing can stand in for."""

    code = "runtime.not_skippable"


class UnknownItem(RunError):
    """The inbox has no such request."""

    code = "runtime.unknown_item"


class AlreadyAnswered(RunError):
    """The request takes no answer any more."""

    code = "runtime.already_answered"


class UnknownSchedule(RunError):
    """There is no such schedule."""

    code = "runtime.unknown_schedule"


class BadSchedule(RunError):
    """The schedule is not possible."""

    code = "runtime.bad_schedule"


class SchedulingMissing(RunError):
    """A library that cron needs is not installed."""

    code = "runtime.scheduling_missing"


class StillRunning(RunError):
    """The run has not ended."""

    code = "runtime.still_running"
    retryable = True


class RunFailed(RunError):
    """The run has failed."""

    code = "runtime.run_failed"


class RunCanceled(RunError):
    """The run was canceled."""

    code = "runtime.run_canceled"
