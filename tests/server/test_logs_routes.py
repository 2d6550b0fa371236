"""Log lines over HTTP: windows of a run, and the road in for workers that reach nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest
import uvicorn
from starlette.testclient import TestClient

from afl.base.settings import Settings
from afl.kernel.errors import StoreUnavailable
from afl.logs.http_road import HttpLogs, LogsRefused
from afl.logs.keeping import Keeper
from afl.logs.model import StreamKey
from afl.logs.spool import Spool
from afl.server.application import create_app
from afl.server.backend import Backend
from afl.server.serving import open_backend
from tests.logs.records import slices_of, spool_in
from tests.server.calling import token_for

FLOW = """\
namespace demo {
  workflow Talk(name: String) => (name: String) andThen {
    sys.log(said = $.name)
    yield Talk(name = $.name)
  }
}
"""


@pytest.fixture
def logged(database_url: str) -> Iterator[Backend]:
    with open_backend(database_url, Settings()) as backend:
        backend.client.deploy(FLOW)
        yield backend


def _run(backend: Backend, folder: Path, lines: int = 30) -> str:
    """A run with lines of a command."""
    run = backend.client.submit("demo.Talk", {"name": "ada"})
    spool = spool_in(folder)
    writer = spool.open(StreamKey(run.id, "0/build", 1, "stdout"))
    for number in range(lines):
        writer.line(f"line {number}".encode(), level=40 if number == 7 else 20)
    writer.close()
    spool.close()
    assert backend.logs is not None
    while slices := slices_of(spool, backend.logs):
        backend.logs.append(slices)
    return run.id


def test_windows_go_back_and_on(logged: Backend, tmp_path: Path) -> None:
    client = TestClient(create_app(logged), headers=token_for(logged, "viewer"))
    run = _run(logged, tmp_path)
    place = f"/api/v1/runs/{run}/logs"
    tail = client.get(place, params={"tail": True, "limit": 10}).json()
    assert [line["text"] for line in tail["items"]] == [f"line {n}" for n in range(20, 30)]
    assert {line["stream"] for line in tail["items"]} == {"stdout"}
    back = client.get(place, params={"before": tail["before"], "limit": 100}).json()
    assert [line["text"] for line in back["items"]] == [f"line {n}" for n in range(20)]
    assert back["before"] is None
    assert client.get(place, params={"after": tail["next"]}).json()["items"] == []
    first = client.get(place, params={"limit": 25}).json()
    rest = client.get(place, params={"limit": 25, "after": first["next"]}).json()
    assert len(first["items"]) == 25
    assert [line["text"] for line in rest["items"]] == [f"line {n}" for n in range(25, 30)]
    errors = client.get(place, params={"level": "error"}).json()["items"]
    assert [line["text"] for line in errors] == ["line 7"]
    found = client.get(place, params={"grep": "LINE 1"}).json()["items"]
    assert [line["text"] for line in found] == ["line 1", *(f"line {n}" for n in range(10, 20))]


@pytest.mark.parametrize(
    "wrong",
    [{"level": "loud"}, {"after": "%%%"}, {"before": "x"}, {"since": "2026-01-01T00:00:00"}],
)
def test_what_makes_no_sense_is_refused(
    logged: Backend, tmp_path: Path, wrong: dict[str, str]
) -> None:
    client = TestClient(create_app(logged), headers=token_for(logged, "viewer"))
    run = _run(logged, tmp_path, 1)
    answer = client.get(f"/api/v1/runs/{run}/logs", params=wrong)
    assert answer.status_code == 422
    assert answer.json()["code"].split(".")[0] in ("logs", "server")


def test_all_logs_are_for_those_who_see_everything(logged: Backend, tmp_path: Path) -> None:
    run = _run(logged, tmp_path)
    client = TestClient(create_app(logged), headers=token_for(logged, "viewer"))
    found = client.get("/api/v1/logs", params={"limit": 3}).json()["items"]
    assert [line["text"] for line in found] == ["line 27", "line 28", "line 29"]
    assert {line["run"] for line in found} == {run}
    other = TestClient(create_app(logged), headers=token_for(logged, "viewer", "elsewhere"))
    assert other.get("/api/v1/logs").status_code == 403
    assert other.get(f"/api/v1/runs/{run}/logs").status_code == 404


def _serve(backend: Backend) -> tuple[uvicorn.Server, Thread, str]:
    config = uvicorn.Config(create_app(backend), port=0, log_level="error")
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    return server, thread, f"http://127.0.0.1:{port}"


def test_a_spool_is_shipped_over_http_while_the_server_goes_and_comes(
    logged: Backend, tmp_path: Path
) -> None:
    token = token_for(logged, "operator")["Authorization"].partition(" ")[2]
    run = logged.client.submit("demo.Talk", {"name": "ada"})
    server, thread, url = _serve(logged)
    logs = HttpLogs(url, token)
    root = tmp_path / logs.home()
    spool = Spool(root, "worker")
    keeper = Keeper(root, spool, logs, logs)
    keeper.start()
    writer = spool.open(StreamKey(run.id, "0/build", 1, "stdout"))
    for number in range(2000):
        writer.line(f"line {number}".encode())
        if number == 1000:
            server.should_exit = True
            thread.join()
            with pytest.raises(StoreUnavailable):
                logs.position(spool.id)
            port = int(url.rpartition(":")[2])
            config = uvicorn.Config(create_app(logged), port=port, log_level="error")
            server = uvicorn.Server(config)
            thread = Thread(target=server.run, daemon=True)
            thread.start()
    writer.close()
    assert keeper.stop(30)
    client = TestClient(create_app(logged), headers=token_for(logged, "viewer"))
    stored = client.get(f"/api/v1/runs/{run.id}/logs", params={"limit": 2000}).json()["items"]
    assert [line["text"] for line in stored] == [f"line {number}" for number in range(2000)]
    server.should_exit = True
    thread.join()


def test_who_may_not_ship_is_told_what_to_do(logged: Backend) -> None:
    server, thread, url = _serve(logged)
    for token in (None, "afl_wrong", token_for(logged, "viewer")["Authorization"].split()[1]):
        with (
            closing(HttpLogs(url, token)) as logs,
            pytest.raises(LogsRefused, match="does not take log lines from here"),
        ):
            logs.home()
    server.should_exit = True
    thread.join()
