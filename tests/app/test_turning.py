"""Prompt facets in an app: models answer them, with tools, people and sub-turns."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from afl import App, Client
from afl.app.errors import ExtraMissing
from afl.runtime.inbox import InboxItem

FLOW = """\
namespace demo {
  /** Finds things. */
  event facet Find(query: String, limit: Int = 3) => (hits: [String])

  event facet Wipe(path: String) => (done: Boolean) with Effect(kind = irreversible)

  event facet Advise(question: String) => (advice: String) with Human(group = "elders")

  event facet Short(text: String) => (summary: String)
    prompt { template "Shorten: {text}" model "scripted:short.json" }

  event facet Answer(question: String) => (answer: String, sure: Boolean)
    prompt {
      system "You answer."
      template "Q: {question}"
      tools [Find, Wipe, Advise, Short]
    }

  workflow Ask(question: String) => (answer: String, sure: Boolean) andThen {
    a = Answer(question = $.question)
    yield Ask(answer = a.answer, sure = a.sure)
  }
}
"""
#: Asks all tools at once, then hands in a result.
REPLIES = [
    {
        "calls": [
            {"name": "Find", "arguments": {"query": "cats"}},
            {"name": "Wipe", "arguments": {"path": "/tmp"}},
            {"name": "Advise", "arguments": {"question": "May I?"}},
            {"name": "Nothing", "arguments": {}},
        ]
    },
    {"calls": [{"name": "submit_result", "arguments": {"answer": "cats", "sure": True}}]},
]


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def script(folder: Path, replies: object, name: str = "main.json") -> None:
    (folder / name).write_text(json.dumps({"replies": replies}), encoding="utf-8")


def app_on(database: str, done: list[str]) -> App:
    app = App("demo", database)

    @app.handler("demo.Find")
    def find(query: str, limit: int) -> list[str]:
        done.append(f"find {query} {limit}")
        return ["tom", "felix"]

    @app.handler("demo.Wipe")
    def wipe(path: str) -> bool:
        done.append(f"wipe {path}")
        return True

    return app


def eventually(found: Callable[[], list[InboxItem]], count: int) -> list[InboxItem]:
    end = time.monotonic() + 20
    while len(items := found()) < count:
        assert time.monotonic() < end, items
        time.sleep(0.02)
    return items


def test_a_prompt_is_answered_with_tools_and_people(
    database: str, scripts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(scripts, REPLIES)
    monkeypatch.setenv("AFL_MODEL", "scripted:main.json")
    done: list[str] = []
    app = app_on(database, done)
    client = app.client()
    client.deploy(FLOW)
    with app.worker():
        run = client.submit("demo.Ask", {"question": "What?"})
        items = {item.facet: item for item in eventually(client.inbox().list, 2)}
        # what cannot be taken back is done when a person agrees
        assert items["afl.Approve"].params == {
            "tool": "demo.Wipe",
            "arguments": {"path": "/tmp"},
        }
        assert items["demo.Advise"].step == "0/a#0.2"
        assert not [each for each in done if each.startswith("wipe")]
        client.inbox().answer(items["afl.Approve"].task, {"approved": True}, by="ada")
        client.inbox().answer(items["demo.Advise"].task, {"advice": "yes"}, by="ada")
        assert run.result("30s") == {"answer": "cats", "sure": True}
    assert sorted(done) == ["find cats 3", "wipe /tmp"]
    app.close()


def test_a_rejected_tool_is_not_called(
    database: str, scripts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {"calls": [{"name": "Wipe", "arguments": {"path": "/"}}]}
    script(scripts, [first, REPLIES[1]])
    monkeypatch.setenv("AFL_MODEL", "scripted:main.json")
    done: list[str] = []
    app = app_on(database, done)
    client = app.client()
    client.deploy(FLOW)
    with app.worker():
        run = client.submit("demo.Ask", {"question": "What?"})
        (item,) = eventually(client.inbox().list, 1)
        client.inbox().reject(item.task, "never", by="ada")
        assert run.result("30s")["answer"] == "cats"
    assert done == []
    app.close()


def test_without_a_model_prompts_wait(database: str, scripts: Path) -> None:
    app = app_on(database, [])
    client = app.client()
    client.deploy(FLOW.replace('model "scripted:short.json"', ""))
    worker = app.worker()
    assert worker.turns is None
    with worker:
        run = client.submit("demo.Ask", {"question": "What?"})
        end = time.monotonic() + 20
        while "No live worker serves `demo.Answer`" not in run.why().sentence:
            assert time.monotonic() < end, run.why()
            time.sleep(0.02)
    app.close()


def test_turns_are_as_many_as_was_said(database: str, scripts: Path) -> None:
    app = app_on(database, [])
    with Client(database) as client:
        client.deploy(FLOW)
        assert app.worker(turns=0).turns is None
        assert app.worker(turns=3).turns is not None
        # a prompt of the program names a model
        assert app.worker().turns is not None
    app.close()


def test_a_missing_library_is_named(
    database: str, scripts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(database, [])
    with Client(database) as client:
        client.deploy(FLOW)
    for name in [
        each for each in sys.modules if each.startswith(("afl.app.turning", "jsonschema"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    for name in [each for each in sys.modules if each.startswith("afl.turns")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(ExtraMissing, match=r"pip install 'afl-agentflow\[agents\]'"):
        app.worker(turns=1)
    app.close()
