"""Tools of MCP servers in prompts, from the setting to the answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from afl import App
from tests.turns.mcp.conftest import SCRIPT

FLOW = """\
namespace sums {
  event facet Sum(a: Int, b: Int) => (text: String)
    prompt { template "Add {a} and {b}." tools ["mcp:maths/add"] }

  workflow Do(a: Int, b: Int) => (text: String) andThen {
    s = Sum(a = $.a, b = $.b)
    yield Do(text = s.text)
  }
}
"""
REPLIES = [
    {"calls": [{"name": "maths__add", "arguments": {"a": 2, "b": 3}}]},
    {"text": "It is five."},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.json").write_text(json.dumps({"replies": REPLIES}), encoding="utf-8")
    table = f"[mcp.maths]\ncommand = {json.dumps(sys.executable)}\n"
    args = f'args = [{json.dumps(SCRIPT)}, "stdio"]\n'
    (tmp_path / "mcp.toml").write_text(table + args, encoding="utf-8")
    monkeypatch.setenv("AFL_MODEL", "scripted:main.json")
    return tmp_path


def test_a_prompt_uses_the_tool_of_a_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFL_MCP", "mcp.toml")
    app = App("sums", "memory:")
    client = app.client()
    client.deploy(FLOW)
    with app.worker():
        run = client.submit("sums.Do", {"a": 2, "b": 3})
        assert run.result("60s") == {"text": "It is five."}
        called = [task for task in client.operations.tasks(limit=100) if task.kind == "mcp"]
    assert [(task.name, task.result) for task in called] == [
        ("mcp:maths", {"content": "5", "is_error": False})
    ]
    app.close()


def test_without_the_setting_the_step_says_what_to_set(folder: Path) -> None:
    app = App("sums", "memory:")
    client = app.client()
    client.deploy(FLOW)
    with app.worker():
        run = client.submit("sums.Do", {"a": 2, "b": 3})
        assert run.wait("30s") == "failed"
        error = run.get().error
    assert error is not None
    assert "Name a file with a table [mcp.maths] by AFL_MCP" in str(error["message"])
    app.close()
