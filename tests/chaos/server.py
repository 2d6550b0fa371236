"""A PostgreSQL of one's own: made in a folder, on a free port, and gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from pathlib import Path

_SETTINGS = {
    "listen_addresses": "'127.0.0.1'",
    "unix_socket_directories": "''",
    "max_connections": "80",
    "shared_buffers": "'128MB'",
    # a crash of the server loses nothing that was acknowledged, and that is what is judged
    "fsync": "on",
    "synchronous_commit": "on",
}


def find_binaries() -> Path | None:
    """Where `initdb` and `pg_ctl` are; None if there is no PostgreSQL server on this machine."""
    on_path = shutil.which("pg_ctl")
    found = [Path(on_path).resolve()] if on_path else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), reverse=True)
    for program in found:
        if (program.parent / "initdb").exists():
            return program.parent
    return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class PrivatePostgres:
    """A server in a folder. It can be crashed and comes back."""

    def __init__(self, binaries: Path, folder: Path, address: str | None = None) -> None:
        """`address` is one of this machine's under which other hosts reach it."""
        self._binaries = binaries
        self._data = folder / "data"
        self._log = folder / "postgres.log"
        self._port = free_port()
        # the server refuses to run as the superuser of the machine
        self._account = _unprivileged() if os.geteuid() == 0 else None
        folder.mkdir(mode=0o755)
        if self._account is not None:
            os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        self._run("initdb", "-D", str(self._data), "-U", "afl", "--auth=trust", "--no-sync")
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as config:
            config.writelines(f"{name} = {value}\n" for name, value in _SETTINGS.items())
            config.write(f"port = {self._port}\n")
            if address is not None:
                config.write(f"listen_addresses = '127.0.0.1,{address}'\n")
        if address is not None:
            with (self._data / "pg_hba.conf").open("a", encoding="utf-8") as allowed:
                allowed.write(f"host all all {address}/24 trust\n")
        self._ctl("start")

    @property
    def url(self) -> str:
        return self.url_at("127.0.0.1")

    def url_at(self, address: str) -> str:
        return f"postgresql://afl@{address}:{self._port}/postgres"

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def crash(self) -> None:
        """End without saying goodbye to anybody, and start again."""
        self._ctl("restart", "-m", "immediate")

    def stop(self) -> None:
        """Be away, until `start`."""
        self._ctl("stop", "-m", "immediate")

    def start(self) -> None:
        self._ctl("start")

    def close(self) -> None:
        self._ctl("stop", "-m", "immediate")

    def _ctl(self, *arguments: str) -> None:
        place = ("-D", str(self._data), "-l", str(self._log))
        self._run("pg_ctl", *arguments, "-w", "-t", "60", "-s", *place)

    def _run(self, program: str, *arguments: str) -> None:
        account = self._account
        done = subprocess.run(
            [str(self._binaries / program), *arguments],
            check=False,
            # no pipes: the server inherits them and would keep them open
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._data.parent,
            user=None if account is None else account.pw_uid,
            group=None if account is None else account.pw_gid,
            extra_groups=None if account is None else [],
            start_new_session=True,
        )
        if done.returncode != 0:
            log = self.log[-2000:] if self._log.exists() else "no log"
            raise RuntimeError(f"{program} {arguments[0]} failed ({done.returncode}): {log}")


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("this machine has neither the account `postgres` nor `nobody`")
