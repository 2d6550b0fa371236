"""Models by name, each made when somebody asks for it.

anthropic:claude-sonnet-5          a model of Anthropic
openai:gpt-5                       a model of OpenAI
openai@local:qwen3:8b              one of a configured server that speaks like OpenAI
openai@http://host:8000/v1:qwen3   the same, where it is
scripted:greeter.json              one that follows a script: given, or a file
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from urllib.parse import urlsplit

from afl.turns.errors import ModelRefused
from afl.turns.models.script_files import load_script
from afl.turns.models.scripted import ScriptedModel
from afl.turns.ports import Model
from afl.turns.prices import Rate

#: The port, the path and the model may all have been left out or not; models may have colons.
_AT_URL = re.compile(r"(https?://(?:\[[^\]]+\]|[^/:\[]+)(?::\d+)?(?:/[^:]*)?):(.+)")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks OpenAI's chat-completions API."""

    url: str
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Where models are. What is None is left to the provider's library and its own variables."""

    anthropic_url: str | None = None
    anthropic_key: str | None = field(default=None, repr=False)
    openai_url: str | None = None
    openai_key: str | None = field(default=None, repr=False)
    #: by the name that comes after `openai@`
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    #: the folder of `scripted:` files; without one no file is read, for a name is not a permission
    scripts: Path | None = None
    #: how long a provider may be silent
    timeout_seconds: float = 600.0


class Registry:
    """`ports.Models`. Keep one for as long as its event loop, and close it with it.

    To find the first model of a provider takes seconds: its library is imported. Do it in a thread.
    """

    def __init__(
        self, config: ModelConfig | None = None, scripted: Mapping[str, ScriptedModel] | None = None
    ) -> None:
        self._config = config or ModelConfig()
        self._scripted = dict(scripted or {})
        for name, model in self._scripted.items():
            model.name = f"scripted:{name}"  # what answers goes by the name it was found by
        self._models: dict[str, Model] = {}
        #: one for each place, so that the models there share its connections
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    def find(self, name: str) -> Model:
        """Raises `ModelRefused` with what to set or install if there is no such model here."""
        with self._lock:
            found = self._models.get(name)
            if found is None:
                found = self._models[name] = self._make(name)
            return found

    def endpoint(self, name: str) -> str | None:
        """Where a model is asked, such as `anthropic@api.anthropic.com`: the models of one endpoint
        are down together. None for one that follows a script. Raises `ModelRefused` like `find`."""
        url = getattr(self.find(name), "base_url", None)
        if url is None:
            return None
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        return f"{re.split('[:@]', name, maxsplit=1)[0]}@{host}{parts.path.rstrip('/')}"

    def rate(self, name: str) -> Rate | None:
        """What a scripted model costs, for `PriceBook`; None for all others."""
        if not name.startswith("scripted:"):
            return None
        model = self.find(name)
        return model.rate if isinstance(model, ScriptedModel) else None

    async def close(self) -> None:
        """Closes all connections. Models that were found before can no longer be asked."""
        with self._lock:
            clients = list(self._clients.values())
            self._clients.clear()
            self._models.clear()
        for client in clients:
            await cast("Callable[[], Awaitable[None]]", client.close)()

    def _make(self, name: str) -> Model:
        provider, _, model = name.partition(":")
        if not model:
            raise ModelRefused(f"'{name}' is no model. {_KNOWN}")
        if provider == "scripted":
            return self._script(name, model)
        if provider == "anthropic":
            return self._of_anthropic(name, model)
        if provider == "openai":
            return self._of_openai(name, model)
        if provider.startswith("openai@"):
            return self._of_endpoint(name, name.removeprefix("openai@"))
        raise ModelRefused(f"'{name}': there is no provider '{provider}'. {_KNOWN}")

    def _of_anthropic(self, name: str, model: str) -> Model:
        library = _extra("afl.turns.models.anthropic_models", name)
        config = self._config
        client = self._client(
            "anthropic", library.make_client, config.anthropic_url, config.anthropic_key
        )
        return cast("Model", library.make_model(name, model, client))

    def _of_openai(self, name: str, model: str) -> Model:
        library = _extra("afl.turns.models.openai_models", name)
        config = self._config
        client = self._client("openai", library.make_client, config.openai_url, config.openai_key)
        return cast("Model", library.make_model(name, model, client))

    def _of_endpoint(self, name: str, rest: str) -> Model:
        by_url = _AT_URL.fullmatch(rest)
        if by_url is not None:
            place, model = by_url.groups()
            endpoint = self._config.endpoints.get(place, Endpoint(place))
        else:
            place, _, model = rest.partition(":")
            endpoint = self._config.endpoints.get(place, Endpoint(""))
        if not endpoint.url or not model:
            known = ", ".join(sorted(self._config.endpoints)) or "none"
            raise ModelRefused(
                f"'{name}': write openai@NAME:MODEL with a configured endpoint ({known}), or "
                "openai@URL:MODEL."
            )
        library = _extra("afl.turns.models.openai_models", name)
        client = self._client(
            f"openai@{place}", library.make_compatible_client, endpoint.url, endpoint.key
        )
        return cast("Model", library.make_compatible_model(name, model, client, f"openai@{place}"))

    def _client(
        self, place: str, make: Callable[..., Any], url: str | None, key: str | None
    ) -> object:
        client = self._clients.get(place)
        if client is None:
            client = self._clients[place] = make(url, key, self._config.timeout_seconds)
        return client

    def _script(self, name: str, script: str) -> Model:
        given = self._scripted.get(script)
        if given is not None:
            return given
        folder = self._config.scripts
        if folder is None:
            raise ModelRefused(f"'{name}': no such script was given, nor a folder of scripts.")
        path = (folder / script).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ModelRefused(f"'{name}': scripts are read from {folder}, and from nowhere else.")
        return load_script(path, name)


_KNOWN = (
    "Names are anthropic:MODEL, openai:MODEL, openai@NAME:MODEL, openai@URL:MODEL and "
    "scripted:NAME."
)


def _extra(module: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ModelRefused(
            f"'{name}' needs {error.name or 'a library'}, which is not installed: "
            "`pip install 'afl-agentflow[agents]'`."
        ) from error
