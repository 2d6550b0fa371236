"""YAML to nodes that know where they stand.

Only the events of the parser are used: no tag and no alias ever makes an object. What a text can
cost is bounded before it is paid: its size, how deep it nests, and how many values it comes to
once its aliases are followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from afl.pipelines.problems import Problem, Range

MAX_CHARACTERS = 1 << 20
MAX_DEPTH = 20
MAX_VALUES = 50_000

_TAG = re.compile(r"(?:&\S+\s+)?(!\S*)")
#: Tags that say no more than what a pipeline says anyway.
_PLAIN_TAGS = {
    "!",
    "tag:yaml.org,2002:str",
    "tag:yaml.org,2002:seq",
    "tag:yaml.org,2002:map",
}
# What a word without quotes means: the core schema of YAML 1.2, where `no` and `12:30` are texts.
_WORDS = (
    ("null", re.compile(r"(?:~|null|Null|NULL|)\Z")),
    ("boolean", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")),
    ("number", re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z")),
    ("number", re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")),
    ("number", re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")),
)


@dataclass(frozen=True, slots=True)
class Tag:
    """`!Name`, where it stands."""

    name: str
    range: Range


@dataclass(frozen=True, slots=True)
class Scalar:
    """One word or text. `kind` is text, number, boolean or null."""

    range: Range
    tag: Tag | None
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Items:
    range: Range
    tag: Tag | None
    values: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entries:
    range: Range
    tag: Tag | None
    values: tuple[tuple[Node, Node], ...]


Node = Scalar | Items | Entries

_Tagged = yaml.ScalarEvent | yaml.SequenceStartEvent | yaml.MappingStartEvent


class Unreadable(Exception):
    """The text is no YAML, or none that is read here."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def read_nodes(text: str) -> Node | None:
    """The one document of a text; None for a text that holds nothing.

    Raises:
        Unreadable: with the problem that says why.
    """
    if len(text) > MAX_CHARACTERS:
        raise _too_large(
            Range(MAX_CHARACTERS, MAX_CHARACTERS + 1),
            f"a pipeline has at most {MAX_CHARACTERS:,} characters, and this has {len(text):,}",
        )
    try:
        return _Builder(text).document()
    except yaml.reader.ReaderError as error:
        raise _not_yaml(
            Range(error.position, error.position + 1),
            f"the character U+{error.character:04X} cannot stand in YAML",
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = 0 if mark is None else min(mark.index, max(len(text) - 1, 0))
        what = (error.problem or "this means nothing").replace("'", "`")
        raise _not_yaml(Range(at, at + 1), f"this is not YAML: {what}") from error


class _Builder:
    """Follows the events of the parser, one after the other, and stops at the first that is too
    much: what follows is never even scanned."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.SafeLoader)
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._values = 0

    def document(self) -> Node | None:
        root: Node | None = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    start = _start(event)
                    raise _not_yaml(
                        Range(start, min(start + 3, len(self._text))),
                        "a second document starts here, and a file holds one pipeline",
                    )
                root = self._node(next(self._events), 1)
        return root

    def _node(self, event: yaml.Event, depth: int) -> Node:
        start = _start(event)
        if depth > MAX_DEPTH:
            raise _too_large(Range(start, start + 1), f"this nests deeper than {MAX_DEPTH} levels")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self._values
        self._count(1, Range(start, start + 1))
        match event:
            case yaml.ScalarEvent():
                node: Node = self._scalar(event)
            case yaml.SequenceStartEvent():
                values, end = self._sequence(depth)
                node = Items(self._range(start, end), self._tag(event), values)
            case yaml.MappingStartEvent():
                entries, end = self._mapping(depth)
                node = Entries(self._range(start, end), self._tag(event), entries)
            case _:
                raise AssertionError(f"{event} starts no value")
        if event.anchor is not None:
            # only now: an alias inside of what it names finds nothing
            self._anchors[event.anchor] = (node, self._values - before)
        return node

    def _alias(self, event: yaml.AliasEvent) -> Node:
        range = Range(_start(event), _end(event))
        found = self._anchors.get(event.anchor or "")
        if found is None:
            raise _not_yaml(range, f"nothing before this is marked `&{event.anchor}`")
        node, values = found
        self._count(values, range)
        return node

    def _count(self, values: int, range: Range) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            raise _too_large(
                range, f"a pipeline has at most {MAX_VALUES:,} values, with aliases followed"
            )

    def _sequence(self, depth: int) -> tuple[tuple[Node, ...], int]:
        values = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            values.append(self._node(event, depth + 1))
        return tuple(values), _end(event)

    def _mapping(self, depth: int) -> tuple[tuple[tuple[Node, Node], ...], int]:
        values = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            values.append((key, self._node(next(self._events), depth + 1)))
        return tuple(values), _end(event)

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        kind = "text"
        if event.style is None and event.tag is None:
            kind = next((kind for kind, words in _WORDS if words.match(event.value)), "text")
        range = self._range(_start(event), _end(event))
        return Scalar(range, self._tag(event), event.value, kind)

    def _tag(self, event: _Tagged) -> Tag | None:
        if event.tag is None or event.tag in _PLAIN_TAGS:
            return None
        start = _start(event)
        written = _TAG.match(self._text, start)
        if written is None:
            return Tag(event.tag, Range(start, start + 1))
        return Tag(event.tag, Range(*written.span(1)))

    def _range(self, start: int, end: int) -> Range:
        """Without the blanks behind: the parser counts those up to what comes next."""
        return Range(start, max(start, start + len(self._text[start:end].rstrip())))


def _start(event: yaml.Event) -> int:
    assert event.start_mark is not None  # only events that somebody made up have none
    return event.start_mark.index


def _end(event: yaml.Event) -> int:
    assert event.end_mark is not None
    return event.end_mark.index


def _not_yaml(range: Range, message: str) -> Unreadable:
    return Unreadable(Problem("AFL5001", range, message, "not readable"))


def _too_large(range: Range, message: str) -> Unreadable:
    return Unreadable(
        Problem("AFL5012", range, message, "too much", notes=("nothing was read beyond this",))
    )
