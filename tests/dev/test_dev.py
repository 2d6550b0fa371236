"""`afl dev` as a process: it runs a project at once, and loses nothing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.cli.runner import process, run
from tests.dev.projects import PATIENCE_SECONDS, Dev, dev, eventually, is_alive, postmaster, project
from tests.kernel.mongo import databases as mongo


def test_a_project_runs_at_once_and_a_kill_loses_nothing() -> None:
    with project() as folder:
        first = Dev(folder)
        (run,) = first.runs()
        assert (run["workflow"], run["key"]) == ("hello.SayHello", "demo")
        assert first.outputs(run["id"]) == {"greeting": "Hello, world!", "letters": 10}
        first.kill()
        with dev(folder) as second:
            (kept,) = second.runs()
            assert (kept["id"], kept["state"]) == (run["id"], "completed")
            assert second.outputs(second.submit("hello.SayHello", name="Ada"))["letters"] == 8
            server = postmaster(folder)
            assert server is not None
        assert not is_alive(server)
        assert second.process.returncode == 0


def test_memory_will_do_and_a_taken_port_is_an_error_in_words() -> None:
    with project() as folder, dev(folder, "--memory") as running:
        assert running.started["database_url"] is None
        (run,) = running.runs()
        assert running.outputs(run["id"])["greeting"] == "Hello, world!"
        assert not (folder / ".afl").exists()

        port = running.url.rpartition(":")[2]
        refused = process("dev", "--memory", "--port", port, "--no-browser", cwd=folder)
        assert refused.returncode == 1
        assert b"--port" in refused.stderr


def test_only_one_may_have_the_database_of_a_project() -> None:
    with project() as folder, dev(folder) as running:
        refused = process("dev", "--port", "0", "--no-browser", cwd=folder)
        assert refused.returncode == 1
        assert b"runs in this project already" in refused.stderr
        assert len(running.runs()) == 1


def test_it_says_what_to_do_where_there_is_no_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    refused = run("dev", "--port", "0", "--no-browser")
    assert refused.exit_code == 1
    assert "afl-agentflow[dev-server]" in refused.stderr
    assert "`afl dev --memory`" in refused.stderr


def test_an_empty_folder_is_waited_for_and_a_drained_worker_ends_it_all(tmp_path: Path) -> None:
    with dev(tmp_path, "--memory") as running:
        assert running.started["served"] is None
        assert "`afl init . --force`" in str(running.started["missing"])
        assert process("init", ".", "--force", cwd=tmp_path).returncode == 0
        eventually(lambda: running.get("/dev")["reloaded_at"])
        run = running.submit("hello.SayHello")
        assert running.outputs(run)["greeting"] == "Hello, world!"

        # to drain its worker is to end it
        found = running.get("/workers")
        (worker,) = [each for each in found if each["state"] != "draining"]
        running.post(f"/workers/{worker['id']}/drain", {})
        assert running.event("stopped")["finished"]
        assert running.process.wait(PATIENCE_SECONDS) == 0


def test_there_is_one_place_to_keep_things_in() -> None:
    refused = process("dev", "--memory", "--database", "postgresql://localhost/x")
    assert refused.returncode == 2
    assert b"not both" in refused.stderr


@pytest.mark.skipif(not mongo.server_is_there(), reason="there is no MongoDB to test with")
def test_a_mongodb_will_do_and_a_kill_loses_nothing() -> None:
    with project() as folder, mongo.empty_database() as url:
        first = Dev(folder, "--database", url)
        assert first.started["database_url"] == url
        (run,) = first.runs()
        assert first.outputs(run["id"]) == {"greeting": "Hello, world!", "letters": 10}
        first.kill()
        with dev(folder, "--database", url) as second:
            (kept,) = second.runs()
            assert (kept["id"], kept["state"]) == (run["id"], "completed")
            assert second.outputs(second.submit("hello.SayHello", name="Ada"))["letters"] == 8
        assert second.process.returncode == 0
        assert not (folder / ".afl" / "postgres").exists()
