"""A document to text: which groups break, where every line starts."""

from __future__ import annotations

from enum import IntEnum

from afl.lang.formatter.doc import (
    Comment,
    CommentPlace,
    Document,
    IfBroken,
    Instruction,
    Line,
    Mark,
    Open,
    Raw,
    Space,
    Text,
    TextBlock,
)

INDENT = 2
WIDTH = 100

#: A comment among code needs no blank behind it before these.
_CLOSERS = frozenset(",;)]}")
#: A comment among code needs no blank before it after these.
_OPENERS = ("(", "[", "#{")


def lay_out(document: Document) -> str:
    """The text of a document, with a line break at its end unless it is empty."""
    return _Layout(document.instructions).run()


class _Gap(IntEnum):
    """What separates the next text from the last one."""

    NONE = 0
    AFTER_COMMENT = 1
    SPACE = 2


class _Layout:
    def __init__(self, instructions: list[Instruction]) -> None:
        self.instructions = instructions
        self.out: list[str] = []
        self.indent = 0
        #: of the line that is being written
        self.line_indent = 0
        self.column = 0
        self.at_line_start = True
        self.gap = _Gap.NONE
        #: a comment has ended the line: nothing more can go on it
        self.line_ended = False
        self.blank_wanted = False
        #: further indentation of a line that a comment forces to start inside of a statement
        self.hang = 0
        #: whether each open group is broken
        self.modes: list[bool] = []

    def run(self) -> str:
        for index, instruction in enumerate(self.instructions):
            match instruction:
                case Text(text):
                    self._text(text)
                case Line():
                    self._line(instruction)
                case Space(joint):
                    self.gap = _Gap.SPACE
                    if joint:
                        self.hang = 0
                case Open():
                    self.modes.append(self._breaks(index, instruction))
                case Mark.CLOSE:
                    self.modes.pop()
                case Mark.INDENT:
                    self.indent += INDENT
                case Mark.DEDENT:
                    self.indent -= INDENT
                case IfBroken(text):
                    if self._broken():
                        self._text(text)
                case Comment():
                    self._comment(instruction)
                case TextBlock():
                    self._block(instruction)
                case Raw(text):
                    self._text(text)
                    if "\n" in text:
                        self.column = len(text) - text.rindex("\n") - 1
        if self.out:
            self.out.append("\n")
        return "".join(self.out)

    def _broken(self) -> bool:
        return not self.modes or self.modes[-1]

    def _breaks(self, index: int, group: Open) -> bool:
        return self._broken() and (group.broken or not self._fits(index))

    # Writing

    def _newline(self, indent: int, *, blank: bool) -> None:
        if self.out:
            self.out.append("\n\n" if blank else "\n")
        self.line_indent = self.column = indent
        self.at_line_start = True
        self.line_ended = False
        self.blank_wanted = False
        self.gap = _Gap.NONE

    def _line(self, line: Line) -> None:
        if self._broken():
            self._newline(self.indent, blank=line.blank)
            self.hang = 0
        elif line.flat:
            self.gap = _Gap.SPACE

    def _start(self, text: str) -> None:
        """Whatever must stand before a text."""
        if self.line_ended:
            self._newline(self.indent + self.hang, blank=self.blank_wanted and not self.hang)
        if self.at_line_start:
            self.out.append(" " * self.column)
        elif _needs_space(self.gap, text):
            self.out.append(" ")
            self.column += 1
        self.at_line_start = False
        self.gap = _Gap.NONE

    def _text(self, text: str) -> None:
        self._start(text)
        self.out.append(text)
        self.column += len(text)
        self.hang = INDENT

    def _block(self, block: TextBlock) -> None:
        self._text(block.opening)
        pad = " " * (self.line_indent + INDENT)
        lines = "".join(f"\n{pad}{line}" if line else "\n" for line in block.lines)
        self.out.append(f"{lines}\n{' ' * self.line_indent}{block.closing}")
        self.column = self.line_indent + len(block.closing)

    def _comment(self, comment: Comment) -> None:
        if comment.place is CommentPlace.OWN_LINE:
            if not self.at_line_start and not self.line_ended:
                self._newline(self.indent + self.hang, blank=False)
        elif comment.place is CommentPlace.LINE_END or not self._after_opener():
            self.gap = _Gap.SPACE
        self._start(comment.lines[0])
        start = self.column
        self.out.append("\n".join([comment.lines[0], *_moved(comment, start)]))
        self.column = start + len(comment.lines[0])
        if comment.place is CommentPlace.INLINE:
            self.gap = _Gap.AFTER_COMMENT
        else:
            self.line_ended = True
            self.blank_wanted = comment.blank_after

    def _after_opener(self) -> bool:
        return bool(self.out) and self.out[-1].endswith(_OPENERS)

    # Measuring

    def _fits(self, index: int) -> bool:
        """Whether the group that opens here fits, with what follows it up to a line break."""
        room = WIDTH - (self.indent + self.hang if self.line_ended else self.column)
        gap = _Gap.NONE if self.line_ended else self.gap
        # Whether a line is a line break in each group that is open, from the measured one on.
        breaks: list[bool] = []
        for position in range(index, len(self.instructions)):
            instruction = self.instructions[position]
            match instruction:
                case Open(yields, broken):
                    rest = bool(breaks) and breaks[0]
                    breaks.append(rest and (yields or broken))
                case Mark.CLOSE:
                    if len(breaks) > 1:
                        breaks.pop()
                    else:
                        # The measured group has ended; the ones around it are broken.
                        breaks = [True]
                case Line(flat):
                    if breaks[-1]:
                        return True
                    gap = _Gap.SPACE if flat else gap
                case Space():
                    gap = _Gap.SPACE
                case Comment(lines, place=place):
                    if place is not CommentPlace.INLINE:
                        return True
                    room -= 1 + len(lines[0])
                    gap = _Gap.AFTER_COMMENT
                case Text(text) | Raw(text) | TextBlock(opening=text) | IfBroken(text):
                    if isinstance(instruction, IfBroken) and not breaks[-1]:
                        continue
                    first, several, _ = text.partition("\n")
                    room -= len(first) + _needs_space(gap, first)
                    if room >= 0 and (several or isinstance(instruction, TextBlock)):
                        return True
                    gap = _Gap.NONE
            if room < 0:
                return False
        return True


def _needs_space(gap: _Gap, text: str) -> bool:
    return gap is _Gap.SPACE or (gap is _Gap.AFTER_COMMENT and text[:1] not in _CLOSERS)


def _moved(comment: Comment, start: int) -> list[str]:
    """The further lines of a comment whose first one now stands in column `start`."""
    if comment.starred:
        return [f"{' ' * (start + 1)}{line}" for line in comment.lines[1:]]
    moved = []
    for line in comment.lines[1:]:
        content = line.lstrip(" \t")
        width = len(line) - len(content) + start - comment.column
        moved.append(" " * width + content if content else "")
    return moved
