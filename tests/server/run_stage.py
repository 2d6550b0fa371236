"""A server with an app whose handlers serve its runs, for tests of what it says of runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.testclient import TestClient

from afl import App
from afl.base.settings import Settings
from afl.server.application import API, create_app
from afl.server.backend import Backend
from afl.server.serving import open_backend
from tests.server.calling import token_for

FLOW = """
namespace shop {
  event facet Greet(name: String) => (text: String)
  event facet Block(name: String) => (text: String)
  event facet Shaky(n: Int) => (n: Int) with Retry(max_attempts = 2, delay = 1ms, jitter = false)
  event facet Later(n: Int) => (n: Int) with Retry(max_attempts = 3, delay = 1h)
  event facet Nobody(n: Int) => (n: Int)
  event facet Approve(title: String) => (ok: Boolean) with Human(group = "ops")

  workflow Hello(name: String) => (text: String) andThen {
    greeting = Greet(name = $.name)
    again = Greet(name = greeting.text)
    yield Hello(text = again.text)
  }
  workflow Stuck(name: String) => (text: String) andThen {
    b = Block(name = $.name)
    then = Greet(name = b.text)
    yield Stuck(text = then.text)
  }
  workflow Each(names: [String]) => (texts: [String]) andThen foreach name in $.names limit 2 {
    g = Block(name = $.name)
    yield Each(texts = [g.text])
  }
  workflow Broken() => (n: Int) andThen {
    ok = Greet(name = "fine")
    s = Shaky(n = 1)
    t = Shaky(n = s.n)
    yield Broken(n = t.n)
  }
  workflow Waits() => () andThen {
    nap = afl.time.Sleep(duration = 1h)
    signal = afl.event.Wait(name = "paid", key = "1")
    person = Approve(title = "go")
    nobody = Nobody(n = 1)
    later = Later(n = 1)
    busy = Block(name = "busy")
    last = Greet(name = busy.text)
  }
  workflow Lonely() => (n: Int) andThen {
    a = Nobody(n = 1)
    yield Lonely(n = a.n)
  }
  workflow Parent(name: String) => (text: String) andThen {
    child = Hello(name = $.name)
    yield Parent(text = child.text)
  }
}
"""
SECONDS = 30.0


class Stage:
    """A server, the app beside it, and callers."""

    def __init__(self, backend: Backend, app: App) -> None:
        self.backend = backend
        self.app = app
        self.client = app.client()
        self._web = create_app(backend)
        self.http = self.caller("operator")
        #: lets `Block` go on
        self.release = threading.Event()

    def caller(self, role: str, tenant: str = "*") -> TestClient:
        """A client with a token of this role."""
        return TestClient(self._web, headers=token_for(self.backend, role, tenant))

    def get(self, route: str, /, **params: object) -> Any:  # noqa: ANN401 - JSON
        answer = self.http.get(f"{API}{route}", params=params)  # type: ignore[arg-type]
        assert answer.status_code == 200, answer.text
        return answer.json()

    def until(self, look: Callable[[], Any]) -> Any:  # noqa: ANN401 - what is looked for
        """Looks until there is something."""
        pause = threading.Event()
        for _ in range(int(SECONDS * 50)):
            if found := look():
                return found
            pause.wait(0.02)
        pytest.fail("it did not come to that in time")

    def row(self, run: str, path: str, **expected: str) -> Any:  # noqa: ANN401
        """The row at a path, once it is as expected."""

        def look() -> Any:  # noqa: ANN401
            answer = self.http.get(f"{API}/runs/{run}/step", params={"path": path})
            row = answer.json().get("row") if answer.status_code == 200 else None
            fits = row is not None and all(row[name] == text for name, text in expected.items())
            return row if fits else None

        return self.until(look)


@contextmanager
def open_stage(url: str) -> Iterator[Stage]:
    """A stage on the store of this URL."""
    with open_backend(url, Settings()) as backend:
        app = App("shop", url)
        stage = Stage(backend, app)
        stage.client.deploy(FLOW)
        _serve(stage)
        try:
            yield stage
        finally:
            stage.release.set()
            app.close()


def _serve(stage: Stage) -> None:
    app = stage.app

    @app.handler("shop.Greet")
    def greet(name: str) -> str:
        return f"Hello {name}"

    @app.handler("shop.Block")
    def block(name: str) -> str:
        assert stage.release.wait(SECONDS)
        return name

    @app.handler("shop.Shaky")
    def shaky(n: int) -> int:
        raise ValueError(f"no luck with {n}\nand more")

    @app.handler("shop.Later")
    def later(n: int) -> int:
        raise ConnectionError("away")
