"""Queues that others have built on PostgreSQL, doing the same cycle on the same server.

Each runs in a virtual environment that is made for it on demand, outside of the project's own
locks; the program inside is `bench/kernel_peer_*.py`. A process has producers, which keep a small
backlog, and a worker with a handler that does nothing; what counts is how many jobs end.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: What each peer needs; the newest that fits is taken.
PEERS: Mapping[str, tuple[str, ...]] = {
    "procrastinate": ("procrastinate>=3",),
    "pgqueuer": ("pgqueuer[asyncpg]>=0.25",),
}


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer in an environment of its own, on the database at this URL."""

    name: str
    python: Path
    url: str

    @classmethod
    def create(cls, name: str, folder: Path, url: str) -> Peer:
        """Installs it into a folder, and its tables into the database."""
        subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True)
        python = folder / name / "bin" / "python"
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS[name]], check=True)
        peer = cls(name, python, url)
        subprocess.run(peer._command("install"), check=True)
        return peer

    def tasks_per_second(self, clients: int, batch: int, warm_up: int, seconds: int) -> float:
        """One measurement with a process for each core, the clients shared out among them."""
        processes = min(clients, os.cpu_count() or 1)
        shares = str(clients // processes), str(batch), str(warm_up + 1), str(seconds)
        running = [
            subprocess.Popen(self._command(*shares), stdout=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        answers = [process.communicate()[0] for process in running]
        if any(process.returncode for process in running):
            raise SystemExit(f"{self.name} failed")
        return sum(int(answer) for answer in answers) / seconds

    def _command(self, *arguments: str) -> list[str]:
        program = Path(__file__).with_name(f"kernel_peer_{self.name}.py")
        return [str(self.python), str(program), self.url, *arguments]
