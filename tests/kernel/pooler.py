"""A PgBouncer in transaction mode before a database: made in a folder, on a free port, and gone
afterwards. It refuses to run as the superuser of the machine, so it then runs as somebody else."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from tests.chaos.server import free_port

_STOP_SECONDS = 10
_CONFIG = """\
[databases]
* = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
# whoever comes is let in, as the user that the line above names
auth_type = any
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 200
# a server that was lost is replaced at once
server_login_retry = 0.1
log_connections = 0
log_disconnections = 0
log_stats = 0
"""


def find_pgbouncer() -> str | None:
    """The program; where Debian has it, the PATH of a plain user does not lead."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


class Pooler:
    """A PgBouncer before the server of one database, with so many connections to it."""

    def __init__(self, program: str, folder: Path, database: str, size: int) -> None:
        self._program = program
        self._config = folder / "pgbouncer.ini"
        self._port = free_port()
        self.url = make_conninfo(database, host="127.0.0.1", port=self._port)
        text = _CONFIG.format(server=_server(database), port=self._port, size=size)
        self._config.write_text(text, encoding="utf-8")
        self._account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if self._account is not None:
            os.chown(self._config, self._account.pw_uid, self._account.pw_gid)
        self._config.chmod(0o600)  # it may have a password in it
        self._process = self._start()

    def restart(self) -> None:
        """Ends without saying goodbye to anybody, and starts again on the same port."""
        self.close()
        self._process = self._start()

    def close(self) -> None:
        self._process.kill()
        self._process.wait(_STOP_SECONDS)
        assert self._process.stderr is not None
        self._process.stderr.close()

    def _start(self) -> subprocess.Popen[str]:
        account = self._account
        process = subprocess.Popen(
            [self._program, str(self._config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            user=None if account is None else account.pw_uid,
            group=None if account is None else account.pw_gid,
            extra_groups=None if account is None else [],
        )
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "process up" in line:
                return process
        process.wait(_STOP_SECONDS)
        raise RuntimeError(f"PgBouncer did not start: {''.join(said)}")


@contextmanager
def pooler(program: str, database: str, size: int) -> Iterator[Pooler]:
    with tempfile.TemporaryDirectory(prefix="afl-pooler-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the account of the pooler has to get through
        started = Pooler(program, folder, database, size)
        try:
            yield started
        finally:
            started.close()


def _server(database: str) -> str:
    """Where the database is, in the words of PgBouncer."""
    with psycopg.connect(database) as connection:
        info = connection.info
        place = {"host": info.host, "port": info.port, "user": info.user}
        if info.password:
            place["password"] = info.password
    return " ".join(f"{name}={value}" for name, value in place.items())
