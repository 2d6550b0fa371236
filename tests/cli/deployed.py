"""Flows with handlers, and a database where they are deployed, for tests of commands on runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from click.testing import Result
from psycopg.conninfo import conninfo_to_dict

from afl import App, Client
from afl.app.migrating import migrate
from afl.app.services import connect
from afl.app.serving import AppWorker
from afl.runtime.errors import RunEnded
from afl.runtime.worker import WorkerConfig
from tests.cli.runner import run
from tests.kernel.mongo import databases as mongo
from tests.kernel.postgres.databases import empty_database

FLOW = """\
namespace demo {
  event facet Greet(name: String) => (text: String) with Retry(max_attempts = 2, delay = 1ms)
  event facet Fetch(name: String) => (n: Int)
  event facet Store(n: Int, text: String) => (done: Boolean)

  workflow Hello(name: String = "world") => (text: String) andThen {
    zero = Fetch(name = $.name)
    hello = Greet(name = $.name) after zero
    yield Hello(text = hello.text)
  }

  workflow Total(names: [String]) => (ns: [Int], done: Boolean) andThen {
    greeted = Greet(name = "all")
    saved = Store(n = 1, text = greeted.text)
    yield Total(done = saved.done)
  } andThen foreach name in $.names {
    one = Fetch(name = $.name)
    yield Total(ns = [one.n])
  }

  workflow Outer(name: String) => (text: String) andThen {
    inner = Hello(name = $.name)
    sys.log(said = inner.text, to = $.name)
    yield Outer(text = inner.text)
  }

  workflow Wait(key: String) => (answer: Json) andThen {
    came = afl.event.Wait(name = "answer", key = $.key)
    yield Wait(answer = came.payload)
  }
}
"""

HANDLERS = """\
import afl

app = afl.App("demo")


@app.handler("demo.Greet")
def greet(name: str) -> str:
    print("greeting", name)
    if name == "bad":
        raise ValueError("there is no such name")
    return f"Hello, {name}!"


@app.handler("demo.Fetch")
def fetch(name: str) -> int:
    return len(name)


@app.handler("Store")
def store(n: int, text: str) -> bool:
    return True
"""

#: Whether the databases here are MongoDBs, so that whatever is tested with them is tested there.
ON_MONGO = os.environ.get("TEST_STORE") == "mongo"
looks_into_postgres = pytest.mark.skipif(ON_MONGO, reason="it looks into a PostgreSQL")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def write_project(folder: Path, flow: str = FLOW, handlers: str = HANDLERS) -> None:
    """`flow.afl` and `handlers.py` in a folder."""
    (folder / "flow.afl").write_text(flow, encoding="utf-8")
    (folder / "handlers.py").write_text(handlers, encoding="utf-8")


@contextmanager
def fresh_database() -> Iterator[str]:
    """The URL of a database with the schema, which is dropped afterwards. It is a
    PostgreSQL; with `TEST_STORE=mongo` it is a MongoDB."""
    if ON_MONGO:
        with mongo.empty_database() as url:
            migrate(url)
            yield url
        return
    with empty_database() as conninfo:
        parts = conninfo_to_dict(conninfo)
        url = f"postgresql://{parts['host']}/{parts['dbname']}"
        migrate(url)
        yield url


@contextmanager
def deployed_database(flow: str = FLOW) -> Iterator[str]:
    """The same, with a program deployed."""
    with fresh_database() as url:
        with Client(url) as client:
            client.deploy(flow)
        yield url


def demo_app() -> App:
    """The handlers of `HANDLERS`, in this process."""
    app = App("demo")

    @app.handler("demo.Greet")
    def greet(name: str) -> str:
        if name == "bad":
            raise ValueError("there is no such name")
        return f"Hello, {name}!"

    @app.handler("demo.Fetch")
    def fetch(name: str) -> int:
        return len(name)

    @app.handler("Store")
    def store(n: int, text: str) -> bool:
        return True

    return app


@contextmanager
def worker(url: str, app: App | None = None) -> Iterator[AppWorker]:
    """A worker on a database, in this process."""
    app = app or demo_app()
    with connect(url) as services:
        plans = services.evaluator.plans
        plan = plans.get(services.operations.program())
        config = WorkerConfig(service="demo", lease_seconds=10, renew_seconds=2)
        with AppWorker(services, app.table(plan, plans), config) as serving:
            yield serving


def id_in(result: Result) -> str:
    """The one id that a command has printed as data."""
    found = _ID.search(result.stdout)
    assert found is not None, (result.stdout, result.stderr)
    return found.group()


def end(client: Client, name: str) -> None:
    """So that the next test's worker finds nothing; a worker may have ended the run as it left."""
    with suppress(RunEnded):
        client.run(name).cancel(force=True)
    client.operations.persistence.kernel.sweep()


def submit(url: str, *args: str) -> str:
    """The id of a new run."""
    return id_in(run("submit", *args, "--database", url))


def finished(url: str, *args: str) -> str:
    """The id of a new run that has ended, however it did."""
    name = submit(url, *args)
    with Client(url) as client:
        client.run(name).wait("30s")
    return name
