"""The promises of the list of agents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from afl.messaging.models import AgentId


class Capability(BaseModel):
    """Something that an agent can do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    version: str = Field(default="1.0.0", pattern=r"^\d+\.\d+\.\d+$")
    tags: tuple[str, ...] = ()
    description: str = ""


class Agent(BaseModel):
    """An agent as it registers itself."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1)
    agent_id: AgentId
    #: idle, busy, or whatever the agent calls it
    status: str = "idle"
    capabilities: tuple[Capability, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)


class AgentRegistry(ABC):
    """Who is there, and alive by the registry's own clock."""

    @abstractmethod
    def register(self, agent: Agent) -> None:
        """Makes an agent known, or describes it anew. It is this registry's own from now on.

        Raises:
            NotTheOwner: a live agent with this id was registered by somebody else.
        """

    @abstractmethod
    def deregister(self, agent_id: AgentId) -> None:
        """Takes an agent of this registry off the list.

        Raises:
            NotTheOwner: somebody else has registered it.
        """

    @abstractmethod
    async def list_registered(self) -> list[dict[str, Any]]:
        """All agents, those that died lately too: name, agent_id, status, alive, last_heartbeat,
        capabilities.

        Raises:
            AgentRegistryError: the store cannot be reached; an outage is not an empty list.
        """

    @abstractmethod
    async def find(
        self,
        capability: str,
        versions: str = "*",
        *,
        tags: tuple[str, ...] = (),
        alive: bool = True,
    ) -> list[dict[str, Any]]:
        """Agents that can do something, in a version such as `>=1.2,<2`."""

    @abstractmethod
    def start_heartbeats(self) -> None:
        """From now on, until `stop_heartbeats`, this registry's agents stay alive."""

    @abstractmethod
    def stop_heartbeats(self) -> None: ...
