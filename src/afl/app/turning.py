"""Turns in this process: models answer prompts, agents take turns, MCP tools are called.

Needs the extra `agents`; `serving` loads it when somebody wants it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import cast

from afl.app.breakers import breakers_of
from afl.app.mcp_tools import McpThread
from afl.app.services import Services
from afl.app.tracing_use import traced_models
from afl.base.settings import environment
from afl.bridges.agent_briefs import AgentBriefs
from afl.bridges.breakers import Breakers, EndpointModels, GuardedModels
from afl.bridges.briefing import AllBriefs
from afl.bridges.facet_tools import FacetTools
from afl.bridges.prompt_facets import PromptFacets
from afl.bridges.turn_stores import turn_store
from afl.messaging.breaker import CircuitBreakerConfig
from afl.turns.loop import TurnLoop
from afl.turns.mcp.config import read_servers
from afl.turns.models.registry import Registry
from afl.turns.models.script_files import load_script
from afl.turns.models.scripted import ScriptedModel
from afl.turns.prices import PriceBook
from afl.turns.relay import OutboxRelay
from afl.turns.serving import Attendant
from afl.turns.worker import TurnWorker, TurnWorkerConfig

_SCRIPTED = "scripted:"


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """Which turns are served, and how many at once."""

    #: whom to ask where a prompt or a profile does not say
    models: tuple[str, ...] = ()
    #: ask them also where a prompt says otherwise
    overrides: bool = False
    #: facets that handlers serve
    without: tuple[str, ...] = ()
    slots: int = 50
    #: which agents take their turns here
    targets: tuple[str, ...] = ("default",)
    lists: tuple[str, ...] = ("default",)
    lease: timedelta = timedelta(seconds=30)
    name: str = "afl"
    #: the TOML file that names MCP servers
    mcp_file: str | None = None
    #: the Redis by which all processes know which providers are down; else each knows for itself
    redis_url: str | None = None
    #: when a provider is taken to be down, and for how long it is left alone
    breaker: CircuitBreakerConfig = field(default_factory=CircuitBreakerConfig)


class Turning:
    """A turn worker and all that it needs, from `start` to `stop`."""

    def __init__(
        self, services: Services, options: TurnOptions, attendants: Sequence[Attendant] = ()
    ) -> None:
        """Reads the scripts and the file of MCP servers; connects to nothing."""
        persistence, plans = services.persistence, services.evaluator.plans
        self.store = turn_store(persistence)
        self._feed = services.live.feed()
        registry = Registry(scripted=_scripts(options.models))
        breakers = breakers_of(services, options.redis_url)
        self._mcp = (
            None
            if options.mcp_file is None
            else McpThread(read_servers(Path(options.mcp_file)), self.store, environment())
        )
        self.briefs = AllBriefs(
            PromptFacets(
                persistence,
                plans,
                models=options.models,
                overrides=options.overrides,
                without=options.without,
                mcp=self._mcp,
            ),
            AgentBriefs(self.store, persistence, plans, models=options.models, mcp=self._mcp),
        )
        loop = TurnLoop(
            self.store,
            traced_models(
                GuardedModels(
                    cast("EndpointModels", registry),
                    breakers,
                    options.breaker,
                    f"turns of {options.name}",
                )
            ),
            PriceBook(registry.rate),
            self.briefs,
            FacetTools(self.store, persistence, plans),
            self._feed,
            services.doorbell.ring,
        )
        seconds = options.lease.total_seconds()
        config = TurnWorkerConfig(
            slots=options.slots,
            targets=options.targets,
            lists=options.lists,
            lease_seconds=seconds,
            renew_seconds=seconds / 3,
            group=options.name,
            service=f"{options.name}-turns",
        )
        servers = () if self._mcp is None else (self._mcp,)
        self.worker = TurnWorker(
            loop,
            config,
            services.doorbell,
            servers=servers,
            attendants=attendants,
            at_end=partial(_close, registry, breakers),
        )
        self._relay = OutboxRelay(self.store.kernel, self._feed, self.worker.id)

    def facets(self) -> Collection[str]:
        """The facets that models answer here."""
        return self.briefs.names()

    def start(self) -> None:
        """Makes the worker known and starts to serve."""
        self.worker.start()
        self._relay.start()

    def stop(self, timeout: timedelta) -> bool:
        """Begins no request any more; tells whether those under way came to an end in that time."""
        finished = self.worker.drain(timeout.total_seconds())
        self._relay.stop()
        if self._mcp is not None:
            self._mcp.close()
        self._feed.close()
        return finished


async def _close(registry: Registry, breakers: Breakers) -> None:
    await registry.close()
    await breakers.close()


def _scripts(models: tuple[str, ...]) -> dict[str, ScriptedModel]:
    """Scripts that were named here: that is leave to read them."""
    named = [model for model in models if model.startswith(_SCRIPTED)]
    return {
        model.removeprefix(_SCRIPTED): load_script(Path(model.removeprefix(_SCRIPTED)), model)
        for model in named
    }
