"""What fits where, and which types operators take and give, as tables."""

from __future__ import annotations

import pytest

from afl.ir import model as ir
from afl.ir.types import type_text
from afl.lang.api import compile_sources
from tests.lang.checker_world import INPUTS, Expression, give, given, program_text

# which value fits where: one row for each value, one column for each place

FITS = """
               Int Long Double Duration String Boolean Status [Int] [Long] {String:Int} Json Int?
Int            yes yes  yes    -        -      -       -      -     -      -            yes  yes
Long           -   yes  yes    -        -      -       -      -     -      -            yes  -
Double         -   -    yes    -        -      -       -      -     -      -            yes  -
Duration       -   -    -      yes      -      -       -      -     -      -            yes  -
String         -   -    -      -        yes    -       -      -     -      -            yes  -
Boolean        -   -    -      -        -      yes     -      -     -      -            yes  -
Status         -   -    -      -        -      -       yes    -     -      -            yes  -
[Int]          -   -    -      -        -      -       -      yes   yes    -            yes  -
[Long]         -   -    -      -        -      -       -      -     yes    -            yes  -
{String:Int}   -   -    -      -        -      -       -      -     -      yes          yes  -
Json           yes yes  yes    yes      yes    yes     yes    yes   yes    yes          yes  yes
Int?           ?   ?    ?      -        -      -       -      -     -      -            yes  yes
Item           -   -    -      -        -      -       -      -     -      -            yes  -
"""
_FITTING = {"yes": [], "-": ["AFL2004"], "?": ["AFL2005"]}


def _cells(table: str) -> list[tuple[str, str, str]]:
    """The cells of a table, as row, column and content. Types are written without blanks."""
    header, *rows = (line.split() for line in table.strip().splitlines())
    return [
        (row, column, cell)
        for row, *cells in rows
        for column, cell in zip(header, cells, strict=True)
    ]


def _spaced(type: str) -> str:
    return type.replace(":", ": ")


@pytest.mark.parametrize(("value", "target", "cell"), _cells(FITS))
def test_a_value_fits(value: str, target: str, cell: str) -> None:
    found = given(_spaced(target), f"$.{INPUTS[_spaced(value)]}")
    assert found == _FITTING[cell]


# what arithmetic gives: left operand in the row, right operand in the column

ARITHMETIC = {
    "+": """
          Int    Long   Double Duration String Boolean [Int] Json
Int       Int    Long   Double -        -      -       -     Json
Long      Long   Long   Double -        -      -       -     Json
Double    Double Double Double -        -      -       -     Json
Duration  -      -      -      Duration -      -       -     Json
String    -      -      -      -        -      -       -     -
Boolean   -      -      -      -        -      -       -     -
[Int]     -      -      -      -        -      -       -     -
Json      Json   Json   Json   Json     -      -       -     Json
""",
    "*": """
          Int      Long     Double   Duration String Json
Int       Int      Long     Double   Duration -      Json
Long      Long     Long     Double   Duration -      Json
Double    Double   Double   Double   Duration -      Json
Duration  Duration Duration Duration -        -      Json
String    -        -        -        -        -      -
Json      Json     Json     Json     Json     -      Json
""",
    "/": """
          Int      Long     Double   Duration String Json
Int       Double   Double   Double   -        -      Double
Long      Double   Double   Double   -        -      Double
Double    Double   Double   Double   -        -      Double
Duration  Duration Duration Duration Double   -      Json
String    -        -        -        -        -      -
Json      Double   Double   Double   Double   -      Double
""",
    "%": """
          Int    Long   Double Duration Json
Int       Int    Long   Double -        Json
Long      Long   Long   Double -        Json
Duration  -      -      -      Duration Json
Boolean   -      -      -      -        -
""",
    "++": """
          Int    String Boolean Duration Status [Int]  [Long] [String] {String:Int} Json
Int       -      String -       -        -      -      -      -        -            String
String    String String String  String   String -      -      -        -            String
Boolean   -      String -       -        -      -      -      -        -            String
Status    -      String -       -        -      -      -      -        -            String
[Int]     -      -      -       -        -      [Int]  [Long] -        -            Json
[Long]    -      -      -       -        -      [Long] [Long] -        -            Json
Json      String String String  String   String Json   Json   Json     -            Json
""",
}


def _type_of(expr: str) -> str:
    """The type of a chain of operators, from the compiled program."""
    program = compile_sources([("flow.afl", program_text(give("Json", expr)))]).program
    assert program is not None
    workflow = next(facet for facet in program.facets if facet.name == "shop.W")
    block = workflow.clauses[0].body
    assert isinstance(block, ir.Block)
    step = next(s for s in block.statements if isinstance(s, ir.Step) and s.name == "taken")
    chain = step.args[0].value
    assert isinstance(chain, ir.ChainExpr)
    return type_text(chain.type)


@pytest.mark.parametrize(
    ("op", "left", "right", "cell"),
    [(op, *cell) for op, table in ARITHMETIC.items() for cell in _cells(table)],
)
def test_an_operator_gives(op: str, left: str, right: str, cell: str) -> None:
    expr = f"$.{INPUTS[_spaced(left)]} {op} $.{INPUTS[_spaced(right)]}"
    if cell == "-":
        assert given("Json", expr) == ["AFL2006"]
    else:
        assert given("Json", expr) == []
        assert _type_of(expr) == cell


EQUAL = """
          Int Double Duration String Boolean Status Item [Int] [Long] [String] Json Int? String?
Int       yes yes    -        -      -       -      -    -     -      -        yes  yes  -
Double    yes yes    -        -      -       -      -    -     -      -        yes  yes  -
Duration  -   -      yes      -      -       -      -    -     -      -        yes  -    -
String    -   -      -        yes    -       -      -    -     -      -        yes  -    yes
Boolean   -   -      -        -      yes     -      -    -     -      -        yes  -    -
Status    -   -      -        -      -       yes    -    -     -      -        yes  -    -
Item      -   -      -        -      -       -      yes  -     -      -        yes  -    -
[Int]     -   -      -        -      -       -      -    yes   yes    -        yes  -    -
Json      yes yes    yes      yes    yes     yes    yes  yes   yes    yes      yes  yes  yes
Int?      yes yes    -        -      -       -      -    -     -      -        yes  yes  -
"""


@pytest.mark.parametrize("op", ["==", "!="])
@pytest.mark.parametrize(("left", "right", "cell"), _cells(EQUAL))
def test_equality_compares(op: str, left: str, right: str, cell: str) -> None:
    found = given("Boolean", f"$.{INPUTS[left]} {op} $.{INPUTS[right]}")
    assert found == ([] if cell == "yes" else ["AFL2011"])


ORDERED = """
          Int Long Double Duration String Boolean Status [Int] Json Int?
Int       yes yes  yes    -        -      -       -      -     yes  ?
Double    yes yes  yes    -        -      -       -      -     yes  ?
Duration  -   -    -      yes      -      -       -      -     yes  ?
String    -   -    -      -        yes    -       -      -     yes  ?
Boolean   -   -    -      -        -      -       -      -     -    ?
Status    -   -    -      -        -      -       -      -     -    ?
[Int]     -   -    -      -        -      -       -      -     -    ?
Json      yes yes  yes    yes      yes    -       -      -     yes  ?
Int?      ?   ?    ?      ?        ?      ?       ?      ?     ?    ?
"""
_ORDERING = {"yes": [], "-": ["AFL2006"], "?": ["AFL2005"]}


@pytest.mark.parametrize("op", ["<", "<=", ">", ">="])
@pytest.mark.parametrize(("left", "right", "cell"), _cells(ORDERED))
def test_order_compares(op: str, left: str, right: str, cell: str) -> None:
    found = given("Boolean", f"$.{INPUTS[left]} {op} $.{INPUTS[right]}")
    assert found == _ORDERING[cell]


SEARCHES: list[Expression] = [
    ("an element is in a list", "Boolean", "$.int in $.ints", []),
    ("an Int may be in a list of Longs", "Boolean", "$.int in $.longs", []),
    ("a number is in a list of number literals", "Boolean", "$.int in [1, 2.5]", []),
    ("a text is never in a list of numbers", "Boolean", "$.text in $.ints", ["AFL2011"]),
    ("a text is not in a text: that is `contains`", "Boolean", '"a" in $.text', ["AFL2006"]),
    ("a key is in a map", "Boolean", '"tea" in $.counts', []),
    ("a number is no key of a map", "Boolean", "$.int in $.counts", ["AFL2011"]),
    ("nothing is in a number", "Boolean", "$.int in $.int", ["AFL2006"]),
    ("a list that may be null holds nothing yet", "Boolean", "1 in $.some", ["AFL2005"]),
    ("an element may be null", "Boolean", "$.maybe in $.ints", []),
    ("Json may hold anything", "Boolean", "$.text in $.json", []),
    ("`not in` is checked like `in`", "Boolean", "$.text not in $.ints", ["AFL2011"]),
    ("a list contains an element", "Boolean", "$.ints contains 3", []),
    ("a list of numbers contains no text", "Boolean", '$.ints contains "a"', ["AFL2011"]),
    ("a text contains a text", "Boolean", '$.text contains "a"', []),
    ("a text contains no number", "Boolean", "$.text contains 1", ["AFL2011"]),
    ("a map contains a key", "Boolean", '$.counts contains "tea"', []),
    ("a number contains nothing", "Boolean", "$.int contains 1", ["AFL2006"]),
    ("startsWith takes two texts", "Boolean", '$.text startsWith "a"', []),
    ("startsWith takes no number", "Boolean", "$.text startsWith 1", ["AFL2006"]),
    ("endsWith takes no list", "Boolean", '$.texts endsWith "a"', ["AFL2006"]),
    ("endsWith takes nothing that may be null", "Boolean", '$.word endsWith "a"', ["AFL2005"]),
]

CONDITIONS: list[Expression] = [
    ("`!` takes a Boolean", "Boolean", "!$.flag", []),
    ("`!` takes no number", "Boolean", "!$.int", ["AFL2006"]),
    ("`!` takes nothing that may be null", "Boolean", "!$.perhaps", ["AFL2005"]),
    ("`-` takes a number", "Int", "-$.int", []),
    ("`-` takes a Duration", "Duration", "-$.time", []),
    ("`-` takes no text", "Int", "-$.text", ["AFL2006"]),
    ("`&&` takes Booleans", "Boolean", "$.flag && $.json", []),
    ("`&&` names each operand that is none", "Boolean", "$.int && $.text", ["AFL2006"] * 2),
    ("`||` takes nothing that may be null", "Boolean", "$.flag || $.perhaps", ["AFL2005"]),
    ("a chain names its one wrong operand", "Boolean", "$.flag && $.int && $.flag", ["AFL2006"]),
    ("one wrong operand spoils no further one", "Int", "$.text - 1 - 2", ["AFL2006"]),
]

EXPRESSIONS = {"search": SEARCHES, "condition": CONDITIONS}


@pytest.mark.parametrize(
    ("target", "expr", "expected"),
    [
        pytest.param(target, expr, expected, id=f"{table}: {words}")
        for table, rows in EXPRESSIONS.items()
        for words, target, expr, expected in rows
    ],
)
def test_expressions(target: str, expr: str, expected: list[str]) -> None:
    assert given(target, expr) == expected
