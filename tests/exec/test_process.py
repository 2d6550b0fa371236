"""Commands run to their end, whatever they write and however they behave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path
from time import monotonic, sleep
from uuid import uuid4

import pytest

from afl.exec.errors import CannotStart, KeeperLost
from afl.exec.model import Command, Limits, Outcome
from afl.exec.process import Children, WorkerEnds, run
from tests.exec.worlds import processes_with

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
#: How long something may take that happens at once, on a machine that has other things to do.
SOON_SECONDS = 60.0


class Lines:
    """A sink that keeps what it is given."""

    def __init__(self, wait_seconds: float = 0.0) -> None:
        self.lines: list[tuple[str, bytes, bool]] = []
        self.times: list[datetime] = []
        self._wait_seconds = wait_seconds

    def line(self, stream: str, data: bytes, *, partial: bool, time: datetime) -> None:
        sleep(self._wait_seconds)
        self.lines.append((stream, data, partial))
        self.times.append(time)

    def of(self, stream: str) -> list[bytes]:
        return [data for name, data, _ in self.lines if name == stream]


def sh(script: str, sink: Lines | None = None, **how: object) -> Outcome:
    return run(Command(("sh", "-c", script), env=ENV, **how), sink=sink)  # type: ignore[arg-type]


def python(code: str, sink: Lines | None = None, **how: object) -> Outcome:
    argv = (sys.executable, "-I", "-S", "-c", code)
    return run(Command(argv, env=ENV, **how), sink=sink)  # type: ignore[arg-type]


def until(condition: object, seconds: float = SOON_SECONDS) -> None:
    end = monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert monotonic() < end, "it did not happen"
        sleep(0.02)


def test_a_command_and_what_it_wrote() -> None:
    sink = Lines()
    outcome = sh("echo one; echo two >&2; printf three; exit 3", sink)
    assert (outcome.exit_code, outcome.signal) == (3, None)
    assert (outcome.stdout.text, outcome.stderr.text) == ("one\nthree", "two\n")
    assert (outcome.timed_out, outcome.stopped) == (False, False)
    assert outcome.duration_seconds > 0
    assert outcome.usage.max_rss_bytes > 0
    assert sink.of("stdout") == [b"one", b"three"]
    assert sink.of("stderr") == [b"two"]
    assert all(time.tzinfo is not None for time in sink.times)


def test_what_it_is_given(tmp_path: Path) -> None:
    outcome = run(
        Command(
            ("sh", "-c", 'pwd; echo "$A-$B"; cat'),
            env={**ENV, "A": "1", "B": "ü"},
            cwd=str(tmp_path),
            stdin=b"x" * 200_000,
        )
    )
    assert outcome.stdout.head.startswith(f"{tmp_path}\n1-ü\nxxx".encode())
    assert (
        sum(map(len, (outcome.stdout.head, outcome.stdout.tail))) + outcome.stdout.cut_bytes > 2e5
    )
    assert sh("cat").stdout.text == ""
    assert sh("true", stdin=b"x" * 500_000).exit_code == 0
    assert "SECRET" not in sh("env").stdout.text


def test_nothing_of_the_worker_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_WORKER", "x")
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        outcome = python("import os; print(sorted(os.listdir('/proc/self/fd')), dict(os.environ))")
    finally:
        os.close(read)
        os.close(write)
    # the last one is the folder that is listed
    assert outcome.stdout.text.startswith("['0', '1', '2', '3'] ")
    assert "SECRET" not in outcome.stdout.text
    ignored = python("import signal; print(signal.getsignal(signal.SIGTERM))")
    assert ignored.stdout.text == f"{signal.SIG_DFL}\n"


def test_ten_thousand_lines_of_errors_before_any_output() -> None:
    sink = Lines()
    outcome = python(
        "import sys\nfor n in range(10000): print('error', n, file=sys.stderr)\nprint('done')", sink
    )
    assert outcome.exit_code == 0
    assert outcome.stdout.text == "done\n"
    assert sink.of("stderr") == [f"error {n}".encode() for n in range(10_000)]
    assert outcome.stderr.text.endswith("error 9999\n")


def test_what_is_no_utf_8_and_has_no_newline() -> None:
    sink = Lines()
    outcome = python(r"import os; os.write(1, b'a\xff\xfe\0\nb\xc3')", sink)
    bad = "\N{REPLACEMENT CHARACTER}"
    assert outcome.stdout.text == f"a{bad}{bad}{bad}\nb{bad}"
    assert sink.of("stdout") == [b"a\xff\xfe\0", b"b\xc3"]


def test_long_lines_are_split_and_marked() -> None:
    sink = Lines()
    python("print('x' * 150_000); print('y')", sink)
    assert [(len(data), partial) for _, data, partial in sink.lines] == [
        (65536, True),
        (65536, True),
        (150_000 - 2 * 65536, False),
        (1, False),
    ]


MEASURE = """
import resource, sys
from afl.exec.model import Command
from afl.exec.process import run

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

run(Command((sys.executable, "-I", "-S", "-c", "pass")))
before = peak()
outcome = run(Command((sys.executable, "-I", "-S", "-c", sys.argv[1])))
captured = outcome.stderr
length = len(captured.head) + len(captured.tail) + captured.cut_bytes
print(outcome.exit_code, length, peak() - before)
"""


@pytest.mark.parametrize(
    "code",
    [
        "import os\nfor _ in range(1600): os.write(2, b'x' * 65536)",
        "import os\nfor _ in range(1600): os.write(2, (b'y' * 99 + b'\\n') * 655 + b'z' * 36)",
    ],
    ids=["one line", "many lines"],
)
def test_a_hundred_megabytes_of_errors_take_little_memory(code: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", MEASURE, code],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    exit_code, length, growth = map(int, told.stdout.split())
    assert exit_code == 0
    assert length == 1600 * 65536
    assert growth < 20 << 20


def test_a_slow_sink_slows_the_command_down_and_loses_nothing() -> None:
    sink = Lines(wait_seconds=0.002)
    outcome = sh("seq 1 300; seq 1 300 >&2", sink)
    assert outcome.exit_code == 0
    numbers = [str(n).encode() for n in range(1, 301)]
    assert sink.of("stdout") == sink.of("stderr") == numbers


def test_a_sink_that_fails_ends_the_command() -> None:
    class Broken:
        def line(self, stream: str, data: bytes, *, partial: bool, time: datetime) -> None:
            raise RuntimeError("no room for lines")

    marker = f"marker-{uuid4().hex}"
    command = Command(("sh", "-c", f"echo x; sleep 600; : {marker}"), env=ENV, grace_seconds=0.1)
    with pytest.raises(RuntimeError, match="no room"):
        run(command, sink=Broken())
    assert processes_with(marker) == []


# Ends


def stopped_at_first_line(script: str, grace_seconds: float) -> Outcome:
    """What becomes of a script that is asked to stop when it has written something."""
    stop = threading.Event()

    class StopAtFirst(Lines):
        def line(self, stream: str, data: bytes, *, partial: bool, time: datetime) -> None:
            stop.set()

    command = Command(("sh", "-c", script), ENV, grace_seconds=grace_seconds)
    return run(command, sink=StopAtFirst(), stop=stop)


def test_the_end_of_its_time() -> None:
    outcome = sh("sleep 600", timeout_seconds=0.3)
    assert (outcome.timed_out, outcome.stopped) == (True, False)
    assert (outcome.exit_code, outcome.signal) == (143, "SIGTERM")


def test_it_stops_when_it_is_asked_to() -> None:
    outcome = stopped_at_first_line("echo begun; sleep 600", SOON_SECONDS)
    assert (outcome.timed_out, outcome.stopped) == (False, True)
    assert outcome.signal == "SIGTERM"
    assert outcome.stdout.text == "begun\n"


def test_it_may_end_well_when_it_is_told_to() -> None:
    script = "trap 'echo bye; exit 7' TERM; echo begun; while :; do sleep 0.05; done"
    outcome = stopped_at_first_line(script, SOON_SECONDS)
    assert outcome.stopped
    assert (outcome.exit_code, outcome.stdout.text) == (7, "begun\nbye\n")


def test_one_that_ignores_sigterm_is_killed() -> None:
    marker = f"marker-{uuid4().hex}"
    script = f"trap '' TERM; echo begun; while :; do sleep 0.05; done; : {marker}"
    outcome = stopped_at_first_line(script, 0.3)
    assert (outcome.exit_code, outcome.signal) == (137, "SIGKILL")
    assert outcome.stdout.text == "begun\n"
    assert processes_with(marker) == []


def test_one_that_forks_and_lives_on_is_not_waited_for() -> None:
    marker = f"marker-{uuid4().hex}"
    script = f"sh -c 'sleep 600; : {marker}' & echo done"
    outcome = sh(script, linger_seconds=0.2)
    assert (outcome.exit_code, outcome.stdout.text) == (0, "done\n")
    assert outcome.duration_seconds < SOON_SECONDS
    assert processes_with(marker) == []


def test_what_is_written_in_time_by_one_that_lives_on_is_kept() -> None:
    outcome = sh("(sleep 0.3; echo late) & echo done", linger_seconds=SOON_SECONDS)
    assert outcome.stdout.text == "done\nlate\n"


def test_one_that_leaves_its_group_and_its_parents_is_found() -> None:
    marker = f"marker-{uuid4().hex}"
    script = f"(setsid sh -c 'sleep 600; : {marker}' > /dev/null 2>&1 &) ; echo done"
    assert sh(script).stdout.text == "done\n"
    assert processes_with(marker) == []


def test_all_commands_of_a_worker_end_at_once() -> None:
    children = Children()
    raised: list[BaseException] = []

    def one() -> None:
        try:
            run(Command(("sh", "-c", "trap '' TERM; sleep 600"), ENV), children=children)
        except WorkerEnds as error:
            raised.append(error)

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: len(children) == 3)
    assert children.end(SOON_SECONDS)
    for thread in threads:
        thread.join(SOON_SECONDS)
    assert len(raised) == 3
    with pytest.raises(WorkerEnds):
        run(Command(("sleep", "600"), ENV), children=children)


WORKER = """
import sys
from afl.exec.model import Command
from afl.exec.process import run
run(Command(("sh", "-c", {script!r}), env={{"PATH": "/usr/bin:/bin"}}))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_when_the_worker_is_killed_nothing_lives_on(number: signal.Signals) -> None:
    marker = f"marker-{uuid4().hex}"
    # one in the group, one out of it, one without a parent
    script = (
        f"trap '' TERM; sh -c 'sleep 600; : {marker}' & setsid sh -c 'sleep 600; : {marker}' & "
        f"(setsid sh -c 'sleep 600; : {marker}' &); sleep 600; : {marker}"
    )
    worker = subprocess.Popen([sys.executable, "-c", WORKER.format(script=script)])
    try:
        until(lambda: len(processes_with(f"sleep 600; : {marker}")) >= 4)
        worker.send_signal(number)
        worker.wait(SOON_SECONDS)
        until(lambda: processes_with(marker) == [])
    finally:
        worker.kill()
        worker.wait()


def test_when_the_keeper_is_killed_the_command_is_too() -> None:
    marker = f"marker-{uuid4().hex}"
    raised: list[BaseException] = []

    def one() -> None:
        script = f"sh -c 'sleep 600; : {marker}' & sleep 600; : {marker}"
        try:
            run(Command(("sh", "-c", script), ENV))
        except KeeperLost as error:
            raised.append(error)

    thread = threading.Thread(target=one)
    thread.start()
    until(lambda: len(processes_with(marker)) >= 2)
    keepers = {_parent(pid) for pid in processes_with(marker)} - set(processes_with(marker))
    for keeper in keepers:
        os.kill(keeper, signal.SIGKILL)
    thread.join(SOON_SECONDS)
    assert len(raised) == 1
    until(lambda: processes_with(marker) == [])


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


# What cannot be run, and limits


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (Command(("no-such-program",), ENV), "no program `no-such-program`"),
        (Command(("/etc/passwd",), ENV), "Permission denied"),
        (Command(("true",), ENV, cwd="/no/such/folder"), "/no/such/folder"),
        (Command(("true", "a\0b"), ENV), "NUL"),
        (Command((), ENV), "needs the name of a program"),
        (Command(("true", "x" * 3_000_000), ENV), "Argument list too long"),
    ],
)
def test_what_cannot_be_started(command: Command, message: str) -> None:
    with pytest.raises(CannotStart, match=message):
        run(command)


@pytest.mark.parametrize(
    ("limits", "code", "end"),
    [
        (Limits(cpu_seconds=1), "while True: pass", (152, "SIGXCPU")),
        (Limits(memory_bytes=200 << 20), "bytearray(400 << 20)", (1, None)),
        (
            Limits(file_bytes=1000),
            "import os; f = os.open('f', 66); [os.write(f, b'x' * 600) for _ in 'abc']",
            (1, None),
        ),
        (Limits(open_files=10), "[open('/dev/null') for _ in range(20)]", (1, None)),
    ],
    ids=["cpu", "memory", "file size", "open files"],
)
def test_limits(limits: Limits, code: str, end: tuple[int, str | None], tmp_path: Path) -> None:
    outcome = python(code, limits=limits, cwd=str(tmp_path), timeout_seconds=SOON_SECONDS)
    assert (outcome.exit_code, outcome.signal) == end, outcome.stderr.text


def test_no_descriptors_and_no_threads_are_left() -> None:
    sh("true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        sh("echo x", stdin=b"y")
        with pytest.raises(CannotStart):
            run(Command(("no-such-program",), ENV, answer_bytes=10, extra=b"x"))
    assert len(os.listdir("/proc/self/fd")) == before
    assert not [each for each in threading.enumerate() if each.name == "afl-pump"]
