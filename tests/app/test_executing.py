"""The facets of `afl.exec` in flows: arguments to commands, ends to outcomes of steps."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from time import monotonic, sleep
from uuid import uuid4

import pytest

from afl import Client
from afl.app.executing import Executing, ExecWish, script_handler
from afl.app.services import connect
from afl.app.serving import AppWorker
from afl.bridges.processes import Processes
from afl.exec.errors import CannotExecute, SandboxMissing
from afl.exec.lines import LineSink
from afl.kernel.model import Json
from afl.runtime.calls import SCRIPT
from afl.runtime.errors import RunFailed
from afl.runtime.handler_table import HandlerTable, Invocation
from afl.runtime.worker import WorkerConfig
from tests.exec.worlds import processes_with, sandbox_or_skip

SOON = "60s"
FLOW = """
namespace jobs {
  workflow Run(
    argv: [String], env: {String: String}, cwd: String?, stdin: String?, timeout: Duration?,
    ok_codes: [Int], artifacts: [String], limits: afl.exec.Limits?, sandbox: Boolean,
  ) => (
    exit_code: Int, signal: String?, stdout: String, stderr: String, cut: Long,
    artifacts: [afl.exec.Artifact],
  ) andThen {
    c = afl.exec.Command(
      argv = $.argv, env = $.env, cwd = $.cwd, stdin = $.stdin, timeout = $.timeout,
      ok_codes = $.ok_codes, artifacts = $.artifacts, limits = $.limits, sandbox = $.sandbox,
    )
    yield Run(
      exit_code = c.exit_code, signal = c.signal, stdout = c.stdout, stderr = c.stderr,
      cut = c.stdout_cut + c.stderr_cut, artifacts = c.artifacts,
    )
  }

  workflow Tried(script: String, cwd: String) => (stdout: String, error: String?) andThen {
    s = afl.exec.Shell(script = $.script, cwd = $.cwd)
      with Retry(max_attempts = 3, delay = 1ms, on = ["afl.exec.ExitCode"])
    yield Tried(stdout = s.stdout, error = null)
  } catch { yield Tried(stdout = "", error = error.type) }

  workflow Limited(script: String) => (stdout: String) andThen {
    s = afl.exec.Shell(script = $.script) with Timeout(ms = 300)
    yield Limited(stdout = s.stdout)
  }

  workflow Compute(code: String, inputs: Json) => (result: Json, stdout: String) andThen {
    p = afl.exec.Python(code = $.code, inputs = $.inputs)
    yield Compute(result = p.result, stdout = p.stdout)
  }

  workflow Uv(script: String?, args: [String]) => (stdout: String) andThen {
    u = afl.exec.Uv(script = $.script, args = $.args)
    yield Uv(stdout = u.stdout)
  }

  workflow Many(ns: [Int]) => (out: [String]) andThen foreach n in $.ns {
    s = afl.exec.Shell(script = "echo $AGENTFLOW_STEP; sleep 0.1")
    yield Many(out = [s.stdout])
  }

  event facet Slug(title: String) => (slug: String) script {
    result["slug"] = params["title"].lower()
  }
  event facet Spy(path: String) => (text: String) script {
    result["text"] = open(params["path"]).read()
  }
  workflow Slugs(title: String) => (slug: String) andThen {
    s = Slug(title = $.title)
    yield Slugs(slug = s.slug)
  }
  workflow Spies(path: String) => (text: String) andThen {
    s = Spy(path = $.path)
    yield Spies(text = s.text)
  }
}
"""
DEFAULTS: Mapping[str, Json] = {
    "env": {},
    "cwd": None,
    "stdin": None,
    "timeout": None,
    "ok_codes": [0],
    "artifacts": [],
    "limits": None,
    "sandbox": False,
}


class World:
    """A worker that runs commands, and a client."""

    def __init__(self, client: Client, executing: Executing) -> None:
        self.client = client
        self.executing = executing

    def run(self, *argv: str, **how: Json) -> Mapping[str, Json]:
        inputs: dict[str, Json] = {**DEFAULTS, "argv": list(argv), **how}
        return self.do("jobs.Run", **inputs)

    def do(self, workflow: str, **inputs: Json) -> Mapping[str, Json]:
        return self.client.submit(workflow, inputs).result(SOON)

    def fails(self, workflow: str, type: str, message: str, **inputs: Json) -> None:
        with pytest.raises(RunFailed) as raised:
            self.do(workflow, **inputs)
        assert type in str(raised.value)
        assert message in str(raised.value)


@contextmanager
def serving(wish: ExecWish, *, scripts: bool = False) -> Iterator[World]:
    with connect(f"memory:{secrets.token_hex(4)}") as services:
        client = Client(services=services)
        client.deploy(FLOW)
        executing = Executing(wish)
        table = HandlerTable()
        executing.add_to(table)
        if scripts:
            table.register(SCRIPT, script_handler())
        config = WorkerConfig(
            bounded=tuple(executing.facets), bound=wish.slots, lease_seconds=10, renew_seconds=0.2
        )
        with AppWorker(services, table, config, schedules=False, commands=executing):
            yield World(client, executing)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    wish = ExecWish(slots=3, artifacts=str(tmp_path_factory.mktemp("kept")))
    with serving(wish) as there:
        yield there


def test_a_command_with_all_its_arguments(world: World, tmp_path: Path) -> None:
    found = world.run(
        "sh",
        "-c",
        'echo "$A"; cat; pwd; echo made > file.txt; exit 3',
        env={"A": "given"},
        cwd=str(tmp_path),
        stdin="in\n",
        timeout=60_000,
        ok_codes=[3],
        artifacts=["*.txt"],
        limits={"open_files": 50},
    )
    assert found["stdout"] == f"given\nin\n{tmp_path}\n"
    assert (found["exit_code"], found["signal"], found["cut"]) == (3, None, 0)
    sha256 = hashlib.sha256(b"made\n").hexdigest()
    assert found["artifacts"] == [{"path": "file.txt", "sha256": sha256, "size": 5}]


def test_what_a_command_knows_of_its_step_and_not_of_the_worker(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_WORKER", "x")
    text = str(world.run("env")["stdout"])
    names = dict(line.split("=", 1) for line in text.splitlines())
    assert names["AGENTFLOW_STEP"] == "0/c"
    assert names["AGENTFLOW_ATTEMPT"] == "1"
    assert names["AGENTFLOW_IDEMPOTENCY_KEY"] == f"{names['AGENTFLOW_RUN']}:0/c"
    assert "PATH" in names
    assert "SECRET" not in text


def test_an_exit_code_fails_the_step_with_the_last_errors(world: World) -> None:
    argv: Json = ["sh", "-c", "echo first >&2; echo last words >&2; exit 4"]
    inputs = {**DEFAULTS, "argv": argv}
    world.fails("jobs.Run", "afl.exec.ExitCode", "`sh` ended with exit code 4", **inputs)
    world.fails("jobs.Run", "afl.exec.ExitCode", "last words", **inputs)
    inputs["argv"] = ["sh", "-c", "kill -9 $$"]
    world.fails("jobs.Run", "afl.exec.ExitCode", "by SIGKILL (exit code 137)", **inputs)


def test_a_timeout_has_a_type_of_its_own(world: World) -> None:
    inputs: dict[str, Json] = {**DEFAULTS, "argv": ["sleep", "600"], "timeout": 300}
    world.fails("jobs.Run", "afl.exec.Timeout", "`sleep` was ended by its timeout", **inputs)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"argv": ["no-such-program"]}, "no program `no-such-program`"),
        ({"argv": []}, "`argv` is empty"),
        ({"argv": ["true"], "cwd": "/no/such"}, "/no/such"),
        ({"argv": ["true"], "artifacts": ["../x"]}, "must be relative"),
    ],
)
def test_what_cannot_be_run(world: World, how: dict[str, Json], message: str) -> None:
    world.fails("jobs.Run", "afl.exec.BadCommand", message, **{**DEFAULTS, **how})


def test_a_failure_is_tried_again_as_the_policy_says(world: World, tmp_path: Path) -> None:
    script = 'echo x >> tries; test "$(wc -l < tries)" -ge 3 && echo "on $AGENTFLOW_ATTEMPT"'
    found = world.do("jobs.Tried", script=script, cwd=str(tmp_path))
    assert found == {"stdout": "on 3\n", "error": None}
    found = world.do("jobs.Tried", script="exit 1", cwd=str(tmp_path))
    assert found["error"] == "afl.exec.ExitCode"


def test_the_policy_for_time_stops_the_command(world: World) -> None:
    marker = f"marker-{uuid4().hex}"
    world.fails("jobs.Limited", "Timeout", "took longer", script=f"sleep 600; : {marker}")
    until(lambda: processes_with(marker) == [])


def test_a_run_that_is_canceled_stops_its_command(world: World) -> None:
    marker = f"marker-{uuid4().hex}"
    inputs: dict[str, Json] = {**DEFAULTS, "argv": ["sh", "-c", f"sleep 600; : {marker}"]}
    run = world.client.submit("jobs.Run", inputs)
    until(lambda: processes_with(marker) != [])
    run.cancel()
    until(lambda: processes_with(marker) == [])
    assert run.wait(SOON) == "canceled"


def test_no_more_run_at_once_than_there_are_slots(world: World) -> None:
    most = 0
    done = threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.is_set():
            most = max(most, len(world.executing.children))
            sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        out = world.do("jobs.Many", ns=list(range(8)))["out"]
    finally:
        done.set()
        watcher.join()
    assert isinstance(out, list)
    assert len(set(map(str, out))) == 8
    assert 1 <= most <= 3


def test_python_code_runs_in_the_sandbox(world: World, tmp_path: Path) -> None:
    sandbox_or_skip()
    secret = tmp_path / "secret"
    secret.write_text("x", encoding="utf-8")
    found = world.do("jobs.Compute", code="print('seen'); result = [inputs, 1]", inputs={"a": None})
    assert found == {"result": [{"a": None}, 1], "stdout": "seen\n"}
    code = f"open({str(secret)!r})"
    world.fails("jobs.Compute", "afl.exec.ExitCode", "FileNotFoundError", code=code, inputs=None)
    code = "import os; os.write(3, b'x'); os._exit(0)"
    world.fails("jobs.Compute", "afl.exec.BadCommand", "not JSON", code=code, inputs=None)


def test_commands_in_the_sandbox(world: World, tmp_path: Path) -> None:
    sandbox_or_skip()
    assert world.run("id", "-u", sandbox=True)["stdout"] == "65534\n"
    wrong: list[dict[str, Json]] = [{"cwd": "/tmp"}, {"artifacts": ["*"]}]
    for how in wrong:
        inputs: dict[str, Json] = {**DEFAULTS, "argv": ["ls"], "sandbox": True, **how}
        world.fails("jobs.Run", "afl.exec.BadCommand", "sees no folder of this machine", **inputs)


def test_uv(world: World, tmp_path: Path) -> None:
    world.fails("jobs.Uv", "afl.exec.BadCommand", "needs a `script`", script=None, args=[])
    if shutil.which("uv") is None:
        pytest.skip("there is no uv")
    script = tmp_path / "hello.py"
    script.write_text("import sys; print('hello', *sys.argv[1:])", encoding="utf-8")
    found = world.do("jobs.Uv", script=str(script), args=["you"])
    assert found["stdout"] == "hello you\n"


def test_without_uv_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with serving(ExecWish()) as world:
        world.fails("jobs.Uv", "afl.exec.BadCommand", "no `uv` on the PATH", script="x.py", args=[])
        # and there is no bubblewrap either
        assert "afl.exec.Python" not in world.executing.facets
        assert world.executing.problem is not None
        inputs: dict[str, Json] = {**DEFAULTS, "argv": ["ls"], "sandbox": True}
        world.fails("jobs.Run", "afl.exec.NoSandbox", "bubblewrap", **inputs)
        inputs = {**DEFAULTS, "argv": ["ls"], "artifacts": ["*"]}
        world.fails("jobs.Run", "afl.exec.BadCommand", "--artifacts DIR", **inputs)
    with pytest.raises(SandboxMissing):
        script_handler()


def test_scripts_in_the_sandbox(tmp_path: Path) -> None:
    sandbox_or_skip()
    secret = tmp_path / "secret"
    secret.write_text("x", encoding="utf-8")
    with serving(ExecWish(), scripts=True) as world:
        assert world.do("jobs.Slugs", title="ABC") == {"slug": "abc"}
        world.fails("jobs.Spies", "ScriptFailed", "FileNotFoundError", path=str(secret))


def test_commands_get_what_they_are_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CannotExecute, match="PROMISED"):
        Executing(ExecWish(env=("PROMISED",)))
    monkeypatch.setenv("PROMISED", "kept")
    with serving(ExecWish(env=("PROMISED",))) as world:
        assert "PROMISED=kept" in str(world.run("env")["stdout"])


def test_lines_go_to_the_sink_of_the_attempt() -> None:
    taken: list[tuple[str, str, bytes]] = []

    class Sink:
        def __init__(self, step: str) -> None:
            self._step = step

        def line(self, stream: str, data: bytes, *, partial: bool, time: datetime) -> None:
            taken.append((self._step, stream, data))

    @contextmanager
    def sinks(invocation: Invocation) -> Iterator[LineSink]:
        given = invocation.task.input
        assert isinstance(given, dict)
        yield Sink(str(given["step"]))
        taken.append((str(given["step"]), "end", b""))

    processes = Processes({"PATH": "/usr/bin:/bin"}, 1, "none", sinks=sinks)
    with connect(f"memory:{secrets.token_hex(4)}") as services:
        client = Client(services=services)
        client.deploy(FLOW)
        table = HandlerTable()
        for name, function in processes.handlers().items():
            table.register(name, function)
        with AppWorker(services, table, WorkerConfig(), schedules=False):
            client.submit("jobs.Tried", {"script": "echo a; echo b >&2", "cwd": "/"}).result(SOON)
    assert sorted(taken[:2]) == [("0/s", "stderr", b"b"), ("0/s", "stdout", b"a")]
    assert taken[2:] == [("0/s", "end", b"")]


def until(condition: object) -> None:
    end = monotonic() + 60
    while not condition():  # type: ignore[operator]
        assert monotonic() < end, "it did not happen"
        sleep(0.02)
