"""Breakers before facets and before providers of models: alone, across processes, without Redis."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from afl import App, Client, Permanent, Run
from afl.app.redis_breakers import list_all
from afl.app.services import connect
from afl.app.turning import Turning, TurnOptions
from afl.base.settings import Settings
from afl.bridges.breakers import shown_name
from afl.messaging.breaker import CircuitBreakerConfig
from afl.messaging.breaker_list import ListedBreaker
from afl.runtime.reasons import WhyCode
from afl.testing.llm_server import Asked, Failed, LoopbackLLM, Outcome, Said
from tests.app.breaker_turns import turning_of
from tests.app.breaker_worker import app_of
from tests.architecture.repository import ROOT
from tests.cli.runner import run as afl
from tests.cli.test_json_shapes import validate
from tests.messaging.redis_servers import Server, needs_redis_server

PATIENCE = "90s"
FLOW = """\
namespace demo {
  event facet Charge(n: Int) => (paid: Int)
    with Breaker(failures = 3, cooldown = 1s, probes = 1)
    with Retry(max_attempts = 1000, delay = 1ms, max_delay = 2ms)

  workflow Pay(n: Int) => (paid: Int) andThen {
    done = Charge(n = $.n)
    yield Pay(paid = done.paid)
  }
}
"""


def eventually(found: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 90
    while not found():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def waits_for_a_breaker(run: Run) -> bool:
    return run.why().answers[0].code is WhyCode.BREAKER


class Service:
    """What a handler calls: it is well or not, and counts."""

    def __init__(self) -> None:
        self.error: Exception | None = ConnectionError("the service is down")
        self.calls = 0

    def app(self, database: str) -> App:
        app = App("demo", database)

        @app.handler("demo.Charge")
        def charge(n: int) -> int:
            self.calls += 1
            if self.error is not None:
                raise self.error
            return n + 1

        app.client().deploy(FLOW)
        return app


def test_a_facet_that_fails_is_left_alone_and_goes_on_by_itself(database: str) -> None:
    service = Service()
    app = service.app(database)
    with app.worker():
        run = app.client().submit("demo.Pay", {"n": 1})
        eventually(lambda: waits_for_a_breaker(run), "it does not wait")
        why = run.why().answers[0]
        assert "`facet/demo.Charge`" in why.sentence
        assert why.detail["breaker"] == "facet/demo.Charge"
        assert why.command == "afl breakers list"
        assert why.until is not None
        service.error = None
        assert run.result(PATIENCE) == {"paid": 2}
    # three have opened it, and then each probe alone has failed or not
    assert service.calls >= 4
    app.close()


def test_what_is_not_worth_trying_again_opens_nothing(database: str) -> None:
    service = Service()
    service.error = Permanent("the card is declined")
    app = service.app(database)
    with app.worker():
        for _ in range(5):
            assert app.client().submit("demo.Pay", {"n": 1}).wait(PATIENCE).endswith("failed")
        service.error = None
        assert app.client().submit("demo.Pay", {"n": 1}).result(PATIENCE) == {"paid": 2}
    assert service.calls == 6
    app.close()


@needs_redis_server
def test_without_redis_a_worker_counts_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis = Server(tmp_path / "redis")
    redis.start()
    monkeypatch.setenv("AFL_REDIS_URL", f"redis://127.0.0.1:{redis.port}")
    service = Service()
    app = service.app("memory:")
    try:
        with app.worker():
            run = app.client().submit("demo.Pay", {"n": 1})
            eventually(lambda: waits_for_a_breaker(run), "it does not wait")
            redis.stop()
            before = service.calls
            # it is not stopped by that, and opens again what it has counted itself
            eventually(lambda: service.calls >= before + 3, "it does not go on")
            eventually(lambda: waits_for_a_breaker(run), "it does not count for itself")
            service.error = None
            assert run.result(PATIENCE) == {"paid": 2}
            redis.start()
            assert app.client().submit("demo.Pay", {"n": 2}).result(PATIENCE) == {"paid": 3}
    finally:
        redis.stop()
        app.close()


# Across processes

SHARED = """\
namespace demo {
  event facet TryA(n: Int) => (paid: Int) with Queue(name = "a") with Breaker(SET)
  event facet TryB(n: Int) => (paid: Int) with Queue(name = "b") with Breaker(SET)
  event facet ChargeA(n: Int) => (paid: Int) with Queue(name = "a") with Breaker(SET)
    with Retry(max_attempts = 1000, delay = 1ms, max_delay = 2ms)
  event facet ChargeB(n: Int) => (paid: Int) with Queue(name = "b") with Breaker(SET)
    with Retry(max_attempts = 1000, delay = 1ms, max_delay = 2ms)

  event facet AskA(n: Int) => (said: String) with Queue(name = "a") prompt { template "{n}" }
  event facet AskB(n: Int) => (said: String) with Queue(name = "b") prompt { template "{n}" }

  FLOWS
}
""".replace("SET", 'service = "payments", failures = 4, cooldown = 1s, probes = 1')
FLOWS = "\n".join(
    f"workflow Do{name}(n: Int) => ({out}: {kind}) andThen {{ d = {name}(n = $.n)\n"
    f"yield Do{name}({out} = d.{out}) }}"
    for name, out, kind in [
        *((f"{verb}{place}", "paid", "Int") for verb in ("Try", "Charge") for place in "AB"),
        *((f"Ask{place}", "said", "String") for place in "AB"),
    ]
)


@contextmanager
def process(module: str, *command: str) -> Iterator[None]:
    """A worker in a process of its own, with this Redis; ended afterwards."""
    started = subprocess.Popen(
        [sys.executable, "-m", f"tests.app.{module}", *command],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert started.stdout is not None
        assert started.stdout.readline() == b"there\n"
        yield
        started.communicate(timeout=60)
        assert started.returncode == 0
    finally:
        started.kill()
        started.communicate()


@pytest.fixture
def shared(mail_place: str, own_redis: str) -> Iterator[tuple[Client, str, str]]:
    """A client of a database with the program, and the URLs of the database and of Redis."""
    app = App("flows", mail_place)
    client = app.client()
    client.deploy(SHARED.replace("FLOWS", FLOWS))
    with app.worker(turns=0):
        yield client, mail_place, own_redis
    app.close()


def breaker(redis_url: str, name: str) -> ListedBreaker:
    found = asyncio.run(list_all(Settings(redis_url=redis_url)))
    (one,) = [each for each in found if shown_name(each.name) == name]
    return one


@pytest.mark.parametrize("mail_place", ["redis"], indirect=True)
def test_workers_open_and_close_a_breaker_together(
    shared: tuple[Client, str, str], tmp_path: Path
) -> None:
    client, database, redis_url = shared
    (tmp_path / "broken").touch()
    here = app_of(database, tmp_path, "a")
    with (
        process("breaker_worker", database, "b", str(tmp_path)),
        here.worker(queues=("a",), flows=False),
    ):
        for place in "ABAB":
            assert client.submit(f"demo.DoTry{place}", {"n": 1}).wait(PATIENCE).endswith("failed")
        assert breaker(redis_url, "service/payments").totals["opened"] >= 1
        runs = [client.submit(f"demo.DoCharge{place}", {"n": 1}) for place in "AABB"]
        for run in runs:
            eventually(lambda run=run: waits_for_a_breaker(run), "it does not wait")  # type: ignore[misc]
        (tmp_path / "broken").unlink()
        assert [run.result(PATIENCE) for run in runs] == [{"paid": 2}] * 4
    here.close()
    found = breaker(redis_url, "service/payments")
    assert found.state.value == "closed"
    assert {"facet demo.TryA", "facet demo.ChargeB"} <= set(found.users)
    lines = [(tmp_path / f"calls.{place}").read_text().split() for place in "ab"]
    calls = [word for words in lines for word in words]
    # four have opened it, of both processes; after that, each time that it opened again one probe
    assert calls.count("bad") == 4 + found.totals["opened"] - 1
    assert calls.count("good") == 4
    assert all(words.count("bad") >= 2 for words in lines)


# Providers of models


class Provider:
    """A model that may be down."""

    def __init__(self, says: str) -> None:
        self.is_down = False
        self._says = says

    def __call__(self, asked: Asked) -> Outcome:
        if self.is_down:
            return Failed(529, "overloaded", "overloaded_error")
        return Said(self._says)


@pytest.mark.parametrize("mail_place", ["redis"], indirect=True)
def test_what_one_process_finds_down_no_other_asks(shared: tuple[Client, str, str]) -> None:
    client, database, redis_url = shared
    main = Provider("main")
    main.is_down = True
    with LoopbackLLM(main) as server, LoopbackLLM(Provider("spare")) as other:
        models = [f"openai@{each.openai_url}:some" for each in (server, other)]
        services = connect(database)
        here = turning_of(services, "a", models)
        with process("breaker_turns", database, "b", *models):
            here.start()
            for _ in range(3):
                run = client.submit("demo.DoAskA", {"n": 1})
                assert run.result(PATIENCE) == {"said": "spare"}
            name = f"model/openai@{server.openai_url.removeprefix('http://')}"
            assert breaker(redis_url, name).state.value == "open"
            assert len(server.requests) == 3
            for place in "BA":
                run = client.submit(f"demo.DoAsk{place}", {"n": 1})
                assert run.result(PATIENCE) == {"said": "spare"}
            assert len(server.requests) == 3
            _look_and_reset(redis_url, name)
            main.is_down = False
            run = client.submit("demo.DoAskB", {"n": 1})
            assert run.result(PATIENCE) == {"said": "main"}
            here.stop(timedelta(seconds=30))
        services.close()


def _look_and_reset(redis_url: str, name: str) -> None:
    """What people see of an open breaker, and how they close it."""
    variables = {"AFL_REDIS_URL": redis_url}
    listed = afl("breakers", "list", variables=variables)
    assert f"{name}  open" in listed.stdout
    assert "turns of turns-a, turns of turns-b" in listed.stdout
    assert f"afl breakers reset {name}" in listed.stderr
    shown = afl("breakers", "list", "--open", "--json", variables=variables).stdout
    validate(shown, "breakers")
    (one,) = [each for each in json.loads(shown)["breakers"] if each["name"] == name]
    assert (one["state"], one["config"]["failures"], one["totals"]["bad"]) == ("open", 3, 3)
    missing = afl("breakers", "reset", f"{name}x", variables=variables)
    assert missing.exit_code != 0
    assert f"did you mean {name}?" in missing.stderr
    closed = afl("breakers", "reset", name, "--json", variables=variables).stdout
    validate(closed, "changes")
    assert json.loads(closed)["changes"][0]["state"] == "closed"


def test_a_turn_whose_provider_is_down_waits_and_goes_on_by_itself() -> None:
    database = "memory:breakers"
    provider = Provider("hello")
    provider.is_down = True
    with LoopbackLLM(provider) as server, connect(database) as services:
        app = App("flows", database)
        client = app.client()
        client.deploy(SHARED.replace("FLOWS", FLOWS))
        options = TurnOptions(
            models=(f"openai@{server.openai_url}:some",),
            lists=("a",),
            breaker=CircuitBreakerConfig(
                failure_threshold=1, timeout_seconds=1, half_open_max_calls=1, success_threshold=1
            ),
        )
        turning = Turning(services, options)
        turning.start()
        with app.worker(turns=0):
            # the first is busy, and the provider is left alone; the second is not even asked for
            first, second = (client.submit("demo.DoAskA", {"n": n}) for n in (1, 2))
            eventually(
                lambda: any(map(waits_for_a_breaker, (first, second))), "no turn waits for it"
            )
            provider.is_down = False
            assert first.result(PATIENCE) == {"said": "hello"}
            assert second.result(PATIENCE) == {"said": "hello"}
        assert turning.stop(timedelta(seconds=30))
        app.close()


def test_without_redis_there_is_nothing_to_list() -> None:
    result = afl("breakers", "list")
    assert result.exit_code != 0
    assert "AFL_REDIS_URL" in result.stderr
