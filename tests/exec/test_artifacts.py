"""Artifacts: found by patterns, kept by hash, and never what a link leads to."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from afl.exec.artifacts import Artifact, Artifacts
from afl.exec.errors import BadArtifact


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    for name in ("a.txt", "b.csv", "out/c.txt", "out/deep/d.txt", "out/.hidden"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path / "kept")


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["*.txt"], ["a.txt"]),
        (["a.txt", "*.txt", "b.csv"], ["a.txt", "b.csv"]),
        (["out/*.txt"], ["out/c.txt"]),
        (["**/*.txt"], ["a.txt", "out/c.txt", "out/deep/d.txt"]),
        (["out/**"], ["out/.hidden", "out/c.txt", "out/deep/d.txt"]),
        (["out/**/d.txt"], ["out/deep/d.txt"]),
        (["out"], []),
        (["no/such/*"], []),
        (["a.txt/x"], []),
    ],
)
def test_patterns(work: Path, kept: Artifacts, patterns: list[str], names: list[str]) -> None:
    assert [each.path for each in kept.keep(str(work), patterns)] == names


def test_a_file_is_kept_by_its_hash(work: Path, kept: Artifacts) -> None:
    (found,) = kept.keep(str(work), ["out/c.txt"])
    sha256 = hashlib.sha256(b"out/c.txt").hexdigest()
    assert found == Artifact("out/c.txt", sha256, 9)
    assert kept.path(sha256).read_bytes() == b"out/c.txt"
    assert kept.keep(str(work), ["out/c.txt"]) == [found]
    files = [path for path in kept.path(sha256).parent.parent.rglob("*") if path.is_file()]
    assert files == [kept.path(sha256)]


@pytest.mark.parametrize("pattern", ["/etc/passwd", "../x", "a/../../x", "", "a\0b"])
def test_patterns_that_lead_out_are_refused(work: Path, kept: Artifacts, pattern: str) -> None:
    with pytest.raises(BadArtifact, match="relative"):
        kept.keep(str(work), [pattern])


def test_no_link_is_followed(work: Path, kept: Artifacts, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    (work / "link.txt").symlink_to(secret)
    (work / "folder").symlink_to(tmp_path)
    (work / "again").symlink_to(work)
    os.mkfifo(work / "pipe.txt")
    names = [each.path for each in kept.keep(str(work), ["*", "**/*.txt", "folder/*", "again/*"])]
    assert names == ["a.txt", "b.csv", "out/c.txt", "out/deep/d.txt"]


def test_too_many_are_refused(work: Path, kept: Artifacts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afl.exec.artifacts.MOST_FILES", 2)
    with pytest.raises(BadArtifact, match="the most is 2"):
        kept.keep(str(work), ["**"])
