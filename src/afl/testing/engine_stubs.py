"""What stands in for the work of facets in a test, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from afl.kernel.model import Json
from afl.runtime.conversions import WrongValue
from afl.runtime.plan import Plan

Answers = Mapping[str, Json] | Callable[..., Mapping[str, Json]]


class BadStub(AssertionError):
    """A stub does not fit the facet that it stands in for."""


@dataclass(slots=True)
class Stub:
    """Stands in for the handler of one facet."""

    facet: str
    returns: Answers
    raises: BaseException | type[BaseException] | None
    #: the arguments of every call, in order
    calls: list[dict[str, Json]] = field(default_factory=list)

    @property
    def times(self) -> int:
        """How often it was called."""
        return len(self.calls)

    def answer(self, plan: Plan, params: dict[str, Any]) -> Mapping[str, Json]:
        """What one call comes to."""
        self.calls.append(dict(params))
        if self.raises is not None:
            raise self.raises
        result = self.returns(**params) if callable(self.returns) else self.returns
        facet = plan.facet(self.facet).facet
        try:
            plan.conversions.record(result, facet.returns, facet.name)
        except WrongValue as error:
            raise BadStub(f"The stub of `{self.facet}` answers what it must not: {error}") from None
        return result
