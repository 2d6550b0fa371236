"""What drives a browser."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def node() -> str:
    """The Node.js of the machine, else the one that is installed beside Python.

    Raises:
        FileNotFoundError: there is none.
    """
    beside = Path(sys.executable).parent / "node"
    found = shutil.which("node") or (str(beside) if beside.exists() else None)
    if found is None:
        raise FileNotFoundError("there is no Node.js to drive a browser with")
    return found
