"""What `afl dev` does when a file is saved."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.dev.projects import Dev, dev, eventually, project

#: Runs until a file is there.
_PATIENT = """\
import time
from pathlib import Path

from afl import App

app = App("hello")


@app.handler("hello.Greet")
def greet(name: str) -> str:
    Path("begun").touch()
    while not Path("go").exists():
        time.sleep(0.02)
    return f"Patient hello, {name}!"


@app.handler("hello.Count")
def count(text: str) -> int:
    return 7
"""


@pytest.fixture(scope="module")
def shared() -> Iterator[Dev]:
    with project() as folder, dev(folder, "--no-demo") as running:
        yield running


@pytest.fixture
def running(shared: Dev) -> Iterator[Dev]:
    """A project as it was in the beginning, and put back to that."""
    files = (_flow(shared), _handlers(shared))
    texts = [file.read_text(encoding="utf-8") for file in files]
    yield shared
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    eventually(lambda: _greeting(shared) == "Hello, Ada!")


def _flow(running: Dev) -> Path:
    return running.project / "flows" / "hello.afl"


def _handlers(running: Dev) -> Path:
    return running.project / "handlers.py"


def _change(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def _saved(running: Dev, save: Callable[[], object]) -> None:
    """Saves something, and waits until it is served: whoever has seen a file that is made after it
    has seen what was saved too. A late answer to an earlier change has not."""
    save()
    after = running.project / f"saved_{secrets.token_hex(4)}.py"
    after.touch()
    eventually(lambda: any(each.endswith(after.name) for each in running.get("/dev")["files"]))


def _greeting(running: Dev) -> object:
    return running.outputs(running.submit("hello.SayHello", name="Ada"))["greeting"]


def test_a_mistake_in_a_flow_is_told_until_it_is_mended(running: Dev) -> None:
    before = running.get("/dev")
    assert before["enabled"]
    assert (before["diagnostics"], before["error"]) == ([], None)
    assert {"flows/hello.afl", "handlers.py"} <= set(before["files"])

    _change(_flow(running), "Count(text = greeted.text)", "Count(text = greeted.txt)")
    wrong = eventually(lambda: (found := running.get("/dev"))["diagnostics"] and found)
    (diagnostic,) = wrong["diagnostics"]
    assert (diagnostic["file"], diagnostic["line"]) == ("flows/hello.afl", 11)
    assert diagnostic["severity"] == "error"
    assert wrong["mark"] != before["mark"]
    assert _greeting(running) == "Hello, Ada!", "what was deployed before goes on"

    _change(_flow(running), "greeted.txt", "greeted.text")
    assert eventually(lambda: not running.get("/dev")["diagnostics"])


def test_handlers_are_loaded_anew_and_the_old_go_on_if_they_cannot_be(running: Dev) -> None:
    handlers = _handlers(running)
    _change(handlers, "Hello,", "Good morning,")
    eventually(lambda: _greeting(running) == "Good morning, Ada!")

    _change(handlers, "import App", "import Ap")
    error = eventually(lambda: running.get("/dev")["error"])
    assert "ImportError" in error
    assert "handlers.py" in error
    assert "importlib" not in error
    assert _greeting(running) == "Good morning, Ada!"

    _change(handlers, "import Ap,", "import App,")
    assert eventually(lambda: running.get("/dev")["error"] is None)


def test_handlers_that_do_not_fit_the_flow_are_told(running: Dev) -> None:
    _change(_handlers(running), "def count(text: str)", "def count(words: str)")
    error = eventually(lambda: running.get("/dev")["error"])
    assert "hello.Count" in error
    _change(_handlers(running), "def count(words: str)", "def count(text: str)")
    assert eventually(lambda: running.get("/dev")["error"] is None)


def test_what_handlers_import_is_loaded_anew_too(running: Dev) -> None:
    words = running.project / "words.py"
    words.write_text('GREETING = "Servus"\n', encoding="utf-8")
    _change(_handlers(running), "from afl", "from words import GREETING\nfrom afl")
    _change(_handlers(running), 'f"Hello, ', 'f"{GREETING}, ')
    eventually(lambda: _greeting(running) == "Servus, Ada!")
    words.write_text('GREETING = "Moin"\n', encoding="utf-8")
    eventually(lambda: _greeting(running) == "Moin, Ada!")


#: One asks the database that it is served from, the other works in a process of its own.
_WORLDLY = """\
import os

from afl import App, Client

app = App("hello")


@app.handler("hello.Greet")
def greet(name: str) -> str:
    with Client.from_env() as client:
        return f"{len(client.runs(limit=1))} run"


@app.handler("hello.Count", process=True)
def count(text: str) -> int:
    return os.getpid()
"""


def test_handlers_find_the_database_and_may_have_processes(running: Dev) -> None:
    _saved(running, lambda: _handlers(running).write_text(_WORLDLY, encoding="utf-8"))
    outputs = running.outputs(running.submit("hello.SayHello", name="Ada"))
    assert outputs["greeting"] == "1 run"
    assert outputs["letters"] != running.process.pid
    _saved(running, lambda: _change(_handlers(running), "os.getpid()\n", "os.getppid()\n"))
    again = running.outputs(running.submit("hello.SayHello", name="Ada"))
    assert again["letters"] == running.process.pid


def test_a_run_under_way_keeps_its_program_and_its_handler(running: Dev) -> None:
    _saved(running, lambda: _handlers(running).write_text(_PATIENT, encoding="utf-8"))
    old = running.submit("hello.SayHello", name="Ada")
    eventually((running.project / "begun").exists)
    _saved(
        running,
        lambda: _change(_flow(running), "greeting = greeted.text", 'greeting = "short"'),
    )
    _saved(running, lambda: _change(_handlers(running), "Patient", "Other"))
    (running.project / "go").touch()
    assert running.outputs(old)["greeting"] == "Patient hello, Ada!"
    assert eventually(lambda: _greeting(running) == "short")


def test_a_flow_that_was_wrong_from_the_start_can_be_mended() -> None:
    with project() as folder:
        flow = folder / "flows" / "hello.afl"
        _change(flow, "String", "Strin")
        with dev(folder, "--memory") as running:
            assert running.started["served"] is None
            assert running.get("/dev")["diagnostics"]
            _change(flow, "Strin", "String")
            running.event("reloaded")
            assert _greeting(running) == "Hello, Ada!"
