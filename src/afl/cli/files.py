"""Writing files so that a reader sees the old text or the new one, never half of it."""

from __future__ import annotations

import os
import shutil
import tempfile

from afl.cli.errors import cannot


def write_text(path: str, text: str) -> None:
    """Replace a file, or make it. A link stays a link, and a file keeps its permissions."""
    target = os.path.realpath(path)
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            # a device or a pipe, such as /dev/stdout, cannot be replaced
            with open(target, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            return
        _replace(target, text)
    except OSError as error:
        raise cannot("write", path, error) from error


def _replace(target: str, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".afl-")
    try:
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        else:
            os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    """The permissions that new files go without; reading it means setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
