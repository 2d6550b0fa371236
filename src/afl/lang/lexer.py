"""Text to tokens, by hand around one regular expression. It never fails: what it cannot read
becomes a token of kind `BAD` and a diagnostic, once for each run of such characters."""

from __future__ import annotations

import re
from typing import NoReturn

from afl.lang.diagnostics.reporter import Enough, Reporter, advise, replace
from afl.lang.source import Source
from afl.lang.tokens import (
    BAD,
    DOUBLE,
    DURATION,
    EOF,
    INT,
    RESERVED,
    SCRIPT,
    SIGNS,
    STRING,
    TEXT,
    WORD,
    Comment,
    TokenStream,
)

#: More than any file that a person would keep in one piece: about 25,000 lines.
MAX_TOKENS = 250_000

_SIGN = "|".join(re.escape(sign) for sign in SIGNS)
_TOKEN = re.compile(
    r"[ \t\r\n\f]*(?:"
    r"(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>[0-9](?:[A-Za-z0-9_]|\.[0-9]|(?<=[0-9][eE])[+-](?=[0-9]))*)"
    r"|(?P<comment>//[^\n]*|/\*)"
    r'|(?P<text>""")'
    r'|(?P<string>"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*")'
    r'|(?P<open>"[^\n]*)'
    r"|(?P<hash>\#(?!\{)[^\n]*)"
    rf"|(?P<sign>{_SIGN})"
    r"|(?P<quote>'[^'\\\n]*(?:\\[^\n][^'\\\n]*)*'?|[“”„][^“”„\n]*[“”„]?)"
    r"|(?P<end>\Z)"
    r"|(?P<bad>[^ \t\r\n\f\x21-\x25\x27-\x3f\x41-\x5b\x5d\x5f\x61-\x7b\x7d]+)"
    r")"
)
_TEXT_END = re.compile(r'[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""', re.DOTALL)
_INT = re.compile(r"[0-9]+(?:_[0-9]+)*\Z")
_DOUBLE = re.compile(r"[0-9]+(?:_[0-9]+)*(?:\.[0-9]+(?:_[0-9]+)*)?(?:[eE][+-]?[0-9]+)?\Z")
_DURATION = re.compile(r"(?:[0-9]+(?:ms|[wdhms]))+\Z")
# What matters inside a script block: its braces, and what may hide one.
_PYTHON = re.compile(
    r"[{}]"
    r"|\#[^\n]*"
    r'|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:"""|\Z)'
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*(?:'''|\Z)"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'?",
    re.DOTALL,
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")

_FOREIGN = {"&": "&&", "|": "||", "'": '"'}


def tokenize(source: Source, reporter: Reporter) -> TokenStream:
    """All tokens of a source; comments are kept beside them."""
    return _Lexer(source, reporter).run()


class _Lexer:
    def __init__(self, source: Source, reporter: Reporter) -> None:
        self.source = source
        self.text = source.text
        self.kinds: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.comments: list[Comment] = []
        self.reporter = reporter
        self.truncated = False

    def run(self) -> TokenStream:
        self._check_unicode()
        text, match = self.text, _TOKEN.match
        kinds, starts, ends = self.kinds, self.starts, self.ends
        position = 1 if text.startswith("\ufeff") else 0
        while True:
            if len(kinds) > MAX_TOKENS:
                self._too_large(position)
            found = match(text, position)
            assert found is not None  # the alternatives take every character, and the end
            group = found.lastgroup
            position = found.end()
            if group == "word":
                start = found.start("word")
                word = text[start:position]
                kinds.append(word if word in RESERVED else WORD)
                starts.append(start)
                ends.append(position)
            elif group == "sign":
                start = found.start("sign")
                if text[start] == "{" and self._opens_script():
                    position = self._script(start, position)
                    continue
                kinds.append(text[start:position])
                starts.append(start)
                ends.append(position)
            elif group == "end":
                self._add(EOF, len(text), len(text))
                return TokenStream(self.source, kinds, starts, ends, self.comments, self.truncated)
            else:
                position = self._rare(str(group), found.start(str(group)), position)

    def _add(self, kind: str, start: int, end: int) -> None:
        self.kinds.append(kind)
        self.starts.append(start)
        self.ends.append(end)

    def _rare(self, group: str, start: int, end: int) -> int:
        """Everything but words and signs. Answers where to go on."""
        if group == "number":
            self._number(start, end)
            return end
        if group == "comment":
            return self._comment(start, end)
        if group == "string":
            self._add(STRING, start, end)
            self._check_string_characters(start, end)
            return end
        if group == "open":
            self._open_string(start, end)
            return end
        if group == "text":
            return self._text_block(start, end)
        if group == "hash":
            self._hash_comment(start, end)
            return end
        if group == "quote":
            self._single_quotes(start, end)
            return end
        self._unexpected(start, end)
        return end

    def _too_large(self, position: int) -> NoReturn:
        self.reporter.report(
            "AFL0011",
            self.source.span(position, position),
            "this file is too large",
            "not read from here on",
            notes=[f"a file has at most {MAX_TOKENS} words and signs"],
            suggestions=[advise("spread the namespaces over several files")],
        )
        raise Enough

    def _check_unicode(self) -> None:
        found = _SURROGATE.search(self.text)
        if found:
            number = ord(found.group())
            # a reader that keeps undecodable bytes writes byte 0xNN as U+DCNN
            what = (
                f"the byte 0x{number - 0xDC00:02X}, which is not UTF-8"
                if 0xDC80 <= number <= 0xDCFF
                else f"U+{number:04X}, half of a character"
            )
            self.reporter.report(
                "AFL0001",
                self.source.span(found.start(), found.end()),
                f"the text holds {what}",
                "not a character by itself",
                notes=[
                    "source files are UTF-8; this one was damaged or written in another encoding"
                ],
            )

    def _comment(self, start: int, end: int) -> int:
        if self.text.startswith("/*", start):
            close = self.text.find("*/", start + 2)
            if close < 0:
                self.reporter.report(
                    "AFL0004",
                    self.source.span(start, start + 2),
                    "this comment has no end",
                    "starts here",
                    suggestions=[advise("close it with `*/`")],
                )
                end = len(self.text)
                self.truncated = True
            else:
                end = close + 2
        else:
            while end > start and self.text[end - 1] in " \t\r\f":
                end -= 1
        before = max(
            self.ends[-1] if self.ends else 0, self.comments[-1].end if self.comments else 0
        )
        own_line = before == 0 or self.text.find("\n", before, start) >= 0
        self.comments.append(Comment(start, end, len(self.kinds), own_line))
        return end

    def _open_string(self, start: int, end: int) -> None:
        while self.text[end - 1] in "\r\f":
            end -= 1
        self.reporter.report(
            "AFL0003",
            self.source.span(start, end),
            "this string has no end",
            'the closing `"` is missing',
            notes=['a string in `"` ends on its own line; text over several lines goes in `"""`'],
            suggestions=[replace(self.source.span(end, end), '"', 'add the closing `"`')],
        )
        self._add(BAD, start, end)

    def _text_block(self, start: int, end: int) -> int:
        found = _TEXT_END.match(self.text, end)
        if found is None:
            self.reporter.report(
                "AFL0003",
                self.source.span(start, end),
                "this text has no end",
                'the closing `"""` is missing',
            )
            self._add(BAD, start, len(self.text))
            self.truncated = True
            return len(self.text)
        self._add(TEXT, start, found.end())
        self._check_string_characters(start, found.end())
        return found.end()

    def _check_string_characters(self, start: int, end: int) -> None:
        found = _CONTROL.search(self.text, start, end)
        if found:
            self.reporter.report(
                "AFL0002",
                self.source.span(found.start(), found.end()),
                f"a string cannot hold the control character U+{ord(found.group()):04X}",
                "not allowed here",
                suggestions=[
                    replace(
                        self.source.span(found.start(), found.end()),
                        f"\\u{ord(found.group()):04x}",
                        "write it as an escape",
                    )
                ],
            )

    def _number(self, start: int, end: int) -> None:
        text = self.text[start:end]
        if _INT.match(text):
            self._add(INT, start, end)
        elif _DOUBLE.match(text):
            self._add(DOUBLE, start, end)
        elif _DURATION.match(text):
            self._add(DURATION, start, end)
        else:
            self._add(BAD, start, end)
            self.reporter.report(
                "AFL0006",
                self.source.span(start, end),
                f"`{_short(text)}` is not a number, and a name cannot start with a digit",
                "neither a number nor a name",
                notes=[
                    "numbers look like `42`, `1_000`, `2.5` or `1e-3`, "
                    "durations like `30s`, `10m` or `1h30m`"
                ],
            )

    def _hash_comment(self, start: int, end: int) -> None:
        while end > start and self.text[end - 1] in " \t\r\f":
            end -= 1
        self.reporter.report(
            "AFL0008",
            self.source.span(start, end),
            "a comment starts with `//`, not with `#`",
            "read as a comment",
            suggestions=[
                replace(self.source.span(start, start + 1), "//", "write `//`", safe=True),
            ],
        )

    def _single_quotes(self, start: int, end: int) -> None:
        text = self.text[start:end]
        closed = len(text) > 1 and text[-1] in "'“”„"
        inner = text[1 : -1 if closed else None].replace("\\'", "'").replace('"', '\\"')
        self._add(BAD, start, end)
        self.reporter.report(
            "AFL0007",
            self.source.span(start, end),
            "strings stand in straight double quotes",
            "other quotes",
            suggestions=[
                replace(
                    self.source.span(start, end), f'"{inner}"', "use double quotes", safe=closed
                )
            ],
        )

    def _unexpected(self, start: int, end: int) -> None:
        text = self.text[start:end]
        self._add(BAD, start, end)
        span = self.source.span(start, end)
        suggestions = []
        if text in _FOREIGN:
            suggestions.append(replace(span, _FOREIGN[text], f"did you mean `{_FOREIGN[text]}`?"))
        first = text[0]
        notes = []
        if first.isalpha():
            notes.append("names are made of the letters a to z, digits and `_`")
        shown = f"`{_short(text)}`" if text.isprintable() else f"U+{ord(first):04X}"
        self.reporter.report(
            "AFL0002",
            span,
            f"{shown} means nothing here",
            "unexpected",
            notes=notes,
            suggestions=suggestions,
        )

    def _opens_script(self) -> bool:
        """Whether the `{` to come follows `script` or `script language`."""
        kinds = self.kinds
        at = len(kinds) - 1
        if at > 0 and kinds[at] == WORD:
            at -= 1
        return at >= 0 and kinds[at] == "script" and (at == 0 or kinds[at - 1] != ".")

    def _script(self, start: int, position: int) -> int:
        """Take a block of Python whole; `start` is the place of its `{`."""
        depth = 1
        for found in _PYTHON.finditer(self.text, position):
            sign = found.group()
            depth += (sign == "{") - (sign == "}")
            if depth == 0:
                self._add(SCRIPT, start, found.end())
                return found.end()
        self.reporter.report(
            "AFL0009",
            self.source.span(start, start + 1),
            "this script block has no end",
            "opened here",
            notes=["braces inside Python strings and comments do not count"],
            suggestions=[advise("close it with `}`")],
        )
        self._add(BAD, start, len(self.text))
        self.truncated = True
        return len(self.text)


def _short(text: str) -> str:
    return text if len(text) <= 20 else text[:17] + "..."
