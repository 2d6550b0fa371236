"""A program that has a value of every type at hand, for tests of expressions."""

from __future__ import annotations

from tests.lang.fragments import codes_of

#: An input of every type, each named after it.
INPUTS = {
    "Int": "int",
    "Long": "long",
    "Double": "double",
    "Duration": "time",
    "String": "text",
    "Boolean": "flag",
    "Status": "status",
    "Item": "item",
    "[Int]": "ints",
    "[Long]": "longs",
    "[String]": "texts",
    "{String: Int}": "counts",
    "Json": "json",
    "Int?": "maybe",
    "String?": "word",
    "Boolean?": "perhaps",
    "Status?": "state",
    "Item?": "thing",
    "[Int]?": "some",
}
WORLD = """
  enum Status { open, paid, shipped }
  schema Item { name: String, cents: Long = 0, note: String?, tags: [String] = [] }
  facet Order(id: String)
  event facet Count() => (n: Int)
"""


def program_text(fragment: str) -> str:
    return f"namespace shop {{{WORLD}{fragment}\n}}\n"


def diagnose(fragment: str) -> list[str]:
    """The codes for a fragment of a namespace."""
    return codes_of(fragment, WORLD)


def give(target: str, expr: str) -> str:
    """A fragment that gives an expression to a parameter of a type, with all inputs at hand."""
    inputs = ", ".join(f"{name}: {type}" for type, name in INPUTS.items())
    return (
        f"event facet Take(value: {target})\n"
        f"workflow W({inputs}) andThen {{ count = Count() taken = Take(value = {expr}) }}"
    )


def given(target: str, expr: str) -> list[str]:
    """The codes for an expression where a type is wanted."""
    return diagnose(give(target, expr))


#: In words what it shows, the type of a place, an expression there, and what is said about it.
Expression = tuple[str, str, str, list[str]]
