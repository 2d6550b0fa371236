"""The public names of each package are a promise; changing one means changing this list too."""

from __future__ import annotations

import importlib

import pytest

PUBLIC = {
    "afl": [
        "App",
        "ClaudeAgentRunner",
        "Client",
        "Context",
        "Permanent",
        "Retry",
        "Run",
        "Skip",
        "__version__",
    ],
    "afl.base": [
        "AflError",
        "Clock",
        "ConfigError",
        "DurationError",
        "IdSource",
        "format_duration",
        "parse_duration",
    ],
    "afl.kernel.memory": ["MemoryStore"],
    "afl.lang.api": ["Compilation", "compile_files", "compile_sources", "parse"],
    "afl.lang.formatter": ["FormatResult", "format_file", "format_source"],
    "afl.testing": ["SequentialIds", "VirtualClock"],
}


@pytest.mark.parametrize("package", PUBLIC)
def test_public_names_are_pinned(package: str) -> None:
    module = importlib.import_module(package)
    assert list(module.__all__) == PUBLIC[package]
    missing = [name for name in module.__all__ if not hasattr(module, name)]
    assert missing == []
