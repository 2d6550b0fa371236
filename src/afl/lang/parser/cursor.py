"""The parser's place in the token stream, its complaints, and how it finds its way again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from afl.lang.diagnostics.model import Label, Suggestion
from afl.lang.diagnostics.reporter import Enough, Reporter, advise, replace
from afl.lang.source import Span
from afl.lang.tokens import (
    BAD,
    BUILTIN_TYPES,
    DECLARATION_STARTS,
    EOF,
    RESERVED,
    SCRIPT,
    STRING,
    TEXT,
    WORD,
    TokenStream,
)
from afl.lang.tree import Name

#: How deep expressions, types and blocks may nest. Every recursion over a tree relies on it.
MAX_NESTING = 64

_OPENING = {"{": "}", "#{": "}", "(": ")", "[": "]"}
_CLOSING = frozenset("})]")
_AFTER_LIST = frozenset({"=>", "with", "after", "andThen", "catch"})


class Lost(Exception):
    """The parser cannot go on from here; whoever catches it moves to a place it knows."""


class Cursor:
    """State of one parse. The lists are the token stream's own, for speed."""

    def __init__(self, tokens: TokenStream, reporter: Reporter) -> None:
        self.tokens = tokens
        self.source = tokens.source
        self.text = tokens.source.text
        self.kinds = tokens.kinds
        self.starts = tokens.starts
        self.ends = tokens.ends
        self.pos = 0
        self.depth = 0
        #: the height of the expression that was read last
        self.height = 0
        self.reporter = reporter
        #: how often something could not be read; callers compare it before and after
        self.losses = 0
        #: braces still to come that close a namespace which was given up
        self.stray_closings = 0
        self._last_complaint = -2
        self._unclosed_before = -1

    # Reading

    def take(self) -> int:
        """Step over the current token and answer its index."""
        index = self.pos
        if self.kinds[index] != EOF:
            self.pos = index + 1
        return index

    def accept(self, kind: str) -> bool:
        if self.kinds[self.pos] == kind:
            self.take()
            return True
        return False

    def at_word(self, word: str) -> bool:
        """Whether a contextual word stands here."""
        index = self.pos
        return self.kinds[index] == WORD and self.tokens.text(index) == word

    def at_label(self) -> bool:
        kind = self.kinds[self.pos]
        return kind == WORD or kind in RESERVED

    def end(self) -> int:
        """Where the last token that was read ends."""
        return self.ends[self.pos - 1] if self.pos else 0

    def expect(self, kind: str, purpose: str = "") -> int:
        if self.kinds[self.pos] == kind:
            return self.take()
        raise self.lost(f"`{kind}`", purpose)

    def expect_name(self, what: str) -> Name:
        """A name for something new. A reserved word is reported and taken all the same."""
        index = self.pos
        kind = self.kinds[index]
        if kind == WORD:
            self.pos = index + 1
            return Name(self.starts[index], self.ends[index], self.tokens.text(index))
        if kind in RESERVED:
            self.complain(
                "AFL0104",
                self.span_of(index),
                f"`{kind}` is a reserved word and cannot name {what}",
                "reserved",
                suggestions=[
                    replace(self.span_of(index), f"{kind}_", f"call it `{kind}_`, for example")
                ],
            )
            self.take()
            return Name(self.starts[index], self.ends[index], kind)
        raise self.lost(f"a name for {what}")

    def expect_word(self, what: str) -> Name:
        """A name of something that exists, without dots."""
        index = self.pos
        if self.kinds[index] != WORD:
            raise self.lost(what)
        self.pos = index + 1
        return Name(self.starts[index], self.ends[index], self.tokens.text(index))

    def expect_label(self, what: str) -> Name:
        """A word where any word will do, reserved or not."""
        index = self.pos
        kind = self.kinds[index]
        if kind == WORD or kind in RESERVED:
            self.pos = index + 1
            return Name(self.starts[index], self.ends[index], self.tokens.text(index))
        raise self.lost(what)

    def expect_qname(self, what: str) -> Name:
        index = self.pos
        if self.kinds[index] != WORD:
            raise self.lost(what)
        self.pos = index + 1
        if self.kinds[self.pos] != ".":
            return Name(self.starts[index], self.ends[index], self.tokens.text(index))
        parts = [self.tokens.text(index)]
        while self.accept("."):
            parts.append(self.expect_label("a name after the dot").text)
        return Name(self.starts[index], self.end(), ".".join(parts))

    # Nesting

    def enter(self) -> None:
        """One level down. Whoever enters must leave, also when lost: `try` and `finally`."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            self._too_deep()

    def leave(self) -> None:
        self.depth -= 1

    @contextmanager
    def nesting(self, levels: int = 1) -> Iterator[None]:
        """Some levels down, where speed does not matter. A block counts for two."""
        self.depth += levels
        if self.depth > MAX_NESTING:
            self._too_deep()
        try:
            yield
        finally:
            self.depth -= levels

    def grow(self, height: int) -> None:
        """An expression of the given height was put into another one.

        The depth of the reading alone would not do: `a * b + c < d && e` grows upwards from the
        left.
        """
        self.height = height + 1
        if self.height > MAX_NESTING:
            self._too_deep()

    def _too_deep(self) -> None:
        self.reporter.report(
            "AFL0106",
            self.span_of(self.pos),
            "this is nested too deeply",
            "one level too many",
            notes=[f"blocks, expressions and types nest up to {MAX_NESTING} levels in all"],
            suggestions=[advise("move the inner part into a facet or a step of its own")],
        )
        raise Enough

    # Complaining

    def span_of(self, index: int) -> Span:
        return self.source.span(self.starts[index], self.ends[index])

    def describe(self, index: int) -> str:
        """The token at an index, in words."""
        kind = self.kinds[index]
        if kind == EOF:
            return "the end of the file"
        text = self.tokens.text(index)
        if kind in (STRING, TEXT):
            return "a string"
        if kind == SCRIPT:
            return "a script block"
        return f"`{text}`"

    def complain(
        self,
        code: str,
        span: Span,
        message: str,
        label: str = "",
        *,
        secondary: tuple[Label, ...] = (),
        notes: tuple[str, ...] = (),
        suggestions: list[Suggestion] | None = None,
    ) -> None:
        """Report, unless the token before was complained about: that is one mistake, not two."""
        self.losses += 1
        if self.pos <= self._last_complaint + 1:
            return
        self._last_complaint = self.pos
        self.reporter.report(
            code,
            span,
            message,
            label,
            secondary=secondary,
            notes=notes,
            suggestions=suggestions or (),
        )

    def lost(self, expected: str, purpose: str = "") -> Lost:
        """Complain that something else was expected here, and give the caller a `Lost` to raise."""
        index = self.pos
        if self.kinds[index] == BAD or self._ran_out():
            # the lexer has said what is wrong
            self.losses += 1
            self._last_complaint = index
            return Lost()
        goal = f" {purpose}" if purpose else ""
        self.complain(
            "AFL0101",
            self.span_of(index),
            f"expected {expected}{goal}, found {self.describe(index)}",
            f"expected {expected}",
            suggestions=self._foreign(index),
        )
        return Lost()

    def unclosed(self, opening: int) -> None:
        """The bracket at a token index has no partner before the current token."""
        self.losses += 1
        if self._unclosed_before == self.pos or self._ran_out():
            return
        if self.pos and self.kinds[self.pos - 1] == BAD:
            # a string without an end has swallowed the bracket
            return
        self._unclosed_before = self.pos
        self._last_complaint = -2
        sign = self.kinds[opening]
        self.complain(
            "AFL0103",
            self.span_of(opening),
            f"this `{sign}` is never closed",
            "opened here",
            secondary=(
                Label(self.span_of(self.pos), f"`{_OPENING[sign]}` is missing before this"),
            ),
        )

    def _ran_out(self) -> bool:
        return self.tokens.truncated and self.kinds[self.pos] == EOF

    def _foreign(self, index: int) -> list[Suggestion]:
        """What people write who come from another language."""
        word = self.tokens.text(index)
        following = self.kinds[index + 1] if index + 1 < len(self.kinds) else EOF
        span = self.span_of(index)
        if word == "uses":
            return [replace(span, "use", "write `use`", safe=True)]
        if word == "-" and following == ">":
            both = self.source.span(self.starts[index], self.ends[index + 1])
            return [replace(both, "=>", "write `=>`", safe=True)]
        if word == "=" and following != "=":
            return [replace(span, "==", "to compare, write `==`")]
        if word in ("and", "or"):
            sign = "&&" if word == "and" else "||"
            return [replace(span, sign, f"write `{sign}`", safe=True)]
        if word in ("def", "function", "fn"):
            return [advise("declare a unit of work with `facet`, `event facet` or `workflow`")]
        if word in ("let", "var", "const"):
            return [advise("a step is written `name = Facet(argument = value)`")]
        if word in ("if", "else", "match", "switch"):
            return [
                advise("choose with `andThen when { case condition => { ... } case _ => { ... } }`")
            ]
        if word in ("for", "while"):
            return [advise("repeat with `andThen foreach x in list { ... }`")]
        if word in ("import", "from", "include"):
            return [advise("bring names in with `use namespace.name`")]
        if word in ("class", "struct", "type", "record", "interface"):
            return [advise("declare a data type with `schema Name { field: Type }`")]
        if word in BUILTIN_TYPES:
            return [advise("types follow names: `name: Type`")]
        return []

    # Finding the way again

    def skip_to(self, stops: frozenset[str], since: int | None = None) -> None:
        """Move to a stop sign outside of any bracket opened on the way, or since a token before.

        Or, if that comes first, to where a statement or declaration must begin. What stands in
        braces on the way belongs to what is skipped, its statements too.
        """
        signs: list[str] = []
        for kind in self.kinds[since : self.pos] if since is not None else ():
            _track(signs, kind)
        while True:
            kind = self.kinds[self.pos]
            if self.at_next_declaration() or (self.at_new_start() and "{" not in signs):
                return
            if not signs and (kind in stops or kind == "}" or self.at_step_start()):
                return
            _track(signs, kind)
            self.pos += 1

    def _is_label_use(self) -> bool:
        """Reserved words are labels too: `(in: Int)` starts nothing new."""
        following = self.kinds[self.pos + 1]
        before = self.kinds[self.pos - 1] if self.pos else ""
        return following in (":", "=") or before == "."

    def skip_group(self) -> None:
        """Past the bracket at the cursor and everything up to its partner."""
        depth = 0
        while self.kinds[self.pos] != EOF:
            kind = self.kinds[self.take()]
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if depth <= 0:
                return

    def at_end_of_list(self) -> bool:
        """What can only follow a list in parentheses: its closing one was forgotten."""
        return self.kinds[self.pos] in _AFTER_LIST and not self._is_label_use()

    def at_next_declaration(self) -> bool:
        """The end of the file, or a word that starts a declaration: what is open was not closed."""
        kind = self.kinds[self.pos]
        return kind == EOF or (kind in DECLARATION_STARTS and not self._is_label_use())

    def at_new_start(self) -> bool:
        """Where a list or an expression cannot go on: a yield, a declaration, the end."""
        if self.kinds[self.pos] == "yield":
            return not self._is_label_use()
        return self.at_next_declaration()

    def at_call_step(self) -> bool:
        """`name = Facet(`: what looks like an argument is a step, if a bracket was left open."""
        kinds = self.kinds
        if not self.at_step_start() or self.pos + 3 >= len(kinds):
            return False
        index = self.pos + 2
        while kinds[index] == WORD and kinds[index + 1] == ".":
            index += 2
        return kinds[index] == WORD and kinds[index + 1] == "("

    def at_step_start(self) -> bool:
        """`name =` outside of parentheses, or `sys.`, can only begin a statement."""
        if self.kinds[self.pos] != WORD:
            return False
        following = self.kinds[self.pos + 1]
        return following == "=" or (following == "." and self.at_word("sys"))


def _track(signs: list[str], kind: str) -> None:
    """Keeps a list of the brackets that are open. A brace closes what was left open inside it."""
    if kind in _OPENING:
        # far more than anybody opens: what follows is noise, and a longer list would only cost time
        if len(signs) < MAX_NESTING:
            signs.append(kind)
    elif kind in _CLOSING:
        while signs and _OPENING[signs.pop()] != kind:
            pass
