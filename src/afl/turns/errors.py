"""What can go wrong with turns.

AflError
└── TurnError
    ├── UnknownAgent       no agent has this id
    ├── BadBrief           what the agent is to do cannot be made out
    ├── L0Refused          the protocol does not allow what a caller asks of an agent
    ├── BudgetExhausted    a budget has no room for the next request
    └── ModelFailure       the model did not answer
        ├── ModelRefused   it never will: the request or the key is wrong
        └── ModelBusy      it may later: too many requests, overload, a lost connection
            └── ProviderDown   it was not asked: its provider failed too often of late
"""

from __future__ import annotations

from datetime import timedelta

from afl.base.errors import AflError


class TurnError(AflError):
    """A turn cannot go on."""

    code = "turns"


class UnknownAgent(TurnError):
    """There is no such agent; `afl agents list` shows those that there are."""

    code = "turns.unknown_agent"


class BadBrief(TurnError):
    """What the agent is to do cannot be made out."""

    code = "turns.bad_brief"


class L0Refused(TurnError):
    """The protocol does not allow what is asked of the agent."""

    code = "turns.refused"

    def __init__(self, message: str | None = None, *, error_code: str = "") -> None:
        super().__init__(message)
        #: as the protocol calls it: `protocol_violation`, `recursion_depth_exceeded`, ...
        self.error_code = error_code


class BudgetExhausted(TurnError):
    """A budget has no room for the next request."""

    code = "turns.budget"

    def __init__(self, message: str | None = None, *, scope: str = "", key: str = "") -> None:
        super().__init__(message)
        #: which budget: `turn`, `run`, `agent` or `tenant`, and whose
        self.scope = scope
        self.key = key


class ModelFailure(TurnError):
    """The model did not answer."""

    code = "turns.model"


class ModelRefused(ModelFailure):
    """The model refuses the request as it is: look at the key, the name of the model, the size."""

    code = "turns.model_refused"


class ModelBusy(ModelFailure):
    """The model cannot answer now."""

    code = "turns.model_busy"
    retryable = True

    def __init__(
        self,
        message: str | None = None,
        *,
        after: timedelta | None = None,
        is_outage: bool = False,
    ) -> None:
        super().__init__(message)
        #: when the provider says that it can be asked again
        self.after = after
        #: whether the provider is not well, rather than unwilling for a while
        self.is_outage = is_outage


class ProviderDown(ModelBusy):
    """The model was not asked: the circuit breaker of its provider is open."""

    code = "turns.provider_down"

    def __init__(self, message: str, *, breaker: str, after: timedelta) -> None:
        super().__init__(message, after=after)
        self.breaker = breaker
