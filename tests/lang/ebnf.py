"""Grammars as data: readers for the published EBNF and for a Lark grammar, and random sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Terminal:
    text: str


@dataclass(frozen=True, slots=True)
class Ref:
    name: str


@dataclass(frozen=True, slots=True)
class Special:
    """A description in words: `? any word ?`."""

    text: str


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Optional:
    part: Part


@dataclass(frozen=True, slots=True)
class Repeat:
    """Zero or more times."""

    part: Part


Part = Terminal | Ref | Special | Sequence | Choice | Optional | Repeat
Grammar = dict[str, Part]

_EBNF_TOKEN = re.compile(
    r"""\s+|\(\*.*?\*\)|"[^"]*"|'[^']*'|\?[^?]*\?|line\ break|[a-z_]+|[=;|{}()\[\]]""", re.DOTALL
)
_LARK_TOKEN = re.compile(r'\s+|//[^\n]*|"(?:[^"\\]|\\.)*"|[A-Za-z_]+|[:|()\[\]*]')


class GrammarError(ValueError):
    """The grammar cannot be read."""


def read_ebnf(text: str) -> Grammar:
    """The rules of an EBNF text, by name."""
    tokens = _tokens(text, _EBNF_TOKEN, ("(*",))
    reader = _Reader(tokens, {"{": "}", "[": "]", "(": ")"}, {";", "|", "}", "]", ")"})
    grammar: Grammar = {}
    while reader.position < len(tokens):
        name = reader.take()
        reader.expect("=")
        if name in grammar:
            raise GrammarError(f"{name} is defined twice")
        grammar[name] = reader.choice()
        reader.expect(";")
    return grammar


def read_lark(text: str) -> Grammar:
    """The rules of a Lark grammar, without terminals and directives, in the same form."""
    grammar: Grammar = {}
    for block in re.split(r"\n(?=[a-zA-Z_%/])", text):
        if re.match(r"[a-z_]+:", block):
            name, _, body = block.partition(":")
            tokens = _tokens(body, _LARK_TOKEN, ("//",))
            reader = _Reader(tokens, {"[": "]", "(": ")"}, {"|", "]", ")"})
            grammar[name] = reader.choice()
    return grammar


def _tokens(text: str, pattern: re.Pattern[str], comments: tuple[str, ...]) -> list[str]:
    tokens: list[str] = []
    position = 0
    while position < len(text):
        found = pattern.match(text, position)
        if found is None:
            raise GrammarError(f"cannot read {text[position : position + 20]!r}")
        position = found.end()
        if not found.group().isspace() and not found.group().startswith(comments):
            tokens.append(found.group())
    return tokens


class _Reader:
    def __init__(self, tokens: list[str], brackets: Mapping[str, str], stops: set[str]) -> None:
        self.tokens = tokens
        self.position = 0
        self.brackets = brackets
        self.stops = stops

    def take(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1]

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def expect(self, token: str) -> None:
        if self.take() != token:
            raise GrammarError(f"expected {token!r} before {self.tokens[self.position :][:5]}")

    def choice(self) -> Part:
        options = [self.sequence()]
        while self.peek() == "|":
            self.take()
            options.append(self.sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self) -> Part:
        parts: list[Part] = []
        while self.peek() and self.peek() not in self.stops:
            parts.append(self.item())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def item(self) -> Part:
        token = self.take()
        part: Part
        if token in self.brackets:
            part = self.choice()
            self.expect(self.brackets[token])
            if token != "(":
                part = Repeat(part) if token == "{" else Optional(part)
        elif token[0] in "\"'":
            part = Terminal(token[1:-1])
        elif token[0] == "?":
            part = Special(token[1:-1].strip())
        else:
            part = Ref(token)
        if self.peek() == "*":
            self.take()
            part = Repeat(part)
        return part


def refs(part: Part) -> set[str]:
    """The names of the rules that a part uses."""
    match part:
        case Ref(name):
            return {name}
        case Sequence(parts) | Choice(parts):
            return set().union(*map(refs, parts))
        case Optional(inner) | Repeat(inner):
            return refs(inner)
        case _:
            return set()


class Sentences:
    """Random sentences of a grammar.

    `words` makes the text of the rules that are written in words or in letters; the other rules are
    followed. A sentence is a list of tokens. `used` collects the rules that took part in one.
    """

    def __init__(self, grammar: Grammar, words: Mapping[str, Callable[[Random], str]]) -> None:
        self.grammar = {name: part for name, part in grammar.items() if name not in words}
        self.words = words
        self.used: set[str] = set()
        self._heights = self._minimal_heights()

    def make(self, rule: str, rng: Random, budget: int) -> list[str]:
        """A sentence of a rule. Beyond `budget` nested rules the shortest way out is taken."""
        tokens: list[str] = []
        self._expand(Ref(rule), rng, budget, tokens)
        return tokens

    def _expand(self, part: Part, rng: Random, budget: int, tokens: list[str]) -> None:
        match part:
            case Terminal(text):
                tokens.append(text)
            case Ref(name) if name in self.words:
                self.used.add(name)
                tokens.append(self.words[name](rng))
            case Ref(name):
                self.used.add(name)
                self._expand(self.grammar[name], rng, budget - 1, tokens)
            case Sequence(parts):
                for inner in parts:
                    self._expand(inner, rng, budget, tokens)
            case Choice(options):
                self._expand(self._choose(options, rng, budget), rng, budget, tokens)
            case Optional(inner):
                if self._height(inner) < budget and rng.random() < 0.5:
                    self._expand(inner, rng, budget, tokens)
            case Repeat(inner):
                while self._height(inner) < budget and rng.random() < 0.4:
                    self._expand(inner, rng, budget, tokens)
            case Special(text):
                raise GrammarError(f"nobody knows how to write {text!r}")

    def _choose(self, options: tuple[Part, ...], rng: Random, budget: int) -> Part:
        possible = [option for option in options if self._height(option) < budget]
        return rng.choice(possible) if possible else min(options, key=self._height)

    def _minimal_heights(self) -> dict[str, int]:
        heights = self._heights = dict.fromkeys(self.grammar, 1000) | dict.fromkeys(self.words, 0)
        changed = True
        while changed:
            changed = False
            for name, part in self.grammar.items():
                height = 1 + self._height(part)
                if height < heights[name]:
                    heights[name] = height
                    changed = True
        return heights

    def _height(self, part: Part) -> int:
        match part:
            case Ref(name):
                return self._heights[name]
            case Sequence(parts):
                return max(map(self._height, parts), default=0)
            case Choice(options):
                return min(map(self._height, options))
            case _:
                return 0
