"""`App`: functions that serve facets, and the worker that runs them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from afl.app.client import Client
from afl.app.errors import BadHandler
from afl.app.handlers import Registered, Signature
from afl.app.run import span_of
from afl.app.services import Services, connect
from afl.app.serving import LEASE, RENEWALS_PER_LEASE, AppWorker, TurnWish, serve_beside
from afl.base.settings import Settings
from afl.runtime.handler_table import HandlerTable
from afl.runtime.plan import Plan
from afl.runtime.programs import Plans
from afl.runtime.worker import WorkerConfig

F = TypeVar("F", bound=Callable[..., Any])


class App:
    """Handlers by facet. Connects to nothing until it is used.

    app = App("billing")

    @app.handler("billing.Charge")
    def charge(amount: Decimal, card: Card, ctx: Context) -> Receipt: ...

    app.run_worker()
    """

    def __init__(self, name: str, database: str | None = None, *, program: str = "default") -> None:
        """
        Args:
            name: under which its workers are known.
            database: the URL of the store; else that of AFL_DATABASE_URL.
            program: the deployment whose facets it serves.
        """
        self.name = name
        self._database = database
        self._program = program
        self._handlers: dict[str, Registered] = {}
        self._services: Services | None = None

    def handler(self, facet: str, *, process: bool = False) -> Callable[[F], F]:
        """Has a function serve an event facet. The function itself stays as it is.

        It runs in a thread, on the event loop if it is `async def`, or, with `process`, in another
        process: then it must be found by its module and name.

        Args:
            facet: its full name, or the short one where only one facet has it.
        """

        def register(function: F) -> F:
            if facet in self._handlers:
                other = self._handlers[facet].function.__qualname__
                raise BadHandler(f"`{facet}` has a handler already: `{other}`.")
            if process and inspect.iscoroutinefunction(function):
                raise BadHandler(
                    f"`{function.__qualname__}` is `async def`, which gains nothing in a process "
                    "of its own. Make it `def`, or leave `process` out."
                )
            signature = Signature.of(function)
            self._handlers[facet] = Registered(facet, function, signature, process)
            return function

        return register

    @property
    def facets(self) -> list[str]:
        """The names that handlers were registered under."""
        return list(self._handlers)

    @property
    def services(self) -> Services:
        """The store and what works on it; the first use connects."""
        if self._services is None:
            self._services = connect(self._database)
        return self._services

    def client(self) -> Client:
        """A client on the same store. It is closed with the app."""
        return Client(services=self.services)

    def table(self, plan: Plan, plans: Plans) -> HandlerTable:
        """The handlers as a worker calls them, checked against a program.

        Raises:
            BadHandler: one of them cannot serve its facet; the message names all that is wrong.
        """
        problems = [each for handler in self._handlers.values() for each in handler.problems(plan)]
        if problems:
            raise BadHandler("\n".join(problems))
        table = HandlerTable()
        for name, handler in self._handlers.items():
            table.register(name, handler.handler(plans, plan), process=handler.process)
        return table

    def worker(
        self,
        *,
        slots: int = 8,
        queues: tuple[str, ...] = ("default",),
        flows: bool = True,
        lease: str | timedelta = LEASE,
        turns: int | None = None,
    ) -> AppWorker:
        """A worker that serves the handlers; `with` it, or `start` and `stop` it.

        Args:
            slots: how many handlers run at once.
            queues: the queues that it serves.
            flows: advance all runs and run scripts too; else only serve the handlers.
            lease: after how long without a sign of life others take over. Handlers hear that they
                are canceled within a third of it.
            turns: how many turns of models run at once, 0 for none. Unless it is said, models
                answer prompts if AFL_MODEL or a prompt of the program names one.

        Raises:
            BadHandler: a handler cannot serve its facet in the deployed program.
            ExtraMissing: models are to answer, and the extra `agents` is not installed; or flows
                send messages, and the extra `redis` is not.
        """
        services, settings = self.services, Settings.load()
        services.refuse_server("A worker needs")
        plans = services.evaluator.plans
        plan = plans.get(services.operations.program(self._program))
        seconds = (span_of(lease) or LEASE).total_seconds()
        config = WorkerConfig(
            slots=slots,
            lists=queues,
            all_flows=flows,
            lease_seconds=seconds,
            renew_seconds=seconds / RENEWALS_PER_LEASE,
            group=self.name,
            service=self.name,
        )
        table, wish = self.table(plan, plans), TurnWish(turns)
        beside = serve_beside(services, wish, settings, config, table, plan.program.facets)
        return AppWorker(services, table, config, *beside)

    def run_worker(
        self,
        *,
        slots: int = 8,
        queues: tuple[str, ...] = ("default",),
        lease: str | timedelta = LEASE,
        turns: int | None = None,
    ) -> None:
        """Serves until SIGTERM or SIGINT comes; then lets handlers finish."""
        try:
            self.worker(slots=slots, queues=queues, lease=lease, turns=turns).serve()
        finally:
            self.close()

    def close(self) -> None:
        """Gives connections back."""
        if self._services is not None:
            self._services.close()
            self._services = None
