"""Modules of a project are loaded as if for the first time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from afl.app.compiling import compile_program
from afl.app.errors import BadHandler
from afl.app.services import connect
from afl.cli.dev.handlers import HandlersBroken, joined, load_apps
from afl.cli.dev.project import Project

FLOW = """\
namespace demo {
  event facet Greet(name: String) => (text: String)
  event facet Count(text: String) => (letters: Int)

  workflow Do(name: String) => (letters: Int) andThen {
    greeted = Greet(name = $.name)
    counted = Count(text = greeted.text)
    yield Do(letters = counted.letters)
  }
}
"""
GREET = """\
from afl import App

app = App("greeter")


@app.handler("demo.Greet")
def greet(name: str) -> str:
    return name
"""
COUNT = """\
from afl import App
from handlers import app as greeter

counter = App("counter")
same = counter


@counter.handler("demo.Count")
def count(text: str) -> int:
    return len(text)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    # other tests have modules of these names too
    for name in ("handlers", "app"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    path, writes = list(sys.path), sys.dont_write_bytecode
    (tmp_path / "handlers.py").write_text(GREET, encoding="utf-8")
    yield Project(tmp_path)
    sys.path[:], sys.dont_write_bytecode = path, writes
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]


def test_an_app_is_another_one_each_time(project: Project) -> None:
    (first,) = load_apps(project).apps
    loaded = load_apps(project)
    (second,) = loaded.apps
    assert first is not second
    assert "handlers" not in sys.modules
    loaded.install()
    assert sys.modules["handlers"].app is second
    load_apps(project)
    assert sys.modules["handlers"].app is second, "handlers at work are found until it changes"
    assert (first.name, second.facets) == ("greeter", ["demo.Greet"])


def test_several_apps_are_served_as_one(project: Project) -> None:
    (project.folder / "app.py").write_text(COUNT, encoding="utf-8")
    apps = load_apps(project).apps
    assert [each.name for each in apps] == ["greeter", "counter"]
    with connect("memory:") as services:
        plans = services.evaluator.plans
        plan = plans.get(plans.add(compile_program(FLOW)))
        assert joined(apps, plan, plans).names() == ["demo.Greet", "demo.Count"]
        with pytest.raises(BadHandler, match="in the app greeter already"):
            joined([*apps, apps[0]], plan, plans)


def test_a_module_that_cannot_be_imported_leaves_those_from_before(project: Project) -> None:
    load_apps(project).install()
    before = sys.modules["handlers"]
    (project.folder / "words.py").write_text("1 / 0\n", encoding="utf-8")
    (project.folder / "handlers.py").write_text(f"import words\n{GREET}", encoding="utf-8")
    with pytest.raises(HandlersBroken) as caught:
        load_apps(project)
    lines = caught.value.message.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert f'"{project.folder / "handlers.py"}", line 1' in lines[1]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert sys.modules["handlers"] is before
    assert "words" not in sys.modules


def test_a_mistake_in_the_syntax_shows_its_line(project: Project) -> None:
    (project.folder / "handlers.py").write_text("def greet(:\n", encoding="utf-8")
    with pytest.raises(HandlersBroken, match="SyntaxError") as caught:
        load_apps(project)
    assert "def greet(:" in caught.value.message


def test_what_matters_to_a_project_is_seen(project: Project) -> None:
    folder = project.folder
    assert project.sources() == (".",)
    for name in ("flows/a.afl", "pipelines/b.yaml", "lib/c.py", ".afl/d.py", "env/e.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("", encoding="utf-8")
    (folder / "env" / "pyvenv.cfg").write_text("", encoding="utf-8")
    (folder / "replies.json").write_text("{}", encoding="utf-8")
    assert project.sources() == ("flows", "pipelines")
    assert set(project.flows()) == {"flows/a.afl", "pipelines/b.yaml"}
    assert set(project.code()) == {"handlers.py", "lib/c.py", "replies.json"}
    assert [path.name for path in project.folders()] == ["flows", "lib", "pipelines"]
    assert (project.modules(), project.script()) == (("handlers",), "replies.json")
