"""What the fragments about blocks and data flow call, and a workflow around statements."""

from __future__ import annotations

from tests.lang.fragments import codes_of

#: Every one of them is used by name only, so none needs to be.
WORLD = """
  enum Mode { fast, slow }
  schema Line { sku: String, cents: Long = 0 }
  facet Note(text: String)
  facet Shape(size: Int) => (area: Int)
  facet Double(n: Int) => (twice: Int) andThen { yield Double(twice = $.n * 2) }
  event facet Fetch(id: String = "") => (total: Int, text: String)
  event facet Send(text: String)
  event facet Pure(n: Int) => (n: Int) with Effect(kind = pure)
"""


def codes(fragment: str) -> list[str]:
    """The codes of a fragment that may call all of it."""
    return codes_of(fragment, WORLD)


def body_of(statements: str, signature: str = "W(id: String) => (n: Int)") -> str:
    """A workflow of these statements."""
    return f"workflow {signature} andThen {{ {statements} }}"
