"""What `afl dev` has found, as the API tells it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from fastapi.testclient import TestClient

from afl.lang.api import compile_sources
from afl.server.application import create_app
from afl.server.dev_state import DevReport, DevState, dev_mark, shown
from afl.server.serving import open_backend

_WRONG = """\
namespace demo {
  event facet Greet(name: Strin) => (text: String)
}
"""
_LOCAL = "http://127.0.0.1"


def _told(state: DevState | None) -> dict[str, Any]:
    with open_backend("memory:", auth=False) as backend:
        client = TestClient(create_app(replace(backend, dev=state)), base_url=_LOCAL)
        answer = client.get("/api/v1/dev")
    assert answer.status_code == 200
    return dict(answer.json())


def test_other_servers_have_nothing_to_tell() -> None:
    told = _told(None)
    assert told["enabled"] is False
    assert (told["diagnostics"], told["files"], told["error"], told["mark"]) == ([], [], None, "")
    assert dev_mark(None) == ""


def test_the_last_report_is_told() -> None:
    state = DevState()
    at = datetime(2027, 1, 2, tzinfo=UTC)
    found = compile_sources([("flows/demo.afl", _WRONG)]).diagnostics
    state.tell(DevReport(shown(found), ("flows/demo.afl",), at, "Traceback"))
    told = _told(state)
    assert told["enabled"] is True
    (diagnostic,) = told["diagnostics"]
    assert diagnostic["code"] == found[0].code
    assert (diagnostic["file"], diagnostic["line"], diagnostic["column"]) == (
        "flows/demo.afl",
        2,
        27,
    )
    assert (diagnostic["end_line"], diagnostic["end_column"]) == (2, 32)
    assert "String" in diagnostic["help"]
    assert (told["files"], told["error"]) == (["flows/demo.afl"], "Traceback")
    assert told["reloaded_at"] == "2027-01-02T00:00:00Z"
    assert told["mark"] == dev_mark(state)


def test_a_mark_names_a_report() -> None:
    state, report = DevState(), DevReport(error="no")
    first = dev_mark(state)
    state.tell(report)
    second = dev_mark(state)
    state.tell(DevReport(error="no"))
    assert first != second
    assert dev_mark(state) == second
    assert dev_mark(DevState()) != first, "another server has other marks"
