"""A program whose runs a test moves on as it likes, on the store of a backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from afl.base.system import SystemIds
from afl.kernel.model import Close, Json, Task
from afl.runtime.driver import Driver, Work
from afl.runtime.entities import Run
from afl.runtime.working.outcomes import close_of_error, close_of_result
from afl.server.backend import Backend

FLOW = """
namespace shop {
  event facet Pay(cents: Long) => (receipt: String)
  event facet Pack(receipt: String) => (label: String?)
  workflow Sell(cents: Long) => (receipt: String) andThen {
    paid = Pay(cents = $.cents)
    packed = Pack(receipt = paid.receipt)
    yield Sell(receipt = paid.receipt)
  }
}
"""


def pay(cents: Json) -> Mapping[str, Json]:
    return {"receipt": f"r{cents}"}


def pack(receipt: Json) -> Mapping[str, Json]:
    return {"label": f"for {receipt}"}


def refuse(**_params: Json) -> Mapping[str, Json]:
    raise ValueError("no more boxes")


@dataclass
class Shop:
    """Serves the facets that it has handlers for, when it is driven."""

    backend: Backend
    handlers: dict[str, Callable[..., Mapping[str, Json]]] = field(default_factory=dict)
    #: every attempt
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.backend.client.deploy(FLOW)
        self.driver = Driver(self.backend.services.persistence, self._work, SystemIds())

    def drive(self) -> None:
        self.driver.drive()

    def run(self, cents: int = 1, *, drive: bool = True, tenant: str = "default") -> Run:
        """A run, as far as the handlers bring it."""
        operations = self.backend.client.operations
        run = operations.submit("shop.Sell", {"cents": cents}, tenant=tenant)
        if drive:
            self.drive()
        return operations.get(run.id)

    def failed(self) -> Run:
        """A run that has failed at its second step."""
        self.handlers = {"Pay": pay, "Pack": refuse}
        return self.run()

    def _work(self, task: Task) -> Work | None:
        handler = self.handlers.get(task.short_name)
        if handler is None:
            return None
        found = handler

        def work(task: Task) -> Close:
            assert isinstance(task.input, dict)
            params = task.input["params"]
            assert isinstance(params, dict)
            self.done.append(task.short_name)
            try:
                return close_of_result(task.name, found(**params))
            except ValueError as error:
                return close_of_error(task, error)

        return work
