"""What the guards look at: the files of this repository and the contracts in its pyproject.toml."""

from __future__ import annotations

import ast
import subprocess
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "afl"


@cache
def repository_files() -> tuple[Path, ...]:
    """Every file that git knows or would add, as absolute paths."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = (ROOT / name for name in listing.stdout.split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file()))


def python_files(*folders: str) -> list[Path]:
    """The Python files under these top-level folders."""
    return [
        path
        for path in repository_files()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders
    ]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=relative(path))


def pure_packages() -> list[str]:
    """The packages that the purity contract names, such as `afl.ir`."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    pure = next(contract for contract in contracts if contract["name"].startswith("Pure modules"))
    return [str(name) for name in pure["source_modules"]]
