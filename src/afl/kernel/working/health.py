"""How work that is done again and again fares."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic


@dataclass(slots=True)
class LoopHealth:
    """How work that is done again and again fares."""

    name: str
    errors: int = 0
    last_error: str | None = None
    #: on the monotonic clock; None if it never was
    last_success: float | None = None

    def succeeded(self) -> None:
        self.last_success = monotonic()

    def failed(self, error: BaseException) -> None:
        self.errors += 1
        self.last_error = f"{type(error).__name__}: {error}"

    def age_seconds(self) -> float | None:
        """How long ago it last went well."""
        return None if self.last_success is None else monotonic() - self.last_success
