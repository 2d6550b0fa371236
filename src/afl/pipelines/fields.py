"""The keys of one mapping: which there are, which are missing, and what is in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from afl.pipelines.model import Text
from afl.pipelines.nodes import Entries, Items, Node, Scalar
from afl.pipelines.problems import Fix, Mark, Problems, Range, listed

_KINDS = {"text": "a text", "number": "a number", "boolean": "true or false", "null": "nothing"}
_YES = ("true", "True", "TRUE")

_Value = TypeVar("_Value")


class Fields:
    """Reads a mapping. Unknown and doubled keys are reported at once, missing ones when asked for.

    Args:
        what: the thing that the mapping describes, for messages.
        keys: all that it may have; None if any may stand there.
        also_called: words that other tools use for a key.
        place: where to say that a key is missing; else at the first line of the mapping.
    """

    def __init__(
        self,
        node: Entries,
        what: str,
        keys: tuple[str, ...] | None,
        problems: Problems,
        also_called: Mapping[str, str] | None = None,
        place: Range | None = None,
    ) -> None:
        self._what = what
        self._keys = keys
        self._problems = problems
        self._also_called = also_called or {}
        self._place = place or Range(node.range.start, node.range.start + 1)
        self._values: dict[str, tuple[Text, Node]] = {}
        self._unknown: set[str] = set()
        for key, value in node.values:
            self._add(key, value)

    def place_of(self, key: str) -> Range:
        """Where a key stands."""
        return self._values[key][0].range if key in self._values else self._place

    def all(self) -> list[tuple[Text, Node]]:
        """Every key with its value, each once."""
        return list(self._values.values())

    def required(self, key: str, read: Callable[[Node], _Value]) -> _Value | None:
        """The value of a key that must be there."""
        if key in self._values:
            return read(self._values[key][1])
        # one cause, one problem: an unknown key was probably meant to be this one
        if key not in self._unknown:
            self._problems.add(
                "AFL5004", self._place, f"{self._what} has no `{key}`", f"`{key}` is missing"
            )
        return None

    def optional(self, key: str, read: Callable[[Node], _Value]) -> _Value | None:
        """The value of a key that may be missing, or be there with nothing behind it."""
        if key not in self._values:
            return None
        value = self._values[key][1]
        if isinstance(value, Scalar) and value.kind == "null" and value.tag is None:
            return None
        return read(value)

    def text(self, node: Node) -> Text | None:
        """A text; a number or a word such as `true` is one only in quotes."""
        if not isinstance(node, Scalar) or node.kind != "text" or node.tag is not None:
            self._refuse(node, "a text")
            return None
        if "\0" in node.text or any("\ud800" <= char <= "\udfff" for char in node.text):
            self._problems.add(
                "AFL5005",
                node.range,
                "this text holds a character that no command can be given",
                "not a text",
            )
            return None
        return Text(node.text, node.range)

    def texts(self, node: Node) -> tuple[Text, ...] | None:
        """A list of texts."""
        if not isinstance(node, Items) or node.tag is not None:
            self._refuse(node, "a list of texts")
            return None
        found = [self.text(value) for value in node.values]
        whole = [text for text in found if text is not None]
        return tuple(whole) if len(whole) == len(found) else None

    def boolean(self, node: Node) -> bool | None:
        """True or false."""
        if isinstance(node, Scalar) and node.kind == "boolean" and node.tag is None:
            return node.text in _YES
        self._refuse(node, "`true` or `false`")
        return None

    def _add(self, key: Node, value: Node) -> None:
        name = self._name(key)
        if name is None:
            return
        if self._keys is not None and name.value not in self._keys:
            self._report_unknown(name, self._keys)
        elif name.value in self._values:
            first = self._values[name.value][0]
            self._problems.add(
                "AFL5003",
                name.range,
                f"{self._what} has `{name.value[:40]}` twice",
                "second one",
                related=(Mark(first.range, "first one"),),
            )
        else:
            self._values[name.value] = (name, value)

    def _name(self, key: Node) -> Text | None:
        if isinstance(key, Scalar) and key.tag is None and key.kind == "text":
            return Text(key.text, key.range)
        if isinstance(key, Scalar) and key.tag is None and self._keys is None:
            # an id such as `1` gets its own complaint, with the words for ids
            return Text(key.text, key.range)
        self._problems.add(
            "AFL5005", key.range, f"a key of {self._what} is a word, not {kind_of(key)}", "no key"
        )
        return None

    def _report_unknown(self, name: Text, keys: tuple[str, ...]) -> None:
        meant = self._also_called.get(name.value)
        fixes: tuple[Fix, ...] = ()
        if meant in keys and meant is not None:
            self._unknown.add(meant)
            fixes = (Fix(f"here it is called `{meant}`", name.range, meant),)
        self._problems.add(
            "AFL5002",
            name.range,
            f"{self._what} has no key `{name.value[:40]}`",
            "unknown key",
            notes=(f"the keys are {listed(keys, 'and')}",),
            fixes=fixes,
            candidates=() if fixes else keys,
        )

    def _refuse(self, node: Node, wanted: str) -> None:
        if node.tag is not None:
            self._problems.add(
                "AFL5006",
                node.tag.range,
                f"a tag means nothing here, where {wanted} belongs",
                "unknown tag",
            )
            return
        fixes: tuple[Fix, ...] = ()
        if wanted == "a text" and isinstance(node, Scalar) and node.kind != "null":
            quoted = json.dumps(node.text)
            fixes = (Fix(f"as a text it is `{quoted}`", node.range, quoted, safe=True),)
        if wanted == "a list of texts" and isinstance(node, Scalar) and node.kind == "text":
            fixes = (Fix("one in brackets is a list", node.range, f"[{json.dumps(node.text)}]"),)
        found = kind_of(node)
        range = node.range
        if isinstance(node, Scalar) and range.start == range.end:
            range = Range(range.start, range.start + 1)
        self._problems.add(
            "AFL5005", range, f"{wanted} belongs here, not {found}", f"not {wanted}", fixes=fixes
        )


def kind_of(node: Node) -> str:
    """What a node is, for a message."""
    match node:
        case Scalar():
            return _KINDS[node.kind]
        case Items():
            return "a list"
        case Entries():
            return "a mapping"


def bare(text: Text | None) -> str | None:
    """The words of a text."""
    return None if text is None else text.value
