"""Generated requests at every route of the OpenAPI document: no answer is a failure of ours."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft202012Validator
from schemathesis.core.result import Ok
from starlette.testclient import TestClient

from afl.base.settings import Settings
from afl.server.application import create_app
from afl.server.limits import Limits
from afl.server.openapi import document
from afl.server.serving import open_backend
from tests.cli.deployed import FLOW
from tests.server.calling import token_for

_EXAMPLES = 10
_DOCUMENT: dict[str, Any] = json.loads(document())
#: It never ends: that is what it is for.
_STREAM = "GET /api/v1/stream"
_OPERATIONS = {
    operation.label: operation
    for result in schemathesis.openapi.from_dict(_DOCUMENT).get_all_operations()
    if isinstance(result, Ok) and (operation := result.ok()).label != _STREAM
}
assert len(_OPERATIONS) > 100
#: What is answered where this installation lacks something, or the same may succeed later.
_NOT_NOW = (501, 503)


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with open_backend(f"memory:{secrets.token_hex(4)}", Settings()) as backend:
        backend.client.deploy(FLOW)
        backend.client.submit("demo.Hello", {"name": "ada"})
        app = create_app(backend, Limits(requests_per_second=1_000_000, burst=1_000_000))
        headers = token_for(backend, "admin")
        yield TestClient(app, headers=headers, raise_server_exceptions=False)


@pytest.mark.parametrize("label", _OPERATIONS)
def test_no_request_is_a_failure_of_ours(label: str, client: TestClient) -> None:
    @given(case=_OPERATIONS[label].as_strategy())
    @settings(
        max_examples=_EXAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def play(case: schemathesis.Case[Any]) -> None:
        asked = case.as_transport_kwargs(base_url="http://testserver")
        asked["headers"] = {
            name: text for name, text in asked["headers"].items() if name.lower() != "authorization"
        }
        wanted = ("method", "url", "params", "headers", "json", "data")
        given_ = {name: asked[name] for name in wanted if asked.get(name) is not None}
        if isinstance(given_.get("data"), bytes | str):
            given_["content"] = given_.pop("data")
        answer = client.request(**given_)
        assert answer.status_code < 500 or answer.status_code in _NOT_NOW, answer.text
        if answer.status_code >= 400:
            assert {"code", "detail", "status"} <= answer.json().keys()
        elif answer.content and answer.headers["content-type"].startswith("application/json"):
            _fits(label, str(answer.status_code), answer.json())

    play()


def _fits(label: str, status: str, body: object) -> None:
    """The answer has the shape that the document publishes."""
    method, _, path = label.partition(" ")
    told = _DOCUMENT["paths"][path][method.lower()]["responses"][status]
    schema = {
        **told["content"]["application/json"]["schema"],
        "components": _DOCUMENT["components"],
    }
    Draft202012Validator(schema).validate(body)
