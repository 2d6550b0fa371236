"""`RedisAgentRegistry`: the list of agents that all processes share. Needs the extra `redis`.

    agents:TYPE:INSTANCE         STRING  the agent as JSON, with its owner and last heartbeat
    agents:index                 SET     the keys of all agents
    capabilities:TYPE:INSTANCE   STRING  what it can do, as JSON
    capabilities:index           SET     the keys of all capabilities
    events:all, events:EVENT     channels: registered, deregistered, status_changed, died

An agent is alive while its keys have more than the grace left to live: that is the server's clock,
and no other is asked. Each step changes the keys of one agent, or one index, so that nothing spans
the slots of a cluster; an index that missed a step is put right by the next heartbeat or list.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import threading
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

import redis as sync_redis
from redis import asyncio as async_redis
from redis.exceptions import RedisError

from afl.messaging.errors import AgentRegistryError, NotTheOwner
from afl.messaging.models import AgentId
from afl.messaging.redis.keys import KeyStyle
from afl.messaging.registry import Agent, AgentRegistry
from afl.messaging.semver import parse_version, parse_versions

_log = logging.getLogger("afl.messaging")
_SCRIPT = files("afl.messaging").joinpath("registry.lua").read_text(encoding="utf-8")
_TIMEOUT_SECONDS = 5.0
#: Settings of an async connection that mean the same to one that is not.
_SHARED_SETTINGS = (
    *("host", "port", "path", "db", "username", "password", "credential_provider", "client_name"),
    *("ssl_keyfile", "ssl_certfile", "ssl_password", "ssl_cert_reqs", "ssl_check_hostname"),
    *("ssl_ca_certs", "ssl_ca_data", "ssl_ca_path", "ssl_min_version", "ssl_ciphers"),
)

#: What the registry works with: it blocks, since `register` and `deregister` are not async.
Client = sync_redis.Redis | sync_redis.RedisCluster


class RedisAgentRegistry(AgentRegistry):
    """Agents of all processes with the same Redis and prefix. Threads may share one registry.

    What is registered here can be changed and taken off the list here only, as long as it is
    alive. Without heartbeats an agent is dead after `heartbeat_ttl_s`, and forgotten `grace_s`
    later.
    """

    def __init__(
        self,
        redis: async_redis.Redis | Client,
        key_prefix: str = "ao",
        heartbeat_ttl_s: float = 30.0,
        heartbeat_interval_s: float = 10.0,
        enable_events: bool = False,
        *,
        grace_s: float = 300.0,
        key_style: KeyStyle = "plain",
    ) -> None:
        """An async client is not used itself: it belongs to its loop, so this has connections of
        its own to the same server, which `close` gives back.

        Args:
            enable_events: tell subscribers what changes.
            grace_s: how long a dead agent stays on the list, as not alive.
            key_style: "tagged" for a cluster, whose client must be a `redis.RedisCluster`.
        """
        if not 0 < heartbeat_interval_s < heartbeat_ttl_s:
            raise ValueError("heartbeat_interval_s must be above 0 and below heartbeat_ttl_s")
        if isinstance(redis, sync_redis.RedisCluster) and key_style != "tagged":
            raise ValueError("a Redis Cluster needs key_style='tagged'")
        self._is_own = not isinstance(redis, Client)
        self._redis: Client = redis if isinstance(redis, Client) else _blocking(redis)
        self._prefix = key_prefix.rstrip(":")
        self._style = key_style
        self._ttl_ms = round(heartbeat_ttl_s * 1000)
        self._grace_ms = round(grace_s * 1000)
        self._interval_s = heartbeat_interval_s
        self._events = f"{self._prefix}:events" if enable_events else ""
        self._owner = secrets.token_hex(16)
        self._script = self._redis.register_script(_SCRIPT)
        #: whoever writes an agent has it, or a heartbeat could bring one back that was taken off
        self._lock = threading.Lock()
        self._agents: dict[str, Agent] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def register(self, agent: Agent) -> None:
        with self._lock:
            self._write(agent)
            self._agents[str(agent.agent_id)] = agent

    def deregister(self, agent_id: AgentId) -> None:
        with self._lock:
            self._agents.pop(str(agent_id), None)
            self._remove(agent_id)

    async def list_registered(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._list)

    async def find(
        self,
        capability: str,
        versions: str = "*",
        *,
        tags: tuple[str, ...] = (),
        alive: bool = True,
    ) -> list[dict[str, Any]]:
        wanted = parse_versions(versions)

        def fits(offered: dict[str, Any]) -> bool:
            return (
                offered["name"] == capability
                and parse_version(offered["version"]) in wanted
                and set(tags) <= set(offered["tags"])
            )

        return [
            each
            for each in await self.list_registered()
            if (each["alive"] or not alive) and any(map(fits, each["capabilities"]))
        ]

    def start_heartbeats(self) -> None:
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._beat, name="afl-heartbeats", daemon=True)
            self._thread.start()

    def stop_heartbeats(self) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def close(self) -> None:
        """Ends the heartbeats and gives the registry's own connections back. The agents stay on the
        list until they are dead and forgotten."""
        self.stop_heartbeats()
        if self._is_own:
            self._redis.close()

    def _beat(self) -> None:
        while not self._stop.wait(self._interval_s):
            for agent_id in list(self._agents):
                with self._lock:
                    self._write_again(agent_id)
            if self._events:
                self._look_for_the_dead()

    def _write_again(self, agent_id: str) -> None:
        agent = self._agents.get(agent_id)
        if agent is None:
            return
        try:
            self._write(agent)
        except NotTheOwner:
            # it was dead for a while, and somebody else has it now
            _log.warning("The agent %s belongs to somebody else now.", agent_id)
            del self._agents[agent_id]
        except AgentRegistryError as error:
            _log.warning("No heartbeat of %s: %s", agent_id, error)

    def _look_for_the_dead(self) -> None:
        try:
            self._list()
        except AgentRegistryError as error:
            _log.warning("Nobody could look for dead agents: %s", error)

    def _write(self, agent: Agent) -> None:
        """Describes an agent, and says that it is alive."""
        keys = self._keys(str(agent.agent_id))
        described = agent.model_dump(mode="json", exclude={"capabilities"})
        offered = [each.model_dump(mode="json") for each in agent.capabilities]
        about = {"owner": self._owner, "grace_ms": self._grace_ms, **described}
        texts = json.dumps(about)[1:], json.dumps(offered) if offered else ""
        try:
            if self._run("register", keys, *texts) == "owned":
                raise NotTheOwner(
                    f"the agent {agent.agent_id} is registered by somebody else and alive; give "
                    "this one another instance, or wait until that one is gone"
                )
            self._redis.sadd(self._index("agents"), keys[0])
            if offered:
                self._redis.sadd(self._index("capabilities"), keys[1])
            else:
                self._redis.srem(self._index("capabilities"), keys[1])
        except RedisError as error:
            raise _unreachable(error) from error

    def _remove(self, agent_id: AgentId) -> None:
        keys = self._keys(str(agent_id))
        try:
            if self._run("deregister", keys) == "owned":
                raise NotTheOwner(
                    f"the agent {agent_id} was registered by somebody else, who alone can take it "
                    "off the list"
                )
            self._unlist([keys])
        except RedisError as error:
            raise _unreachable(error) from error

    def _list(self) -> list[dict[str, Any]]:
        try:
            index: Any = self._redis.smembers(self._index("agents"))
            keys = [self._keys(self._agent_of(_text(key))) for key in sorted(index, key=_text)]
            answers = self._read(keys)
            read = list(zip(keys, answers, strict=True))
            self._unlist(pair for pair, (text, _, _) in read if text is None)
            agents = []
            for pair, (text, lifetime_ms, offered) in read:
                if text is not None:
                    found = json.loads(text)
                    agents.append(_described(found, lifetime_ms, offered))
                    if not agents[-1]["alive"] and not found["died"]:
                        self._run("bury", pair)
        except RedisError as error:
            raise _unreachable(error) from error
        return agents

    def _read(self, keys: Sequence[tuple[str, str]]) -> list[tuple[Any, int, Any]]:
        """Of each agent its JSON, how long that lives, and its capabilities."""
        pipeline = self._redis.pipeline(transaction=False)
        for agent, capabilities in keys:
            pipeline.get(agent)
            pipeline.pttl(agent)
            pipeline.get(capabilities)
        answers = pipeline.execute() if keys else []
        return list(zip(answers[::3], answers[1::3], answers[2::3], strict=True))

    def _unlist(self, keys: Iterable[tuple[str, str]]) -> None:
        """Takes agents off the indexes. If one comes back meanwhile, its next heartbeat puts it
        there again."""
        for agent, capabilities in keys:
            self._redis.srem(self._index("agents"), agent)
            self._redis.srem(self._index("capabilities"), capabilities)

    def _run(self, verb: str, keys: tuple[str, str], rest: str = "", offered: str = "") -> str:
        lifetime = self._ttl_ms + self._grace_ms
        durations = (self._grace_ms, lifetime)
        arguments: list[str | int] = [verb, self._owner, *durations, rest, offered, self._events]
        answer: Any = self._script(keys=list(keys), args=arguments)
        return _text(answer)

    def _keys(self, agent: str) -> tuple[str, str]:
        place = f"{{{agent}}}" if self._style == "tagged" else agent
        return f"{self._prefix}:agents:{place}", f"{self._prefix}:capabilities:{place}"

    def _agent_of(self, key: str) -> str:
        return key.removeprefix(f"{self._prefix}:agents:").strip("{}")

    def _index(self, name: str) -> str:
        return f"{self._prefix}:{name}:index"


def _described(
    found: dict[str, Any], lifetime_ms: int, offered: str | bytes | None
) -> dict[str, Any]:
    """What the list tells about an agent."""
    return {
        "name": found["name"],
        "agent_id": found["agent_id"],
        "status": found["status"],
        "alive": lifetime_ms > found["grace_ms"],
        "last_heartbeat": found["last_heartbeat"],
        "capabilities": json.loads(offered) if offered else [],
        "metadata": found["metadata"],
    }


def _blocking(client: async_redis.Redis) -> sync_redis.Redis:
    """A client of the same server that works without a loop, and within any."""
    pool = client.connection_pool
    settings = {
        name: pool.connection_kwargs[name]
        for name in _SHARED_SETTINGS
        if name in pool.connection_kwargs
    }
    kinds = {
        async_redis.SSLConnection: sync_redis.SSLConnection,
        async_redis.UnixDomainSocketConnection: sync_redis.UnixDomainSocketConnection,
    }
    return sync_redis.Redis(
        connection_pool=sync_redis.ConnectionPool(
            connection_class=kinds.get(pool.connection_class, sync_redis.Connection),
            socket_timeout=_TIMEOUT_SECONDS,
            socket_connect_timeout=_TIMEOUT_SECONDS,
            **settings,
        )
    )


def _unreachable(error: RedisError) -> AgentRegistryError:
    return AgentRegistryError(
        f"the registry of agents cannot be reached ({error}); see whether Redis is up, and do it "
        "again"
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
