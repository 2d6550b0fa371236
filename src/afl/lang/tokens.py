"""The words and signs of AFL, and the token stream that the lexer hands to parser and formatter."""

from __future__ import annotations

from dataclasses import dataclass

from afl.lang.source import Source

# A token's kind is its own text for signs and reserved words, and one of these names otherwise.
WORD = "word"
INT = "int"
DOUBLE = "double"
DURATION = "duration"
STRING = "string"
TEXT = "text"
SCRIPT = "script block"
BAD = "bad"
EOF = "end of file"

#: Words that cannot name a declaration, a step or a foreach variable. Parameters, fields,
#: arguments and whatever follows a dot may still use them.
RESERVED = frozenset(
    {
        "namespace",
        "use",
        "facet",
        "event",
        "workflow",
        "implicit",
        "schema",
        "enum",
        "schedule",
        "with",
        "as",
        "andThen",
        "yield",
        "foreach",
        "in",
        "when",
        "case",
        "catch",
        "after",
        "script",
        "true",
        "false",
        "null",
    }
)

#: Words that mean something in one position only and are free everywhere else.
CONTEXTUAL = frozenset(
    {
        "limit",
        "prompt",
        "system",
        "template",
        "model",
        "tools",
        "python",
        "cron",
        "every",
        "at",
        "zone",
        "start",
        "end",
        "jitter",
        "overlap",
        "catch_up",
        "not",
        "contains",
        "startsWith",
        "endsWith",
        "sys",
        "error",
    }
)

#: Longest first, so that the lexer's alternation takes the longest sign.
SIGNS = (
    "#{",
    "=>",
    "==",
    "!=",
    "<=",
    ">=",
    "&&",
    "||",
    "++",
    "??",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    ":",
    ".",
    "=",
    "<",
    ">",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "?",
    "$",
)

#: Words that begin a declaration: where a parser that lost its way finds it again.
DECLARATION_STARTS = frozenset(
    {
        "namespace",
        "use",
        "facet",
        "event",
        "workflow",
        "implicit",
        "schema",
        "enum",
        "schedule",
    }
)

BUILTIN_TYPES = ("String", "Int", "Long", "Double", "Boolean", "Json", "Duration")


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment, kept beside the token stream.

    `token` is the index of the token that follows it. `own_line` says that nothing but white space
    stands before it on its line.
    """

    start: int
    end: int
    token: int
    own_line: bool

    def is_doc(self, text: str) -> bool:
        return text.startswith("/**", self.start) and self.end - self.start > 4


@dataclass(slots=True)
class TokenStream:
    """Parallel lists, one entry a token, because a token object each would cost a third of a check.

    The last token is always of kind `EOF`.
    """

    source: Source
    kinds: list[str]
    starts: list[int]
    ends: list[int]
    comments: list[Comment]
    #: a comment, text or script that has no end took the rest of the file
    truncated: bool = False

    def text(self, index: int) -> str:
        return self.source.text[self.starts[index] : self.ends[index]]
