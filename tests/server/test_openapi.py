"""The OpenAPI document that the dashboard's types are made of is that of the server."""

from __future__ import annotations

import json

from afl.server.openapi import document
from tests.architecture.repository import ROOT


def test_the_stored_document_is_that_of_the_server() -> None:
    stored = (ROOT / "ui" / "openapi.json").read_text(encoding="utf-8")
    message = "write it anew with `python -m afl.server.openapi > ui/openapi.json`"
    assert document() == stored, message


def test_it_says_how_problems_look() -> None:
    told = json.loads(document())
    for path in told["paths"].values():
        for operation in path.values():
            assert "422" not in operation["responses"]
            content = operation["responses"]["default"]["content"]
            assert list(content) == ["application/problem+json"]
