"""Doc comments: which declaration each belongs to, and its text."""

from __future__ import annotations

from afl.lang.diagnostics.reporter import Reporter, advise
from afl.lang.tokens import TokenStream
from afl.lang.tree import Doc


class DocComments:
    """The doc comments of a file. A declaration takes the one that stands directly before it."""

    def __init__(self, tokens: TokenStream) -> None:
        self._source = tokens.source
        text = tokens.source.text
        self._comments = [comment for comment in tokens.comments if comment.is_doc(text)]
        self._before = {comment.token: comment for comment in self._comments}
        self._taken: set[int] = set()

    def take(self, token: int) -> Doc | None:
        comment = self._before.get(token)
        if comment is None:
            return None
        self._taken.add(comment.start)
        inner = self._source.text[comment.start + 3 : comment.end - 2]
        return Doc(comment.start, comment.end, clean_doc(inner))

    def report_idle(self, reporter: Reporter) -> None:
        """Warn of doc comments that nothing took."""
        for comment in self._comments:
            if comment.start not in self._taken:
                reporter.report(
                    "AFL9002",
                    self._source.span(comment.start, comment.start + 3),
                    "this doc comment documents nothing",
                    "no declaration follows",
                    suggestions=[
                        advise("put it directly before a declaration, or write `/*` or `//`")
                    ],
                )


def clean_doc(inner: str) -> str:
    """The text of a doc comment without the decoration at the left."""
    lines = []
    for line in inner.splitlines():
        stripped = line.strip()
        if stripped.startswith("*"):
            stripped = stripped[1:].removeprefix(" ")
        lines.append(stripped.rstrip())
    return "\n".join(lines).strip()
