"""What the runtime refuses, and how steps fail that no handler has failed.

AflError
└── RunError
    ├── UnknownFacet      the program has no facet, workflow or schema of that name
    ├── UnknownRun        there is no such run
    ├── UnknownStep       there is no such step
    ├── UnknownProgram    no program is kept under that hash or name
    ├── BadInputs         a run was given inputs that its workflow does not take
    ├── RunConflict       the key of a submit is taken by another run
    ├── RunEnded          the run is over, so it cannot be changed
    ├── NotForkable       the fork would repeat what cannot be taken back
    ├── NotSkippable      the step has results that nothing can stand in for
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
