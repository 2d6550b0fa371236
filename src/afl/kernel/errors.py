"""What the kernel refuses.

AflError
└── KernelError
    ├── Fenced             the fence is not held any more: stop at once, write nothing
    ├── Refused
    │   ├── LaneCycle      an ancestor holds the lane that the new task wants
    │   ├── TooDeep        calls nest too deeply
    │   └── BadRequest     the request contradicts itself
    ├── NotFound           no such task, call or worker
    └── StoreUnavailable   the store cannot be reached; safe to try again
"""

from __future__ import annotations

from afl.base.errors import AflError


class KernelError(AflError):
    """The kernel refused a request."""

    code = "kernel"


class Fenced(KernelError):
    """The fence is not held any more; another worker may have the task. This request wrote nothing,
    though an earlier copy of it, whose answer was lost, may have."""

    code = "kernel.fenced"


class Refused(KernelError):
    """The request cannot be carried out."""

    code = "kernel.refused"


class LaneCycle(Refused):
    """The task wants a lane that one of its callers holds, so it could never start."""

    code = "kernel.lane_cycle"


class TooDeep(Refused):
    """Calls nest too deeply."""

    code = "kernel.too_deep"


class BadRequest(Refused):
    """The request contradicts itself."""

    code = "kernel.bad_request"


class NotFound(KernelError):
    """There is no such task, call or worker."""

    code = "kernel.not_found"


class StoreUnavailable(KernelError):
    """The store cannot be reached. Every operation may be tried again as it is."""

    code = "kernel.store_unavailable"
    retryable = True
