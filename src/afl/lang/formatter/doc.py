"""The document between tree and text: a flat list of instructions for the layout.

Groups are brackets in that list. A group is laid out on one line if it fits, and otherwise every
line of it becomes a line break. Whatever cannot stand inside a line, such as a `//` comment, breaks
all groups that are open where it is added. A list needs no recursion, however deep the groups are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto


@dataclass(frozen=True, slots=True)
class Text:
    """Text without a line break."""

    text: str


@dataclass(frozen=True, slots=True)
class Raw:
    """Text that is written exactly as it is, line breaks included."""

    text: str


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Lines between an opening and a closing sign, one step deeper than the line they start on."""

    opening: str
    lines: tuple[str, ...]
    closing: str


class CommentPlace(Enum):
    """How a comment stands among the code."""

    #: among the code of a line; it has one line
    INLINE = auto()
    #: at the end of a line, which ends with it
    LINE_END = auto()
    #: on a line of its own
    OWN_LINE = auto()


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment. Its further lines move with its first one, which stood in `column`.

    `starred` lines begin with `*` and are lined up below the opening; `blank_after` asks for an
    empty line behind a comment on its own line.
    """

    lines: tuple[str, ...]
    column: int
    place: CommentPlace
    starred: bool = False
    blank_after: bool = False


@dataclass(frozen=True, slots=True)
class Space:
    """A blank. If a comment forces a line break here, the next line hangs, unless this is a joint
    between two parts of equal rank, such as `} andThen`."""

    joint: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line break if the group is broken, and `flat` if it is not. `blank` adds an empty line."""

    flat: str
    blank: bool = False


@dataclass(frozen=True, slots=True)
class IfBroken:
    """Text that is there only if the group is broken."""

    text: str


@dataclass(slots=True)
class Open:
    """The start of a group. `yields` says: break this one before anything that stands before it."""

    yields: bool = False
    broken: bool = False


class Mark(Enum):
    """Instructions that carry nothing."""

    CLOSE = auto()
    INDENT = auto()
    DEDENT = auto()


Instruction = Text | Raw | TextBlock | Comment | Space | Line | IfBroken | Open | Mark


@dataclass(slots=True)
class Document:
    """Instructions in order, and the groups that are open at the end of them."""

    instructions: list[Instruction] = field(default_factory=list)
    _open: list[Open] = field(default_factory=list)

    def add(self, instruction: Text | Space | IfBroken) -> None:
        """Add what breaks no group."""
        self.instructions.append(instruction)

    def add_line(self, flat: str, *, hard: bool, blank: bool) -> None:
        """Add a line; a hard one is a line break in any case."""
        if hard:
            self._break()
        self.instructions.append(Line(flat, blank))

    def add_raw(self, text: str) -> None:
        """Add text that may have line breaks."""
        if "\n" in text:
            self._break()
        self.instructions.append(Raw(text))

    def add_block(self, block: TextBlock) -> None:
        """Add lines that are indented as a whole."""
        self._break()
        self.instructions.append(block)

    def add_comment(self, comment: Comment) -> None:
        """Add a comment; one that cannot stand inside a line breaks the open groups."""
        if comment.place is not CommentPlace.INLINE:
            self._break()
        self.instructions.append(comment)

    def open(self, *, yields: bool, broken: bool) -> None:
        """Start a group; a broken one cannot fit."""
        group = Open(yields)
        self._open.append(group)
        self.instructions.append(group)
        if broken:
            self._break()

    def close(self) -> None:
        """End the innermost group."""
        self._open.pop()
        self.instructions.append(Mark.CLOSE)

    def indent(self) -> None:
        """Indent the lines that start from here on."""
        self.instructions.append(Mark.INDENT)

    def dedent(self) -> None:
        """Undo one `indent`."""
        self.instructions.append(Mark.DEDENT)

    def _break(self) -> None:
        """Break every open group. The outer ones of a broken one are broken already."""
        for group in reversed(self._open):
            if group.broken:
                return
            group.broken = True
