"""No file names a person's machine or a package registry: the repository must work anywhere."""

from __future__ import annotations

import re

import pytest

from tests.architecture.repository import relative, repository_files

# The words are put together from pieces, so that this file does not find itself.
_FOLDERS = ["ho" + "me", "Us" + "ers", "ro" + "ot", "wo" + "rk"]
_HOSTS = ["py" + r"pi\.org", "python" + r"hosted\.org", "npm" + r"js\.", "deb" + r"ian\.org"]
FORBIDDEN = re.compile(
    rf"(?<![\w.-])/(?:{'|'.join(_FOLDERS)})/\w|{'|'.join(_HOSTS)}",
)


def test_no_file_names_a_machine_or_a_registry() -> None:
    problems = []
    for path in repository_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if FORBIDDEN.search(line):
                problems.append(f"{relative(path)}:{number}: {line.strip()[:120]}")
    assert problems == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("see /" + "home/anna/notes", True),
        ("C = '/" + "Users/anna'", True),
        ("file:///" + "home/anna/x", True),
        ("--index-url https://" + "py" + "pi.org/simple", True),
        ("files." + "python" + "hosted.org", True),
        ("docs/" + "work/page.md and src/" + "home/x", False),
        ("https://example.org/" + "users/7", False),
        ("the work/rest balance", False),
    ],
)
def test_the_search_finds_what_it_should(line: str, found: bool) -> None:
    assert bool(FORBIDDEN.search(line)) is found
