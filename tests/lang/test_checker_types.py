"""Types: numbers, null, enums, schemas, lists, maps, Json, defaults, and steps as arguments.

Each row says in words what it shows. What operators take and give is in `test_checker_operators`.
"""

from __future__ import annotations

import pytest

from afl.lang.api import compile_sources
from afl.lang.diagnostics.edits import apply_edits
from tests.lang.checker_world import Expression, diagnose, give, given, program_text
from tests.lang.fragments import Row, each_of

NUMBERS: list[Expression] = [
    ("a small number is an Int", "Int", "2147483647", []),
    ("a larger one is a Long", "Int", "2147483648", ["AFL2004"]),
    ("the smallest Int can be written", "Int", "-2147483648", []),
    ("the smallest Long can be written", "Long", "-9223372036854775808", []),
    ("a whole number fits a Double", "Double", "3", []),
    ("a fraction fits no Int", "Int", "3.0", ["AFL2004"]),
    ("division gives a Double, even of Ints", "Int", "$.int / 2", ["AFL2004"]),
    ("a number is no Duration", "Duration", "30", ["AFL2004"]),
    ("a text of digits is no number", "Int", '"3"', ["AFL2004"]),
    ("a number is no text", "String", "3", ["AFL2004"]),
    ("joining turns it into text", "String", '"" ++ 3', []),
    ("two numbers are not joined into a text", "String", "1 ++ 2", ["AFL2006"]),
]

NULLS: list[Expression] = [
    ("null fits an optional", "Int?", "null", []),
    ("null fits nothing else", "Int", "null", ["AFL2004"]),
    ("null fits Json", "Json", "null", []),
    ("an optional does not fit the type", "Int", "$.maybe", ["AFL2005"]),
    ("nor where a wider type is wanted", "Double", "$.maybe", ["AFL2005"]),
    ("an optional of another type is another type", "String", "$.maybe", ["AFL2004"]),
    ("a default makes it fit", "Int", "$.maybe ?? 0", []),
    ("a default of a wider type widens", "Int", "$.maybe ?? 1.5", ["AFL2004"]),
    ("a default may be null itself", "Int?", "$.maybe ?? null", []),
    ("and leaves it optional", "Int", "$.maybe ?? $.maybe", ["AFL2005"]),
    ("a default of another type", "Int", '$.maybe ?? "none"', ["AFL2006"]),
    ("a default for what is never null", "Int", "$.int ?? 0", ["AFL2021"]),
    ("a second default after a sure one", "Int", "$.maybe ?? 1 ?? 2", ["AFL2021"]),
    ("Json may be null", "Int", "$.json ?? 1", []),
    ("arithmetic takes no null", "Int", "$.maybe + 1", ["AFL2005"]),
    ("joining takes no null", "String", '"a" ++ $.word', ["AFL2005"]),
    ("`&&` narrows its right side", "Boolean", "$.maybe != null && $.maybe > 1", []),
    ("so does null on the left", "Boolean", "null != $.maybe && $.maybe > 1", []),
    ("parentheses do not matter", "Boolean", "($.maybe != null) && ($.maybe > 1)", []),
    ("and the sides after", "Boolean", "$.maybe != null && $.flag && $.maybe > 1", []),
    ("the left side is not narrowed", "Boolean", "$.maybe > 1 && $.maybe != null", ["AFL2005"]),
    ("`||` narrows after a test for null", "Boolean", "$.maybe == null || $.maybe > 1", []),
    ("but not after the opposite", "Boolean", "$.maybe != null || $.maybe > 1", ["AFL2005"]),
    ("`!` turns a test around", "Boolean", "!($.maybe == null) && $.maybe > 1", []),
    (
        "a test of one thing says nothing about another",
        "Boolean",
        '$.maybe != null && $.word startsWith "a"',
        ["AFL2005"],
    ),
    ("the field of a narrowed record", "Boolean", '$.thing != null && $.thing.name == "a"', []),
    ("a field may be null itself", "String", "$.item.note", ["AFL2005"]),
    (
        "and is narrowed by its own path",
        "Boolean",
        '$.item.note != null && $.item.note startsWith "a"',
        [],
    ),
    ("a field of what may be null", "String", "$.thing.name", ["AFL2005"]),
    ("an element of what may be null", "Int", "$.some[0]", ["AFL2005"]),
    ("an index that may be null", "Int", "$.ints[$.maybe]", ["AFL2005"]),
    ("a test that is always true", "Boolean", "$.int != null", ["AFL2020"]),
    ("a second test is always true", "Boolean", "$.word != null && $.word != null", ["AFL2020"]),
    ("Json may be tested", "Boolean", "$.json == null", []),
]

ENUMS: list[Expression] = [
    ("a member stands alone where the enum is wanted", "Status", "paid", []),
    ("also where it may be null", "Status?", "paid", []),
    ("and in a list", "[Status]", "[paid, open]", []),
    ("and in a map", "{String: Status}", "#{first: paid}", []),
    ("an unknown member", "Status", "payed", ["AFL1019"]),
    ("one unknown member in a list", "[Status]", "[paid, opne]", ["AFL1019"]),
    ("a text is no member", "Status", '"paid"', ["AFL2004"]),
    ("a member is no text", "String", "$.status", ["AFL2004"]),
    ("a member can be joined to a text", "String", '"now " ++ $.status', []),
    ("a member on the right of a comparison", "Boolean", "$.status == paid", []),
    ("a member on the left", "Boolean", "paid == $.status", []),
    ("a member and one that may be null", "Boolean", "$.state != paid", []),
    ("an unknown member in a comparison", "Boolean", "$.status == payed", ["AFL1019"]),
    ("a text in a comparison", "Boolean", '$.status == "paid"', ["AFL2011"]),
    ("a list of members", "Boolean", "$.status in [open, paid]", []),
    ("a list of texts", "Boolean", '$.status in ["paid"]', ["AFL2004"]),
    ("a member as default", "Status", "$.state ?? open", []),
    ("a member as default where Json is wanted", "Json", "$.state ?? open", []),
    ("members have no order", "Boolean", "$.status < shipped", ["AFL2006"]),
    ("a member with the name of its enum", "Status", "Status.paid", ["AFL1011"]),
    ("Json says nothing about members", "Json", "paid", ["AFL1011"]),
    ("an input without `$.` is told as such", "Status", "status", ["AFL1021"]),
    ("and the member beside it is left in peace", "Boolean", "status == paid", ["AFL1021"]),
]

SCHEMAS: list[Expression] = [
    ("a map literal makes a record", "Item", '#{name: "tea"}', []),
    ("also where it may be null", "Item?", '#{name: "tea"}', []),
    ("and in a list", "[Item]", '[#{name: "tea"}, $.item]', []),
    ("and beside one in a comparison", "Boolean", '$.item == #{name: "tea"}', []),
    ("all fields can be given", "Item", '#{name: "a", cents: 1, note: null, tags: ["x"]}', []),
    ("a field is missing", "Item", "#{cents: 1}", ["AFL2002"]),
    ("a field is unknown", "Item", '#{name: "tea", weight: 3}', ["AFL1014"]),
    ("a misspelt field is one mistake", "Item", '#{nmae: "tea"}', ["AFL1014"]),
    ("a field of the wrong type", "Item", "#{name: 3}", ["AFL2004"]),
    ("a field that may be null", "Item", "#{name: $.word}", ["AFL2005"]),
    ("a field given twice", "Item", '#{name: "a", name: "b"}', ["AFL2013"]),
    ("a record is no map", "{String: Json}", "$.item", ["AFL2004"]),
    ("a map is no record", "Item", "$.counts", ["AFL2004"]),
    ("a record fits Json", "Json", "$.item", []),
    ("a field is read", "String", "$.item.name", []),
    ("an unknown field is read", "String", "$.item.weight", ["AFL1014"]),
    ("a field of a field that has none", "String", "$.item.name.first", ["AFL2010"]),
    ("a field of a list", "String", "$.item.tags.first", ["AFL2010"]),
]

COLLECTIONS: list[Expression] = [
    ("the empty list fits every list", "[Int]", "[]", []),
    ("the empty map fits every map", "{String: Int}", "#{}", []),
    ("numbers in a list are widened", "[Double]", "[1, 2.5]", []),
    ("but not narrowed", "[Int]", "[1, 2.5]", ["AFL2004"]),
    ("an element of the wrong type is named alone", "[String]", '[1, "a"]', ["AFL2004"]),
    ("each of them", "[String]", '[1, "a", true]', ["AFL2004", "AFL2004"]),
    ("null in a list of optionals", "[Int?]", "[1, null]", []),
    ("null in another list", "[Int]", "[1, null]", ["AFL2004"]),
    ("mixed types where nothing is known", "Boolean", '$.int in [1, "a"]', ["AFL2012"]),
    ("mixed types where Json is wanted", "Json", '[1, "a", [true, 2]]', []),
    ("mixed types in a list of Json", "[Json]", '[1, "a"]', []),
    ("mixed types inside a map that is Json", "Json", '#{a: [1, "x"], b: #{c: [1, true]}}', []),
    ("a single value is no list", "[String]", "$.text", ["AFL2004"]),
    ("lists are joined", "[Int]", "$.ints ++ [1]", []),
    ("a wrong element in a joined list", "[Int]", '$.ints ++ ["a"]', ["AFL2004"]),
    ("an element is no list to join", "[Int]", "$.ints ++ 1", ["AFL2006"]),
    ("a list is indexed by a number", "Int", "$.ints[0]", []),
    ("a Long will do", "Int", "$.ints[$.long]", []),
    ("a list is not indexed by a text", "Int", '$.ints["0"]', ["AFL2009"]),
    ("a list is not indexed by a fraction", "Int", "$.ints[0.5]", ["AFL2009"]),
    ("a map is indexed by a text", "Int", '$.counts["tea"]', []),
    ("a map is not indexed by a number", "Int", "$.counts[0]", ["AFL2009"]),
    ("a key is read like a field", "Int", "$.counts.tea", []),
    ("a text has no index", "String", "$.text[0]", ["AFL2009"]),
    ("a record has no index", "String", '$.item["name"]', ["AFL2009"]),
    ("Json is indexed by anything", "Int", '$.json[0]["a"].b', []),
    ("a value of the wrong type in a map", "{String: Int}", '#{a: "x"}', ["AFL2004"]),
    ("a key given twice", "{String: Int}", '#{a: 1, "a": 2}', ["AFL2013"]),
    ("a map of mixed values fits a map of Json", "{String: Json}", '#{a: 1, b: "x"}', []),
]

STEPS: list[Expression] = [
    ("what a step returns is a value", "Int", "count.n", []),
    ("a whole step is none", "Int", "count", ["AFL2016"]),
    ("not even where Json is wanted", "Json", "count", ["AFL2016"]),
    ("nor in a list", "[Json]", "[count]", ["AFL2016"]),
    ("nor in a map", "Json", "#{a: count}", ["AFL2016"]),
    ("a whole step is not added to", "Int", "count + 1", ["AFL2016"]),
    ("a whole step is not compared", "Boolean", "count == null", ["AFL2016"]),
    ("two whole steps are not compared", "Boolean", "count == count", ["AFL2016", "AFL2016"]),
    ("a whole step is no condition", "Boolean", "!count", ["AFL2016"]),
    ("a whole step is no index", "Int", "$.ints[count]", ["AFL2016"]),
]

EXPRESSIONS = {
    "numbers": NUMBERS,
    "null": NULLS,
    "enums": ENUMS,
    "schemas": SCHEMAS,
    "lists and maps": COLLECTIONS,
    "steps": STEPS,
}


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


CASES: list[Row] = [
    (
        "a case narrows its block",
        "workflow W(word: String?) andThen when {"
        " case $.word != null => { item = Item(name = $.word) sys.log(item = item) }"
        " case _ => { } }",
        [],
    ),
    (
        "a test for null narrows the cases after it",
        "workflow W(word: String?) andThen when {"
        " case $.word == null => { }"
        ' case $.word startsWith "a" => { }'
        " case _ => { item = Item(name = $.word) sys.log(item = item) } }",
        [],
    ),
    (
        "a case narrows no other case",
        "workflow W(word: String?) andThen when {"
        " case $.word != null => { }"
        " case _ => { item = Item(name = $.word) sys.log(item = item) } }",
        ["AFL2005"],
    ),
    (
        "a case narrows no later clause",
        "workflow W(word: String?) andThen when { case $.word != null => { } case _ => { } }"
        " andThen { item = Item(name = $.word) sys.log(item = item) }",
        ["AFL2005"],
    ),
    (
        "narrowing reaches into nested blocks",
        "workflow W(word: String?, names: [String]) andThen when {"
        " case $.word != null => { count = Count() andThen foreach name in $.names {"
        " item = Item(name = $.word ++ $.name) sys.log(item = item) } }"
        " case _ => { } }",
        [],
    ),
    (
        "the result of a step is narrowed too",
        "event facet Find() => (name: String?)\n"
        "workflow W() andThen { found = Find() } andThen when {"
        " case found.name != null => { item = Item(name = found.name) sys.log(item = item) }"
        " case _ => { } }",
        [],
    ),
    (
        "a condition of a case is a Boolean",
        "workflow W(n: Int) andThen when { case $.n => { } case _ => { } }",
        ["AFL2007"],
    ),
    (
        "a condition that may be null",
        "workflow W(sure: Boolean?) andThen when { case $.sure => { } case _ => { } }",
        ["AFL2005"],
    ),
    (
        "a whole step as a condition",
        "workflow W() andThen { count = Count() sys.assert(count) }",
        ["AFL2016"],
    ),
    ("an assertion of a number", "workflow W(n: Int) andThen { sys.assert($.n) }", ["AFL2007"]),
    ("an assertion of Json", "workflow W(n: Json) andThen { sys.assert($.n) }", []),
]

LOOPS: list[Row] = [
    (
        "foreach goes over a list, and its variable is an element",
        "workflow W(names: [String]) andThen foreach name in $.names"
        " { item = Item(name = $.name) sys.log(item = item) }",
        [],
    ),
    (
        "an element of the wrong type",
        "workflow W(sizes: [Int]) andThen foreach size in $.sizes"
        " { item = Item(name = $.size) sys.log(item = item) }",
        ["AFL2004"],
    ),
    (
        "foreach over Json is checked at run time",
        "workflow W(names: Json) andThen foreach name in $.names"
        " { item = Item(name = $.name) sys.log(item = item) }",
        [],
    ),
    (
        "foreach over a map, and nothing about its variable",
        "workflow W(sizes: {String: Int}) andThen foreach size in $.sizes"
        " { item = Item(name = $.size) sys.log(item = item) }",
        ["AFL2008"],
    ),
    (
        "foreach over a list that may be null",
        "workflow W(sizes: [Int]?) andThen foreach size in $.sizes { sys.log(size = $.size) }",
        ["AFL2008"],
    ),
    (
        "foreach over such a list with a default",
        "workflow W(sizes: [Int]?) andThen foreach size in $.sizes ?? []"
        " { sys.log(size = $.size) }",
        [],
    ),
    (
        "a limit of nothing",
        "workflow W(sizes: [Int]) andThen foreach size in $.sizes limit 0"
        " { sys.log(size = $.size) }",
        ["AFL2022"],
    ),
    (
        "a limit that is computed to nothing",
        "workflow W(sizes: [Int]) andThen foreach size in $.sizes limit 3 - 4"
        " { sys.log(size = $.size) }",
        ["AFL2022"],
    ),
    (
        "a limit that is no number",
        "workflow W(sizes: [Int]) andThen foreach size in $.sizes limit 2s"
        " { sys.log(size = $.size) }",
        ["AFL2004"],
    ),
    (
        "a limit that the run decides",
        "workflow W(sizes: [Int], most: Int) andThen foreach size in $.sizes limit $.most"
        " { sys.log(size = $.size) }",
        [],
    ),
]

DEFAULTS: list[Row] = [
    ("a default of the type", "event facet F(a: Int = 1, b: [String] = [])", []),
    ("a default of another type", 'event facet F(a: Int = "x")', ["AFL2004"]),
    ("null as the default of an optional", "event facet F(a: Int? = null)", []),
    ("null as another default", "event facet F(a: Int = null)", ["AFL2004"]),
    ("a member as default", "event facet F(a: Status = open)", []),
    ("an unknown member as default", "event facet F(a: Status = opne)", ["AFL1019"]),
    ("a record as default", 'event facet F(a: Item = #{name: "tea"})', []),
    ("arithmetic in a default", "event facet F(a: Duration = 2 * 30s, b: Int = 7 % 2)", []),
    ("a default that reads an input", "event facet F(a: Int, b: Int = $.a)", ["AFL2014"]),
    ("a default that reads a bare name", "event facet F(a: Int, b: Int = a)", ["AFL2014"]),
    ("a member with its enum", "event facet F(a: Status = Status.open)", ["AFL2014"]),
    ("an input inside a list", "event facet F(a: Int, b: [Int] = [1, $.a])", ["AFL2014"]),
    ("a default of a field", "schema S { a: Int = true }", ["AFL2004"]),
    ("a default of a return", 'event facet F() => (a: Int = "x")', ["AFL2004"]),
    ("division by zero", "event facet F(a: Double = 1 / 0)", ["AFL2023"]),
    ("remainder by zero", "event facet F(a: Int = 1 % 0)", ["AFL2023"]),
    ("division by zero inside a list", "event facet F(a: [Double] = [1 / 0])", ["AFL2023"]),
    ("an Int that is too large", "event facet F(a: Int = 2147483647 + 1)", ["AFL2023"]),
    ("an Int that is too small", "event facet F(a: Int = -2147483648 - 1)", ["AFL2023"]),
    ("a Long that is too large", "event facet F(a: Long = 9223372036854775807 + 1)", ["AFL2023"]),
    ("the largest Int", "event facet F(a: Int = 2147483646 + 1)", []),
    (
        "a default whose type is unknown is one mistake",
        "event facet F(a: Stat = open)",
        ["AFL1007"],
    ),
    ("a policy reads an input", "event facet F(n: Int) with Priority(level = $.n)", ["AFL2014"]),
    (
        "the key of a policy may",
        'event facet F(n: Int) with Concurrency(max = 1, key = "" ++ $.n)',
        [],
    ),
    (
        "a schedule reads an input",
        "workflow W(n: Int) andThen { sys.log(n = $.n) }\nschedule s = W(n = $.n) every 1h",
        ["AFL2014"],
    ),
    (
        "an implicit reads a step",
        "event facet F(n: Int)\nimplicit usual = F(n = count.n)",
        ["AFL2014"],
    ),
]

CALLS: list[Row] = [
    (
        "a parameter with a default or of an optional type can be left out",
        "event facet F(a: Int = 1, b: Int?)\nworkflow W() andThen { f = F() }",
        [],
    ),
    (
        "another one cannot",
        "event facet F(a: Int)\nworkflow W() andThen { f = F() }",
        ["AFL2002"],
    ),
    (
        "all missing ones are named together",
        "event facet F(a: Int, b: Int)\nworkflow W() andThen { f = F() }",
        ["AFL2002"],
    ),
    (
        "a misspelt argument is one mistake",
        "event facet F(amount: Int)\nworkflow W() andThen { f = F(amuont = 1) }",
        ["AFL2001"],
    ),
    (
        "an argument given twice",
        "event facet F(a: Int)\nworkflow W() andThen { f = F(a = 1, a = 2) }",
        ["AFL2003"],
    ),
    (
        "a record made by a step is a value",
        "event facet F(item: Item)\n"
        'workflow W() andThen { item = Item(name = "tea") f = F(item = item) }',
        [],
    ),
    (
        "a record without a field",
        "event facet F(item: Item)\nworkflow W() andThen { item = Item() f = F(item = item) }",
        ["AFL2002"],
    ),
    (
        "a record with an unknown field",
        "event facet F(item: Item)\n"
        'workflow W() andThen { item = Item(name = "tea", weight = 1) f = F(item = item) }',
        ["AFL1014"],
    ),
]

#: Steps as arguments.
HANDED: list[Row] = [
    (
        "a step is handed to a facet that reads it",
        "event facet Ship(order: Order)\n"
        'workflow W() andThen { order = Order(id = "1") shipped = Ship(order = order) }',
        [],
    ),
    (
        "its attributes are read in a body",
        "facet Twice(order: Order) => (text: String) andThen"
        " { yield Twice(text = $.order.id ++ $.order.id) }",
        [],
    ),
    (
        "an attribute that it does not have",
        "facet Twice(order: Order) => (text: String) andThen { yield Twice(text = $.order.name) }",
        ["AFL1013"],
    ),
    (
        "a step that was handed over is handed on",
        "event facet Ship(order: Order)\n"
        "facet Send(order: Order) andThen { shipped = Ship(order = $.order) }",
        [],
    ),
    (
        "a value is no step",
        'event facet Ship(order: Order)\nworkflow W() andThen { shipped = Ship(order = "1") }',
        ["AFL2017"],
    ),
    (
        "a step of another facet",
        "event facet Ship(order: Order)\n"
        "workflow W() andThen { count = Count() shipped = Ship(order = count) }",
        ["AFL2017"],
    ),
    ("no step in a list", "event facet Ship(orders: [Order])", ["AFL2018"]),
    ("no step that may be null", "event facet Ship(order: Order?)", ["AFL2018"]),
    ("no step in a field", "schema Parcel { order: Order }", ["AFL2018"]),
    ("no step as a return", "event facet Find() => (order: Order)", ["AFL2018"]),
    (
        "no step into a workflow",
        "workflow W(order: Order) andThen { sys.log(id = $.order.id) }",
        ["AFL2018"],
    ),
]

SHAPES: list[Row] = [
    ("a schema that needs itself", "schema A { a: A }", ["AFL2019"]),
    ("two that need each other", "schema A { b: B }\nschema B { a: A }", ["AFL2019"]),
    ("an end by null, by a list, by a map", "schema A { a: A?, b: [A], c: {String: A} }", []),
    ("a map with other keys", "event facet F(a: {Int: String})", ["AFL2015"]),
    ("a map of maps", "event facet F(a: {String: {String: [Int]}})", []),
]

PROGRAMS = {
    "cases": CASES,
    "foreach": LOOPS,
    "defaults": DEFAULTS,
    "calls": CALLS,
    "steps as arguments": HANDED,
    "shapes": SHAPES,
}


@each_of(PROGRAMS)
def test_programs(fragment: str, expected: list[str]) -> None:
    assert diagnose(fragment) == expected


@pytest.mark.parametrize(
    ("target", "expr"),
    [
        ("Int", '"3"'),
        ("String", "3"),
        ("[String]", "$.text"),
        ("[String]", "[1, $.text]"),
        ("Status", '"paid"'),
        ("Boolean", '$.status == "paid"'),
        ("Boolean", '$.status in ["paid"]'),
        ("Int", "count"),
        ("Int", "count + 1"),
        ("Int", "$.int ?? 0"),
        ("String", '$.text + "a"'),
        ("[Int]", "$.ints + [1]"),
        ("Int", "$.int ++ 1"),
        ("Item", '#{nmae: "tea"}'),
        ("Status", "Status.paid"),
        ("Status", "payd"),
        ("Int", "int"),
        ("Int", "$.count.n"),
        ("Int", "cuont.n"),
    ],
)
def test_the_suggested_edit_mends_the_program(target: str, expr: str) -> None:
    text = program_text(give(target, expr))
    (found,) = compile_sources([("flow.afl", text)]).diagnostics
    (suggestion,) = found.suggestions
    mended = apply_edits(text, suggestion.edits)
    assert mended != text
    assert compile_sources([("flow.afl", mended)]).diagnostics == ()
