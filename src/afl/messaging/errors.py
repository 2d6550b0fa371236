"""What can go wrong between agents.

AflError
├── MessageCoordinatorError     a mailbox cannot do what it was asked
│   └── MessageRefused          and never will, as it was asked
├── AgentRegistryError          the registry cannot
│   └── NotTheOwner             the agent is another process's
├── CircuitBreakerOpenError     the breaker is open: the call was not made
└── CircuitBreakerUnavailable   what all processes share of it cannot be reached
"""

from __future__ import annotations

from afl.base.errors import AflError


class MessageCoordinatorError(AflError):
    """A mailbox cannot do what it was asked."""

    code = "messaging"
    retryable = True


class MessageRefused(MessageCoordinatorError):
    """A mailbox was asked for something impossible; asking again will not help."""

    code = "messaging.refused"
    retryable = False


class AgentRegistryError(AflError):
    """The registry of agents cannot do what it was asked."""

    code = "messaging.registry"
    retryable = True


class NotTheOwner(AgentRegistryError):
    """Another process has registered this agent; only it, or time, can take it off the list."""

    code = "messaging.not_the_owner"
    retryable = False


class CircuitBreakerOpenError(AflError):
    """The circuit breaker is open; the call was not made."""

    code = "messaging.breaker_open"
    retryable = True

    def __init__(
        self, message: str | None = None, *, state: str = "open", retry_after: float = 0.0
    ) -> None:
        super().__init__(message)
        #: `open`, or `half_open`: then others probe, and there is no room for this call
        self.state = state
        #: after how many seconds to ask again
        self.retry_after = retry_after


class CircuitBreakerUnavailable(AflError):
    """The Redis that keeps the circuit breaker cannot be reached; try again when it is back."""

    code = "messaging.breaker_unavailable"
    retryable = True
