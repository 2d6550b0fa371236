"""The one way from tokens to the document: every token goes through it once, in order, with the
comments that stand around it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from afl.lang.formatter.comments import read_comment
from afl.lang.formatter.doc import CommentPlace, Document, IfBroken, Space, Text, TextBlock
from afl.lang.formatter.gaps import is_line_comment, written_tokens
from afl.lang.parser.literals import dedent
from afl.lang.tokens import EOF, SCRIPT, TEXT, Comment, TokenStream

_BLANKS = " \t\r\n\f"


class TokenWriter:
    """Writes tokens into a document.

    The comments that end a token's line wait until something else is written. Until then groups may
    close, so that a comment behind a group does not break it.
    """

    def __init__(self, stream: TokenStream) -> None:
        self.document = Document()
        self._stream = stream
        self._text = stream.source.text
        self._tokens = written_tokens(stream)
        self._comment_starts = [comment.start for comment in stream.comments]
        self._position = 0
        self._waiting: tuple[Comment, ...] = ()
        self._own_line: tuple[Comment, ...] = ()
        self._wait()

    # Looking

    def at(self, kind: str) -> bool:
        """Whether the next token is of a kind."""
        return self._kind() == kind

    @property
    def comment_waits(self) -> bool:
        """Whether a comment behind the last token is still to be written."""
        return bool(self._waiting)

    @property
    def comments_before(self) -> bool:
        """Whether comments on their own lines stand before the next token."""
        return bool(self._own_line)

    def has_comments(self, start: int, end: int) -> bool:
        """Whether a comment stands between two places of the source."""
        position = bisect_left(self._comment_starts, start)
        return position < len(self._comment_starts) and self._comment_starts[position] < end

    def is_one_line(self, start: int, end: int) -> bool:
        """Whether the source has no line break between two places."""
        return self._text.find("\n", start, end) < 0

    def _kind(self) -> str:
        return self._stream.kinds[self._tokens[self._position].index]

    # Tokens

    def token(self, expected: str = "") -> None:
        """Write the next token, which is of the expected kind if one is given."""
        written = self._tokens[self._position]
        kind = self._kind()
        if kind == EOF or (expected and kind != expected):
            raise AssertionError(f"expected {expected or 'a token'}, found {kind}")
        self._flush()
        self.own_line_comments()
        for comment in written.gap.leading:
            self._add_comment(comment, CommentPlace.INLINE)
            self.document.add(Space())
        text = self._stream.text(written.index)
        if kind == TEXT:
            self._add_text_block(text)
        elif kind == SCRIPT:
            self._add_script(text)
        else:
            self.document.add(Text(text))
        self._position += 1
        self._wait()

    def joined(self, count: int) -> None:
        """Write some tokens without a blank between them."""
        for _ in range(count):
            self.token()

    def finish(self) -> None:
        """All tokens have been written: the comments at the end of the file are left."""
        if self._kind() != EOF:
            raise AssertionError(f"not written: {self._kind()}")
        self._flush()
        if self.comments_before:
            self.line(hard=True, keep_blank=True)
            self.own_line_comments()

    def own_line_comments(self) -> None:
        """Write the comments that stand on their own lines before the next token."""
        own_line, self._own_line = self._own_line, ()
        starts = [comment.start for comment in own_line]
        starts.append(self._next_start())
        for comment, following in zip(own_line, starts[1:], strict=True):
            blank = self._blank_before(following)
            self._add_comment(comment, CommentPlace.OWN_LINE, blank_after=blank)

    # Layout

    def space(self, *, joint: bool = False) -> None:
        """A blank; a joint goes between parts of equal rank."""
        self._flush()
        self.document.add(Space(joint))

    def line(
        self,
        flat: str = "",
        *,
        hard: bool = False,
        blank: bool = False,
        keep_blank: bool = False,
    ) -> None:
        """A possible line break. A `blank` line goes with it, or is kept if there is one."""
        self._flush()
        blank = blank or (keep_blank and self._blank_before(self._next_start()))
        self.document.add_line(flat, hard=hard, blank=blank)

    def optional_comma(self) -> None:
        """The comma behind the last element of a list: it is there if the list is broken."""
        waiting = self._waiting
        ends_line = [is_line_comment(self._text, comment) for comment in waiting]
        first = ends_line.index(True) if True in ends_line else len(waiting)
        self._waiting = waiting[:first]
        self._flush()
        self.document.add(IfBroken(","))
        self._waiting = waiting[first:]

    @contextmanager
    def group(self, *, yields: bool = False, broken: bool = False) -> Iterator[None]:
        """What is written inside goes on one line or breaks at all its lines."""
        self._flush()
        self.document.open(yields=yields, broken=broken)
        yield
        self.document.close()

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Lines that start inside are one step deeper."""
        self.document.indent()
        yield
        self.document.dedent()

    # Comments

    def _wait(self) -> None:
        gap = self._tokens[self._position].gap
        self._waiting, self._own_line = gap.trailing, gap.own_line

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, ()
        for comment in waiting:
            ends_line = is_line_comment(self._text, comment)
            self._add_comment(comment, CommentPlace.LINE_END if ends_line else CommentPlace.INLINE)

    def _add_comment(
        self, comment: Comment, place: CommentPlace, *, blank_after: bool = False
    ) -> None:
        self.document.add_comment(read_comment(self._text, comment, place, blank_after=blank_after))

    def _next_start(self) -> int:
        """Where the next comment or token that will be written stands in the source."""
        written = self._tokens[self._position]
        comments = self._own_line or written.gap.leading
        return comments[0].start if comments else self._stream.starts[written.index]

    def _blank_before(self, start: int) -> bool:
        blanks = start
        while blanks and self._text[blanks - 1] in _BLANKS:
            blanks -= 1
        return self._text.count("\n", blanks, start) > 1

    # Texts of several lines

    def _add_text_block(self, raw: str) -> None:
        inner = raw[3:-3]
        if "\n" not in inner:
            self.document.add_raw(raw)
        else:
            self._add_block('"""', dedent(inner), '"""', raw)

    def _add_script(self, raw: str) -> None:
        inner = raw[1:-1]
        code = dedent(inner).rstrip()
        if not code:
            self.document.add(Text("{}"))
        elif "\n" not in inner:
            # one line holds no comment, which would swallow the brace
            self.document.add_raw(f"{{ {code} }}")
        else:
            self._add_block("{", code, "}", raw)

    def _add_block(self, opening: str, value: str, closing: str, raw: str) -> None:
        lines = value.split("\n")
        if dedent("\n".join(["", *_padded(lines), " "])) == value:
            self.document.add_block(TextBlock(opening, tuple(lines), closing))
        else:
            # Stray carriage returns: only the text as it stands has this value.
            self.document.add_raw(raw)


def _padded(lines: Iterable[str]) -> list[str]:
    return [f" {line}" if line else "" for line in lines]
