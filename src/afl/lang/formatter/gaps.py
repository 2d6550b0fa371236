"""Which tokens are written, and how the comments between two of them stand.

The gap before a token holds its comments in order: those that end the line of the token before,
those on lines of their own, and those that lead the token on its line. A comment stays in its gap:
that keeps the order, and makes formatting twice the same as once. The exceptions are a comma, which
goes before a comment that ends its line, and the signs that are left out, whose gaps join.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from afl.lang.tokens import EOF, SIGNS, Comment, TokenStream

_DOCUMENTED = frozenset(
    {"facet", "event", "workflow", "implicit", "schema", "enum", "schedule", "namespace"}
)
_BRACKET_ENDS = frozenset({")", "]", "}"})
#: A comment never leads these: it belongs to what stands before them.
_NOT_LED = frozenset(SIGNS) - {"(", "[", "{", "#{", "$"} | {EOF}


@dataclass(frozen=True, slots=True)
class Gap:
    """The comments before a token."""

    trailing: tuple[Comment, ...] = ()
    own_line: tuple[Comment, ...] = ()
    leading: tuple[Comment, ...] = ()


_NO_COMMENTS = Gap()


@dataclass(frozen=True, slots=True)
class Written:
    """A token that is written, by its index in the stream, and the gap before it."""

    index: int
    gap: Gap


@dataclass(slots=True)
class _Piece:
    """A comment on its way into a gap."""

    comment: Comment
    #: it shares no line with what stands before it
    new_line: bool
    #: it shares a line with what is written next, and nothing but blanks stands between
    bound: bool


def written_tokens(stream: TokenStream) -> list[Written]:
    """The tokens that are written, the end of the file included."""
    return list(_Reader(stream).read())


class _Reader:
    def __init__(self, stream: TokenStream) -> None:
        self.stream = stream
        self.text = stream.source.text
        self.comments = iter(stream.comments)
        self.next_comment = next(self.comments, None)
        self.documented = {
            comment.token for comment in stream.comments if comment.is_doc(self.text)
        }
        #: comments since the last token that is written, or moved behind it
        self.pieces: list[_Piece] = []

    def read(self) -> Iterator[Written]:
        for index, kind in enumerate(self.stream.kinds):
            self._read_comments(index)
            if self._is_left_out(index):
                if self.pieces:
                    self.pieces[-1].bound = False
                continue
            pieces, self.pieces = self.pieces, []
            if kind == ",":
                pieces, self.pieces = self._split_at_comma(pieces)
            yield Written(index, self._gap(index, pieces) if pieces else _NO_COMMENTS)

    def _read_comments(self, index: int) -> None:
        """Take the comments before a token."""
        end = self.stream.ends[index - 1] if index else -1
        while self.next_comment is not None and self.next_comment.token <= index:
            comment = self.next_comment
            if self.pieces:
                new_line = self._close_last(comment.start)
            else:
                new_line = end < 0 or self.text.find("\n", end, comment.start) >= 0
            # A comment of several lines shares none of them.
            several = self.text.find("\n", comment.start, comment.end) >= 0
            self.pieces.append(_Piece(comment, new_line or several, bound=not several))
            self.next_comment = next(self.comments, None)
        if self.pieces:
            self._close_last(self.stream.starts[index])

    def _close_last(self, start: int) -> bool:
        """The last comment ends before a place; answers whether that is on another line."""
        last = self.pieces[-1]
        new_line = self.text.find("\n", last.comment.end, start) >= 0
        last.bound = last.bound and not new_line
        return new_line

    def _is_left_out(self, index: int) -> bool:
        kinds = self.stream.kinds
        kind = kinds[index]
        if kind == ";":
            return not self._guards_documentation(index)
        if kind == ",":
            return kinds[index + 1] in _BRACKET_ENDS
        # `T? ?` is `T?`, and `??` would be another sign
        return kind == "?" and kinds[index - 1] == "?"

    def _guards_documentation(self, index: int) -> bool:
        """Whether a declaration would get a doc comment that is not its own without this `;`."""
        return (
            self.stream.kinds[index + 1] in _DOCUMENTED
            and index + 1 not in self.documented
            and any(piece.comment.is_doc(self.text) for piece in self.pieces)
        )

    def _split_at_comma(self, pieces: list[_Piece]) -> tuple[list[_Piece], list[_Piece]]:
        """The comments that stay before a comma, and those that go behind it."""
        for position, piece in enumerate(pieces):
            if piece.new_line or is_line_comment(self.text, piece.comment):
                return pieces[:position], pieces[position:]
        return pieces, []

    def _gap(self, index: int, pieces: list[_Piece]) -> Gap:
        kinds = self.stream.kinds
        first_leading = len(pieces)
        if kinds[index] not in _NOT_LED:
            while first_leading and pieces[first_leading - 1].bound:
                first_leading -= 1
        last_trailing = 0
        while last_trailing < first_leading and not pieces[last_trailing].new_line:
            last_trailing += 1
        if kinds[index] in _DOCUMENTED and (index == 0 or kinds[index - 1] != "event"):
            first_doc = self._first_doc(pieces)
            last_trailing = min(last_trailing, first_doc)
            first_leading = len(pieces) if first_doc < len(pieces) else first_leading
        comments = tuple(piece.comment for piece in pieces)
        return Gap(
            comments[:last_trailing],
            comments[last_trailing:first_leading],
            comments[first_leading:],
        )

    def _first_doc(self, pieces: list[_Piece]) -> int:
        for position, piece in enumerate(pieces):
            if piece.comment.is_doc(self.text):
                return position
        return len(pieces)


def is_line_comment(text: str, comment: Comment) -> bool:
    """Whether a comment is one that ends with its line."""
    return text.startswith("//", comment.start)
