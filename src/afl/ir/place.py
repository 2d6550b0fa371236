"""Where in a stored program we are: for the path in an error, and to bound the nesting."""

from __future__ import annotations

from dataclasses import dataclass

from afl.ir.errors import ProgramFormatError

#: How deep the JSON of a program may nest. Any one construct fits as deep as the language nests it,
#: and reading a hostile program leaves half of Python's stack free.
MAX_NESTING = 400

_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Place:
    """A value of the JSON, named by the way to it."""

    parent: Place | None = None
    key: str | int = "$"
    depth: int = 0

    def child(self, key: str | int) -> Place:
        """The place of a member or an item. Refuses to go too deep."""
        if self.depth == MAX_NESTING:
            raise self.wrong(
                f"this nests deeper than {MAX_NESTING} levels;"
                " move the inner part into a facet or a step of its own"
            )
        return Place(self, key, self.depth + 1)

    def wrong(self, message: str) -> ProgramFormatError:
        """An error at this place."""
        return ProgramFormatError(message, path=str(self))

    def __str__(self) -> str:
        parts = []
        place = self
        while place.parent is not None:
            parts.append(_part(place.key))
            place = place.parent
        return "".join(["$", *reversed(parts)])


ROOT = Place()


def shown(value: object) -> str:
    """A value of the JSON for a message: short, whatever it is."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            return "an object"
        case list():
            return "an array"
        case str():
            return f"'{_short(value)}'"
        # An integer of many digits cannot even be printed.
        case int() if value.bit_length() > 64:
            return "a huge number"
    return _short(repr(value))


def _part(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if key.isidentifier() else f"['{_short(key)}']"


def _short(text: str) -> str:
    # Lone surrogates are legal in JSON, but an error message must be printable.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
