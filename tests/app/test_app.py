from __future__ import annotations

import asyncio
import os
import signal
import threading
from datetime import timedelta

import pytest

from afl import App, Client, Context, Run
from afl.app.errors import BadDatabase, BadHandler, BadProgram
from afl.app.services import connect
from afl.base.settings import Settings
from afl.runtime.ending import Asked, asked_by_signals
from afl.runtime.errors import RunCanceled, RunFailed, StillRunning
from afl.runtime.reasons import WhyCode
from tests.app.served import square

FLOW = """
namespace shop {
  event facet Square(n: Int) => (n: Int, pid: Int, attempt: Int)
  event facet Greet(name: String) => (text: String)
  event facet Block(name: String) => (text: String)
  event facet Long(n: Int) => (seconds: Double) with Timeout(seconds = 20)
  workflow Hello(name: String) => (text: String) andThen {
    greeting = Greet(name = $.name)
    yield Hello(text = greeting.text)
  }
  workflow Stuck(name: String) => (text: String) andThen {
    b = Block(name = $.name)
    yield Stuck(text = b.text)
  }
  workflow Squares(n: Int) => (n: Int, pid: Int) andThen {
    s = Square(n = $.n)
    yield Squares(n = s.n, pid = s.pid)
  }
  workflow Longer() => (seconds: Double) andThen {
    s = Long(n = 1)
    yield Longer(seconds = s.seconds)
  }
  workflow Order(id: String) => (paid: Json) andThen {
    paid = afl.event.Wait(name = "paid", key = $.id)
    nap = afl.time.Sleep(duration = 10ms) after paid
    yield Order(paid = paid.payload)
  }
}
"""
SOON = "30s"


@pytest.fixture
def app(database: str) -> App:
    app = App("shop", database)
    with app.client() as client:
        client.deploy(FLOW)
    return app


class TestWorker:
    def test_a_function_serves_its_facet(self, app: App) -> None:
        @app.handler("shop.Greet")
        def greet(name: str, ctx: Context) -> str:
            ctx.log.info("greeting")
            ctx.progress(1, 2, "half way")
            return f"Hello {name}"

        with app.worker():
            run = app.client().submit("shop.Hello", {"name": "Anna"}, key="k")
            assert run.result(SOON) == {"text": "Hello Anna"}
            assert run.state == "completed"
        app.close()

    def test_a_coroutine_serves_its_facet(self, app: App) -> None:
        @app.handler("shop.Greet")
        async def greet(name: str) -> str:
            await asyncio.sleep(0)
            return f"Hello {name}"

        with app.worker():
            assert app.client().submit("shop.Hello", {"name": "B"}).result(SOON) == {
                "text": "Hello B"
            }
        app.close()

    def test_a_function_serves_from_a_process_of_its_own(self, app: App) -> None:
        app.handler("shop.Square", process=True)(square)
        with app.worker():
            result = app.client().submit("shop.Squares", {"n": 7}).result(SOON)
        assert result["n"] == 49
        assert result["pid"] != os.getpid()
        app.close()

    def test_its_module_may_be_loaded_anew_meanwhile(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app.handler("shop.Square", process=True)(square)
        with app.worker():
            # what `afl dev` does when a file is saved while a run is under way
            monkeypatch.setattr("tests.app.served.square", lambda n: n)
            assert app.client().submit("shop.Squares", {"n": 7}).result(SOON)["n"] == 49
        app.close()

    def test_what_a_process_cannot_find_is_told(self, app: App) -> None:
        @app.handler("shop.Square", process=True)
        def hidden(n: int) -> dict[str, int]:
            return {"n": n, "pid": 0}

        with app.worker(), pytest.raises(RunFailed, match="top level of a module"):
            app.client().submit("shop.Squares", {"n": 7}).result(SOON)
        app.close()

    def test_a_handler_that_does_not_fit_is_refused_at_the_start(self, app: App) -> None:
        @app.handler("shop.Greet")
        def greet(names: str) -> str:
            return names

        with pytest.raises(BadHandler, match="did you mean `name`"):
            app.worker()
        app.close()

    def test_events_reach_waits_before_and_after_they_begin(self, app: App) -> None:
        client = app.client()
        client.emit("paid", "1", {"cents": 1}, id="e-1")
        client.emit("paid", "1", {"cents": 1}, id="e-1")
        with app.worker():
            early = client.submit("shop.Order", {"id": "1"})
            assert early.result(SOON) == {"paid": {"cents": 1}}
            late = client.submit("shop.Order", {"id": "2"})
            with pytest.raises(StillRunning, match="waits for the event `paid` with the key `2`"):
                _until_it_waits(late)
            client.emit("paid", "2", 5)
            assert late.result(SOON) == {"paid": 5}
        app.close()

    def test_a_sign_of_life_moves_the_deadline(self, app: App) -> None:
        @app.handler("shop.Long")
        def long(n: int, ctx: Context) -> float:
            before = ctx.deadline
            after = ctx.heartbeat("1h")
            assert before is not None
            assert after is not None
            return (after - before).total_seconds()

        with app.worker():
            result = app.client().submit("shop.Longer").result(SOON)
        assert isinstance(result["seconds"], float)
        assert 3400 < result["seconds"] <= 3600
        app.close()

    def test_it_serves_until_it_is_told_to_end(self, app: App) -> None:
        @app.handler("shop.Greet")
        def greet(name: str) -> str:
            return name

        client = app.client()
        run = client.submit("shop.Hello", {"name": "x"})

        def watch() -> None:
            run.wait(SOON)
            os.kill(os.getpid(), signal.SIGTERM)

        before = signal.getsignal(signal.SIGTERM)
        watcher = threading.Thread(target=watch)
        watcher.start()
        app.worker().serve()
        watcher.join()
        assert signal.getsignal(signal.SIGTERM) is before
        assert run.result() == {"text": "x"}
        assert list(client.operations.workers()) == []
        app.close()

    def test_only_the_first_signal_is_kept_from_ending_the_process(self) -> None:
        before = signal.getsignal(signal.SIGINT)
        asked = Asked()
        with asked_by_signals(asked):
            os.kill(os.getpid(), signal.SIGINT)
            assert asked.get(timeout=10) == signal.SIGINT
            assert signal.getsignal(signal.SIGINT) is before

    def test_a_canceled_run_tells_its_handler(self, app: App) -> None:
        told, began, pause = (threading.Event() for _ in range(3))

        @app.handler("shop.Block")
        def block(name: str, ctx: Context) -> str:
            began.set()
            while not ctx.cancelled:
                pause.wait(0.02)
            told.set()
            return "late"

        with app.worker(lease="1500ms"):
            run = app.client().submit("shop.Stuck", {"name": "x"})
            assert began.wait(30)
            run.cancel(force=True)
            with pytest.raises(RunCanceled):
                run.result(SOON)
            assert told.wait(60)
        app.close()


def _until_it_waits(run: Run) -> None:
    """Waits until a run has got to where it waits for an event; then gives up at once."""
    while run.why().answers[0].code is not WhyCode.EVENT:
        pass
    run.result(timedelta(0))


class TestClient:
    def test_a_run_can_be_looked_after(self, app: App) -> None:
        client = app.client()
        run = client.submit("shop.Hello", {"name": "x"}, labels={"a": "b"}, deadline="1h")
        assert run.state == "created"
        assert run in client.runs(labels={"a": "b"})
        run.pause()
        assert run.state == "paused"
        run.resume()
        assert run.why().answers[0].code is WhyCode.NO_WORKER
        assert run.tree().root is None
        run.cancel(reason="enough")
        assert client.run(run.id).state == "canceled"
        again = run.rerun()
        assert again.get().inputs == {"name": "x"}
        assert again != run
        app.close()

    def test_a_failed_run_is_retried(self, app: App) -> None:
        failures = [ValueError("no")]

        @app.handler("shop.Greet")
        def greet(name: str) -> str:
            if failures:
                raise failures.pop()
            return name

        with app.worker():
            run = app.client().submit("shop.Hello", {"name": "x"})
            with pytest.raises(RunFailed, match="ValueError: no"):
                run.result(SOON)
            assert run.retry().result(SOON) == {"text": "x"}
        app.close()

    def test_flows_that_do_not_compile_are_refused_with_what_check_says(self, app: App) -> None:
        with pytest.raises(BadProgram, match="AFL"):
            app.client().deploy("namespace a { workflow W() => () andThen { x = Gone() } }")
        with pytest.raises(BadProgram, match=r"There is no file .*gone\.afl"):
            app.client().deploy("gone.afl")
        app.close()

    def test_a_client_owns_what_it_connects(
        self, database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AFL_DATABASE_URL", database)
        with Client.from_env() as client:
            assert client.deploy(FLOW).startswith("sha256:")
            assert client.submit("shop.Hello", {"name": "x"}).state == "created"


class TestServices:
    def test_no_database_is_refused_with_what_to_do(self) -> None:
        with pytest.raises(BadDatabase, match="Set AFL_DATABASE_URL"):
            connect(settings=Settings())

    def test_an_unknown_database_is_refused_without_its_secrets(self) -> None:
        with pytest.raises(BadDatabase) as refused:
            connect("mysql://anna:secret@host/name", Settings())
        assert "mysql://host/name" in str(refused.value)
        assert "secret" not in str(refused.value)

    def test_memory_by_name_is_shared_and_without_one_is_not(self) -> None:
        assert connect("memory:a", Settings()) is connect("memory:a", Settings())
        assert connect("memory:", Settings()) is not connect("memory:", Settings())
