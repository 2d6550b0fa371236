"""The page of a diagnostic code: what is wrong, an example, its message, the remedy, the reason.

A page has exactly this form; tests run its examples and compare its message:

    # AFL0102: missing comma

    A paragraph that says what is wrong.

    ## Wrong
    one or more blocks of `afl`

    ## Message
    one block of `text`: what the check of the wrong example prints

    ## Right
    one or more blocks of `afl`

    ## Why
    one or more paragraphs

Each block of `afl` is a program of its own, in a file `flow.afl`; one of `yaml` is one in a file
`pipeline.yaml`. Blocks that start with a line `// file: NAME`, in YAML `# file: NAME`, and follow
one another are the files of one program; a name that comes again starts the next program. Where no
example can be shown, a block `text no-test` describes it instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

FILE_NAME = "flow.afl"
#: The languages of examples, and the file that one without a name is.
FILE_NAMES = {"afl": FILE_NAME, "yaml": "pipeline.yaml"}
SECTIONS = ("Wrong", "Message", "Right", "Why")

_TITLE = re.compile(r"# (AFL[0-9]{4}): (.+)")
_FENCE = re.compile(r"```(.*)")
_FILE = re.compile(r"(?://|#) file: (\S+)")

#: The files of one program: name and text of each.
Program = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says, in its parts."""

    code: str
    title: str
    summary: str
    wrong: list[Program]
    message: str
    right: list[Program]
    why: str


@dataclass(frozen=True, slots=True)
class _Block:
    info: str
    text: str


def parse_page(text: str) -> Page:
    """The parts of a page. A page of another form is a `ValueError` that says what is missing."""
    first, _, rest = text.partition("\n")
    title = _TITLE.fullmatch(first)
    if title is None:
        raise ValueError("a page starts with `# AFLnnnn: title`")
    code = title[1]
    parts = _sections(rest.split("\n"))
    if tuple(parts)[1:] != SECTIONS:
        raise ValueError(f"{code}: the sections of a page are {', '.join(SECTIONS)}, in this order")
    message = list(_blocks(parts["Message"]))
    if [block.info for block in message] != ["text"]:
        raise ValueError(f"{code}: the section Message is one block of `text`")
    page = Page(
        code,
        title[2],
        _prose(parts[""]),
        _programs(parts["Wrong"]),
        message[0].text.removesuffix("\n"),
        _programs(parts["Right"]),
        _prose(parts["Why"]),
    )
    if not page.summary or not page.why or not page.right:
        raise ValueError(f"{code}: a page needs a summary, a right example and a reason")
    return page


def _sections(lines: list[str]) -> dict[str, list[str]]:
    """The lines under each heading; those before the first one stand under no name."""
    sections: dict[str, list[str]] = {"": []}
    current = sections[""]
    in_block = False
    for line in lines:
        in_block ^= bool(_FENCE.fullmatch(line))
        if line.startswith("## ") and not in_block:
            if line[3:] in sections:
                raise ValueError(f"the section {line[3:]} comes twice")
            current = sections.setdefault(line[3:], [])
        else:
            current.append(line)
    if in_block:
        raise ValueError("a block has no end")
    return sections


def _blocks(lines: list[str]) -> Iterator[_Block]:
    info: str | None = None
    inside: list[str] = []
    for line in lines:
        fence = _FENCE.fullmatch(line)
        if fence is None:
            inside.append(line)
        elif info is None:
            info, inside = fence[1], []
        else:
            yield _Block(info, "".join(f"{each}\n" for each in inside))
            info = None


def _programs(lines: list[str]) -> list[Program]:
    programs: list[Program] = []
    open_names: set[str] = set()
    for block in _blocks(lines):
        if block.info == "text no-test":
            continue
        if block.info not in FILE_NAMES:
            raise ValueError(f"an example is a block of `afl` or `yaml`, not of `{block.info}`")
        named = _FILE.match(block.text)
        name = named[1] if named else FILE_NAMES[block.info]
        if named and open_names and name not in open_names:
            programs[-1].append((name, block.text))
            open_names.add(name)
        else:
            programs.append([(name, block.text)])
            open_names = {name} if named else set()
    return programs


def _prose(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n")
