"""What goes wrong is told in one form, and tells nobody what they should not know."""

from __future__ import annotations

import importlib
import logging
import pkgutil
import re
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

import afl
from afl.app.errors import AppError, BadProgram
from afl.base.errors import AflError
from afl.exec.errors import ExecError
from afl.kernel.errors import KernelError, StoreUnavailable
from afl.messaging.errors import CircuitBreakerOpenError
from afl.runtime.errors import BadInputs, RunEnded, RunError, UnknownRun
from afl.server.application import API, create_app
from afl.server.backend import Backend
from afl.server.errors import NotSignedIn, ServerError
from afl.server.problems import STATUS, Unexpected, add_problems, problem_of, status_of
from afl.turns.errors import TurnError
from tests.architecture.repository import ROOT
from tests.server.calling import token_for


def errors_of(kind: type[AflError]) -> Iterator[type[AflError]]:
    for below in kind.__subclasses__():
        yield below
        yield from errors_of(below)


#: What says only which package an error is of.
ROOTS = (AflError, AppError, ExecError, KernelError, RunError, ServerError, TurnError)


#: Codes that no class has.
OTHERS = {
    "server.internal": 500,
    "server.invalid": 422,
    "server.method": 405,
    "server.not_ready": 503,
}


def all_errors() -> list[type[AflError]]:
    """Every error that a request can end with."""
    for module in pkgutil.walk_packages(afl.__path__, "afl."):
        # commands turn errors into words of their own, and nothing imports them from below
        if not module.name.startswith(("afl.cli", "afl.__main__", "afl.testing")):
            importlib.import_module(module.name)
    return [
        error
        for error in errors_of(AflError)
        if error.__module__.startswith("afl.") and not error.__module__.startswith("afl.cli.")
    ]


def test_every_error_has_a_status() -> None:
    found = all_errors()
    assert len(found) > 60
    for error in found:
        kinds = [kind for kind in error.__mro__ if issubclass(kind, AflError)]
        known = [kind for kind in kinds if kind is error or kind not in ROOTS]
        assert any(kind.code in STATUS for kind in known), f"{error} needs a status"
    assert set(STATUS) - {error.code for error in found} == {"error"}


def test_the_reference_lists_every_code_with_its_status() -> None:
    page = (ROOT / "docs" / "reference" / "problems.md").read_text(encoding="utf-8")
    listed = {
        code: int(status) for code, status in re.findall(r"^\| `(\S+)` \| (\d+) \|", page, re.M)
    }
    assert listed == OTHERS | {error.code: status_of(error) for error in all_errors()}


@pytest.mark.parametrize("status", sorted(set(STATUS.values())))
def test_what_may_succeed_later_says_when(status: int) -> None:
    for error in errors_of(AflError):
        if STATUS.get(error.code) == status and not error.__module__.startswith(
            ("afl.cli", "tests")
        ):
            retryable = error.retryable or error.code in ("kernel.migration", "logs.spool_closed")
            wait = error.code == "runtime.still_running"
            assert retryable == (status in (429, 503)) or wait, error


def test_a_kind_that_is_not_in_the_table_is_of_its_kind() -> None:
    class Special(UnknownRun):
        code = "test.special"

    assert status_of(Special) == 404


def _body(error: AflError) -> dict[str, object]:
    app = FastAPI()
    add_problems(app)

    @app.get("/")
    def fail() -> None:
        raise error

    answer = TestClient(app).get("/")
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, object] = answer.json()
    assert body["status"] == answer.status_code
    return body


def test_a_problem_has_a_code_a_sentence_and_a_hint() -> None:
    assert _body(UnknownRun("There is no run 7. `afl runs list` shows those there are.")) == {
        "type": "urn:afl:problem:runtime.unknown_run",
        "title": "Not Found",
        "status": 404,
        "detail": "There is no run 7.",
        "code": "runtime.unknown_run",
        "hint": "`afl runs list` shows those there are.",
        "errors": [],
    }


@pytest.mark.parametrize(
    ("error", "status", "detail", "hint"),
    [
        (RunEnded("the run is over"), 409, "the run is over", None),
        (
            BadInputs("it has no name; `afl graph FLOW` shows them"),
            422,
            "it has no name; `afl graph FLOW` shows them",
            "Run `afl graph FLOW`.",
        ),
        (BadProgram("a.afl:1: no. Yes.\na.afl:2: no"), 422, "a.afl:1: no. Yes.\na.afl:2: no", None),
        (
            NotSignedIn(),
            401,
            "This needs a token.",
            "Send one as `Authorization: Bearer TOKEN`; `afl tokens create` makes one.",
        ),
        (KernelError(), 500, "The kernel refused a request.", None),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_message_is_split(error: AflError, status: int, detail: str, hint: str | None) -> None:
    body = _body(error)
    assert (body["status"], body["detail"], body["hint"]) == (status, detail, hint)


def test_where_the_database_is_stays_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        body = _body(StoreUnavailable("no connection to db7.internal as root"))
    assert body["status"] == 503
    assert "db7" not in str(body)
    assert "db7" in caplog.text


def test_who_has_to_wait_is_told_how_long() -> None:
    answer = problem_of(CircuitBreakerOpenError(retry_after=12.3))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "13")


def test_a_mistake_of_ours_is_told_to_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    app = FastAPI()
    app.add_middleware(Unexpected)

    @app.get("/")
    def fail() -> None:
        raise RuntimeError("a secret")

    answer = TestClient(app).get("/")
    assert answer.status_code == 500
    assert answer.json()["code"] == "server.internal"
    assert "secret" not in answer.text
    assert "a secret" in caplog.text


def test_what_is_not_there_is_a_problem(memory_backend: Backend) -> None:
    client = TestClient(create_app(memory_backend), headers=token_for(memory_backend, "admin"))
    for method, path, status, code in (
        ("GET", f"{API}/nothing", 404, "server.missing"),
        ("POST", f"{API}/nothing", 404, "server.missing"),
        ("GET", "/api/v2/runs", 404, "server.missing"),
        ("GET", "/api", 404, "server.missing"),
        ("POST", "/", 404, "server.missing"),
        ("GET", f"{API}/runs/", 404, "server.missing"),
        ("PUT", f"{API}/tokens", 405, "server.method"),
    ):
        answer = client.request(method, path)
        assert (answer.status_code, answer.json()["code"]) == (status, code), (method, path)
    assert client.put(f"{API}/me").headers["allow"] == "GET"


def test_a_form_that_is_wrong_says_where(memory_backend: Backend) -> None:
    client = TestClient(create_app(memory_backend), headers=token_for(memory_backend, "admin"))
    answer = client.post(f"{API}/events", json={"nam": "x"})
    assert answer.status_code == 422
    body = answer.json()
    assert body["code"] == "server.invalid"
    assert {each["where"] for each in body["errors"]} == {"body.name", "body.nam"}
    assert "x" not in [value for each in body["errors"] for value in each.values()]
    answer = client.post(
        f"{API}/events", content=b"{", headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "server.invalid")
