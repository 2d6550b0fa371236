"""Another host: a network namespace with one link to this one, which can be cut."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess


def can_make_hosts() -> bool:
    """Whether this machine lets us make network namespaces."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"afl-{secrets.token_hex(3)}"
    if subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True).returncode:
        return False
    _ip("netns", "del", name)
    return True


class Host:
    """A host of one's own. This one has the address `here`, as seen from there."""

    def __init__(self) -> None:
        tag = secrets.token_hex(3)
        self.name = f"afl-{tag}"
        self._link, there = f"afla{tag}", f"aflb{tag}"
        net = f"10.231.{secrets.randbelow(250) + 1}"
        self.here = f"{net}.1"
        _ip("netns", "add", self.name)
        _ip("link", "add", self._link, "type", "veth", "peer", "name", there, "netns", self.name)
        _ip("addr", "add", f"{self.here}/24", "dev", self._link)
        _ip("link", "set", self._link, "up")
        _ip("-n", self.name, "addr", "add", f"{net}.2/24", "dev", there)
        _ip("-n", self.name, "link", "set", there, "up")
        _ip("-n", self.name, "link", "set", "lo", "up")

    def command(self, *words: str) -> list[str]:
        """What runs these words there."""
        return ["ip", "netns", "exec", self.name, *words]

    def cut(self) -> None:
        """Not a word gets through, and nobody is told."""
        _ip("link", "set", self._link, "down")

    def mend(self) -> None:
        _ip("link", "set", self._link, "up")

    def close(self) -> None:
        _ip("netns", "del", self.name)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
