"""Models by name, and what is said when there is none."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import pytest

from afl.testing.llm_server import LoopbackLLM, Said
from afl.turns.errors import ModelRefused
from afl.turns.model import Reply
from afl.turns.models.registry import Endpoint, ModelConfig, Registry
from afl.turns.models.scripted import Answer, ScriptedModel
from afl.turns.prices import Rate
from tests.turns.models.asking import (
    ANTHROPIC,
    BOTH,
    HELLO,
    OPENAI,
    always,
    ask,
    config_of,
    with_registry,
)

VARIABLES = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_PROFILE",
    "ANTHROPIC_CONFIG_DIR",
    "ANTHROPIC_IDENTITY_TOKEN",
    "ANTHROPIC_IDENTITY_TOKEN_FILE",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment in which the libraries find nothing."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return monkeypatch


@pytest.mark.parametrize(
    ("name", "variable"), [(ANTHROPIC, "ANTHROPIC_API_KEY"), (OPENAI, "OPENAI_API_KEY")]
)
@pytest.mark.usefixtures("bare")
def test_a_missing_key_is_named(name: str, variable: str) -> None:
    with pytest.raises(ModelRefused, match=variable):
        Registry().find(name)


def test_credentials_that_cannot_be_read_are_refused_with_the_reason(
    bare: pytest.MonkeyPatch,
) -> None:
    bare.setenv("ANTHROPIC_PROFILE", "absent")
    with pytest.raises(ModelRefused, match=r"ANTHROPIC_API_KEY.*profile 'absent'"):
        Registry().find(ANTHROPIC)


def test_the_libraries_find_their_own_variables(bare: pytest.MonkeyPatch) -> None:
    with LoopbackLLM(always(Said("Hello."))) as server:
        bare.setenv("ANTHROPIC_API_KEY", "from-env")
        bare.setenv("ANTHROPIC_BASE_URL", server.url)
        bare.setenv("OPENAI_API_KEY", "from-env")
        bare.setenv("OPENAI_BASE_URL", server.openai_url)

        async def both(registry: Registry) -> list[Reply]:
            return [await registry.find(name).ask(HELLO) for name in BOTH]

        replies = with_registry(ModelConfig(), both)
    assert [reply.text for reply in replies] == ["Hello.", "Hello."]
    assert [asked.headers["authorization"] for asked in server.requests] == ["Bearer from-env"] * 2


@pytest.mark.parametrize("extra", ["anthropic_models", "openai_models"])
def test_a_missing_extra_is_named(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> ModuleType:
        raise ModuleNotFoundError(f"No module named {name!r}", name="pydantic_ai")

    monkeypatch.setattr(importlib, "import_module", absent)
    provider = extra.removesuffix("_models")
    with pytest.raises(ModelRefused, match=r"pydantic_ai.*afl-agentflow\[agents\]"):
        Registry().find(f"{provider}:any")


@pytest.mark.parametrize(
    "name", ["", "claude", "anthropic:", "google:gemini", "openai@:x", "openai@nowhere:x"]
)
def test_a_name_that_is_none_is_answered_with_those_that_are(name: str) -> None:
    with pytest.raises(ModelRefused, match="openai@URL:MODEL"):
        Registry().find(name)


@pytest.mark.parametrize(
    ("path", "model"),
    [("/v1", "qwen3"), ("/v1", "qwen3:8b"), ("/v1/", "org/model"), ("/v1", "a:b:c")],
)
def test_a_server_may_be_named_by_its_url(path: str, model: str) -> None:
    with LoopbackLLM(always(Said("Hello."))) as server:
        reply = ask(server, f"openai@{server.url}{path}:{model}")
    assert reply.text == "Hello."
    assert server.requests[0].json["model"] == model


def test_models_of_one_place_share_its_connections() -> None:
    async def run(registry: Registry) -> None:
        for name in [ANTHROPIC, "anthropic:claude-opus-5", ANTHROPIC]:
            await registry.find(name).ask(HELLO)
        assert registry.find(ANTHROPIC) is registry.find(ANTHROPIC)

    with LoopbackLLM(always(Said("Hello."))) as server:
        with_registry(config_of(server), run)
    assert len({asked.port for asked in server.requests}) == 1


def test_keys_are_not_shown_by_accident() -> None:
    config = ModelConfig(
        anthropic_key="secret", openai_key="secret", endpoints={"x": Endpoint("http://x", "secret")}
    )
    assert "secret" not in repr(config)


def test_given_scripts_are_found_by_name() -> None:
    model = ScriptedModel([Answer("Hi.")], rate=Rate(request=Decimal("0.5")))
    registry = Registry(scripted={"greeter": model})
    assert registry.find("scripted:greeter") is model
    assert model.name == "scripted:greeter"
    assert registry.rate("scripted:greeter") == Rate(request=Decimal("0.5"))
    assert registry.rate(ANTHROPIC) is None


def test_scripts_are_read_from_their_folder_and_from_nowhere_else(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    for folder in (tmp_path, scripts):
        (folder / "hi.json").write_text('{"replies": [{"text": "Hi."}]}', encoding="utf-8")
    registry = Registry(ModelConfig(scripts=scripts))
    assert asyncio.run(registry.find("scripted:hi.json").ask(HELLO)).text == "Hi."
    for name in ("../hi.json", str(tmp_path / "hi.json")):
        with pytest.raises(ModelRefused, match="from nowhere else"):
            registry.find(f"scripted:{name}")
    with pytest.raises(ModelRefused, match="cannot be read"):
        registry.find("scripted:absent.json")
    with pytest.raises(ModelRefused, match="nor a folder of scripts"):
        Registry().find("scripted:hi.json")


def test_the_libraries_of_providers_are_imported_only_when_one_is_asked_for() -> None:
    code = (
        "import sys, afl.turns.models.registry, afl.turns.prices, afl.turns.models.fallback\n"
        "heavy = {'pydantic_ai', 'anthropic', 'openai', 'genai_prices', 'pydantic'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
