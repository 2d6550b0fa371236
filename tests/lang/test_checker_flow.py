"""Blocks and data flow: what a clause sees, and what waits for what.

Each row says in words what it shows; a fragment stands in one namespace.
"""

from __future__ import annotations

from tests.lang.flow_world import body_of, codes
from tests.lang.fragments import Row, each_of

CLAUSES: list[Row] = [
    (
        "a clause reads a step of an earlier plain block",
        body_of("a = Fetch()") + " andThen { yield W(n = a.total) }",
        [],
    ),
    (
        "a clause does not see the steps of a later one",
        body_of("yield W(n = a.total)") + " andThen { a = Fetch() }",
        ["AFL1016"],
    ),
    (
        "the condition of a when reads an earlier clause",
        body_of("a = Fetch()")
        + " andThen when { case a.total > 1 => { yield W(n = 1) } case _ => { yield W(n = 0) } }",
        [],
    ),
    (
        "a foreach goes over a list of an earlier clause",
        "facet Ids(ids: [String])\n"
        + body_of('a = Ids(ids = ["x"])', "W() => (n: [Int])")
        + " andThen foreach id in a.ids { f = Fetch(id = $.id) yield W(n = [f.total]) }",
        [],
    ),
    (
        "steps inside a foreach cannot be seen from outside",
        "workflow W(ids: [String]) => (n: Int) andThen foreach id in $.ids { a = Fetch() }"
        " andThen { yield W(n = a.total) }",
        ["AFL1016"],
    ),
    (
        "steps inside a case cannot be seen from outside",
        "workflow W(x: Int) => (n: Int) andThen when"
        " { case $.x > 1 => { a = Fetch() } case _ => { } } andThen { yield W(n = a.total) }",
        ["AFL1016"],
    ),
    (
        "steps inside a step's body cannot be seen from outside",
        body_of("a = Fetch() andThen { b = Fetch() } yield W(n = b.total)"),
        ["AFL1016"],
    ),
    (
        "a later clause may use the name of a step again, and then means its own",
        body_of("a = Fetch() yield W(n = a.total)", "W() => (n: Int, t: String)")
        + " andThen { a = Fetch() yield W(t = a.text) }",
        [],
    ),
    (
        "within one block a name is used once",
        body_of("a = Fetch() a = Fetch() yield W(n = a.total)"),
        ["AFL1010"],
    ),
    (
        "a step's body may not reuse a name of the block around it",
        body_of("a = Fetch() b = Fetch() andThen { a = Fetch() } yield W(n = a.total + b.total)"),
        ["AFL1010"],
    ),
    (
        "statements may stand in any order",
        body_of("yield W(n = b.total) b = Fetch(id = a.text) a = Fetch()"),
        [],
    ),
    (
        "a step's body reads the block around it, its own step and the inputs",
        body_of(
            "a = Fetch() b = Fetch(id = a.text) andThen"
            " { sys.log(x = a.total, y = b.total, z = $.id) } yield W(n = b.total)"
        ),
        [],
    ),
]

AFTER: list[Row] = [
    (
        "after adds an order without data",
        body_of("a = Fetch() b = Send(text = $.id) after a", "W(id: String)"),
        [],
    ),
    ("after names a step", body_of('b = Send(text = "x") after nobody', "W()"), ["AFL1011"]),
    ("a step cannot wait for itself", body_of('b = Send(text = "x") after b', "W()"), ["AFL1015"]),
    (
        "after a step that the arguments read adds nothing",
        body_of("a = Fetch() b = Send(text = a.text) after a", "W()"),
        ["AFL3019"],
    ),
    (
        "after the same step twice adds nothing",
        body_of('a = Fetch() b = Send(text = "x") after a, a', "W()"),
        ["AFL3019"],
    ),
    (
        "a step in a body waits for the step of that body anyway",
        body_of('a = Fetch() andThen { b = Send(text = "x") after a }', "W()"),
        ["AFL3019"],
    ),
    (
        "after may name a step of an earlier clause",
        body_of("a = Fetch()", "W()") + ' andThen { b = Send(text = "x") after a }',
        [],
    ),
    (
        "a step that somebody waits for is not idle",
        body_of('a = Note(text = "x") b = Send(text = "y") after a', "W()"),
        [],
    ),
]

CYCLES: list[Row] = [
    (
        "two steps that read each other",
        body_of("a = Fetch(id = b.text) b = Fetch(id = a.text)", "W()"),
        ["AFL3007"],
    ),
    (
        "one that reads and one that waits",
        body_of("a = Fetch() after b b = Fetch(id = a.text)", "W()"),
        ["AFL3007"],
    ),
    (
        "three in a ring are one mistake",
        body_of("a = Fetch(id = c.text) b = Fetch(id = a.text) c = Fetch(id = b.text)", "W()"),
        ["AFL3007"],
    ),
    (
        "the body of a step waits for one that waits for the step",
        body_of("a = Fetch() andThen { c = Fetch(id = b.text) } b = Fetch(id = a.text)", "W()"),
        ["AFL3007"],
    ),
    (
        "the same, deeper: through the yield of a body",
        body_of(
            "a = Shape(size = 1) andThen { yield Shape(area = b.total) }"
            ' b = Fetch(id = "" ++ a.area) yield W(n = b.total)',
        ),
        ["AFL3007"],
    ),
    (
        "the catch of a step waits for one that waits for the step",
        body_of('a = Fetch() catch { c = Fetch(id = b.text) } b = Fetch(id = a.text ?? "")', "W()"),
        ["AFL3007"],
    ),
    (
        "the key of a policy counts as reading",
        body_of(
            "a = Fetch() with Concurrency(max = 1, key = b.text) b = Fetch(id = a.text)", "W()"
        ),
        ["AFL3007"],
    ),
    (
        "a step may read itself in its own body",
        body_of("a = Fetch() andThen { b = Fetch(id = a.text) }", "W()"),
        [],
    ),
    (
        "a step that refers to itself in its arguments never starts",
        body_of("a = Fetch(id = a.text)", "W()"),
        ["AFL1015"],
    ),
]

FOREACH: list[Row] = [
    (
        "lists of all iterations are joined",
        "workflow W(ids: [String]) => (n: [Int]) andThen foreach id in $.ids"
        " { f = Fetch(id = $.id) yield W(n = [f.total]) }",
        [],
    ),
    (
        "a single value has no room for all iterations",
        "workflow W(ids: [String]) => (n: Int) andThen foreach id in $.ids"
        " { f = Fetch(id = $.id) yield W(n = f.total) }",
        ["AFL3006"],
    ),
    (
        "an optional single value has not either",
        "workflow W(ids: [String]) => (n: Int?) andThen foreach id in $.ids"
        " { f = Fetch(id = $.id) yield W(n = f.total) }",
        ["AFL3006"],
    ),
    (
        "a list where the return is a single value is one mistake, not two",
        "workflow W(ids: [String]) => (n: Int) andThen foreach id in $.ids"
        " { f = Fetch(id = $.id) yield W(n = [f.total]) }",
        ["AFL2004"],
    ),
    (
        "a Json return takes lists",
        "workflow W(ids: [String]) => (n: Json) andThen foreach id in $.ids"
        " { f = Fetch(id = $.id) yield W(n = [f.total]) }",
        [],
    ),
    (
        "a Json return does not take single values",
        "workflow W(ids: [String]) => (n: Json) andThen foreach id in $.ids"
        " { f = Fetch(id = $.id) yield W(n = f.total) }",
        ["AFL3006"],
    ),
    (
        "only some iterations may yield; the list is just shorter",
        "workflow W(ids: [String]) => (n: [Int]) andThen foreach id in $.ids"
        " { f = Fetch(id = $.id) andThen when"
        " { case f.total > 0 => { yield W(n = [f.total]) } case _ => { } } }",
        [],
    ),
    (
        "a step inside an iteration may yield single values to its own facet",
        "workflow W(ids: [String]) => (n: [Int]) andThen foreach id in $.ids"
        " { s = Shape(size = 1) andThen { yield Shape(area = 2) } yield W(n = [s.area]) }",
        [],
    ),
    (
        "the catch inside an iteration is inside the iteration",
        "workflow W(ids: [String]) => (n: Int) andThen foreach id in $.ids"
        " { f = Fetch(id = $.id) catch { yield W(n = 0) } }",
        ["AFL3006"],
    ),
    (
        "the variable is read behind `$`",
        "workflow W(ids: [String]) => (n: [String]) andThen foreach id in $.ids"
        " { yield W(n = [id]) }",
        ["AFL1021"],
    ),
    (
        "the variable may not hide an input",
        "workflow W(ids: [String]) => (n: [[String]]) andThen foreach ids in $.ids"
        " { yield W(n = [[$.ids]]) }",
        ["AFL1017"],
    ),
    (
        "a foreach goes over a list",
        "workflow W(id: String) => (n: [Int]) andThen foreach c in $.id { yield W(n = [1]) }",
        ["AFL2008"],
    ),
    (
        "over a Json value it is checked in the run",
        "workflow W(ids: Json) => (n: [Json]) andThen foreach id in $.ids { yield W(n = [$.id]) }",
        [],
    ),
    (
        "a limit is at least one",
        "workflow W(ids: [String]) => (n: [Int]) andThen foreach id in $.ids limit 0"
        " { yield W(n = [1]) }",
        ["AFL2022"],
    ),
    (
        "nothing to go over",
        "workflow W() => (n: [Int]) andThen foreach id in [] { yield W(n = [1]) }",
        ["AFL3010"],
    ),
]

WHEN: list[Row] = [
    (
        "every case yields",
        "workflow W(x: Int) => (n: Int) andThen when"
        " { case $.x > 1 => { yield W(n = 1) } case _ => { yield W(n = 0) } }",
        [],
    ),
    (
        "there must be a default",
        "workflow W(x: Int) => (n: Int) andThen when { case $.x > 1 => { yield W(n = 1) } }",
        ["AFL3011"],
    ),
    (
        "the default comes last",
        "workflow W(x: Int) => (n: Int) andThen when"
        " { case _ => { yield W(n = 0) } case $.x > 1 => { yield W(n = 1) } }",
        ["AFL3012"],
    ),
    (
        "and only once",
        "workflow W(x: Int) => (n: Int) andThen when"
        " { case $.x > 1 => { yield W(n = 1) } case _ => { yield W(n = 0) }"
        " case _ => { yield W(n = 2) } }",
        ["AFL3012"],
    ),
    (
        "a condition is a Boolean",
        "workflow W(x: Int) => (n: Int) andThen when"
        " { case $.x => { yield W(n = 1) } case _ => { yield W(n = 0) } }",
        ["AFL2007"],
    ),
    (
        "the same condition again never decides",
        "workflow W(x: Int) => (n: Int) andThen when { case $.x > 1 => { yield W(n = 1) }"
        " case $.x > 1 => { yield W(n = 2) } case _ => { yield W(n = 0) } }",
        ["AFL3010"],
    ),
    (
        "nor does what is always false, or comes after what is always true",
        "workflow W(x: Int) => (n: Int) andThen when { case false => { yield W(n = 1) }"
        " case true => { yield W(n = 3) } case $.x > 1 => { yield W(n = 2) }"
        " case _ => { yield W(n = 0) } }",
        ["AFL3010", "AFL3010"],
    ),
    (
        "a test for null holds in its block, and after `== null` in the later cases",
        "workflow W(x: Int?, y: Int?) => (n: Int) andThen when { case $.x == null =>"
        " { yield W(n = 0) } case $.y != null => { yield W(n = $.x + $.y) }"
        " case _ => { yield W(n = $.x) } }",
        [],
    ),
    (
        "a test for null does not hold elsewhere",
        "workflow W(x: Int?) => (n: Int) andThen when { case $.x != null => { yield W(n = $.x) }"
        " case _ => { yield W(n = $.x) } }",
        ["AFL2005"],
    ),
]

RECURSION: list[Row] = [
    ("a workflow that calls itself", body_of("w = W(id = $.id) yield W(n = w.n)"), ["AFL3008"]),
    (
        "two that call each other are one mistake",
        "workflow A() => (n: Int) andThen { b = B() yield A(n = b.n) }"
        " workflow B() => (n: Int) andThen { a = A() yield B(n = a.n) }",
        ["AFL3008"],
    ),
    (
        "by way of a step's body",
        body_of("f = Fetch() andThen { w = W(id = f.text) } yield W(n = f.total)"),
        ["AFL3008"],
    ),
    (
        "by way of a mixin",
        "facet F(n: Int) => (m: Int) with F(n = 1) as f andThen { yield F(m = 1) }",
        ["AFL3008"],
    ),
    (
        "a case can end it",
        "workflow W(x: Int) => (n: Int) andThen when { case $.x < 1 => { yield W(n = 0) }"
        " case _ => { w = W(x = $.x - 1) yield W(n = w.n) } }",
        [],
    ),
    (
        "one case in the circle is enough",
        "workflow A(x: Int) => (n: Int) andThen { b = B(x = $.x) yield A(n = b.n) }"
        " workflow B(x: Int) => (n: Int) andThen when { case $.x < 1 => { yield B(n = 0) }"
        " case _ => { a = A(x = $.x - 1) yield B(n = a.n) } }",
        [],
    ),
    (
        "a foreach can end it",
        "workflow W(xs: [Int]) => (n: [Int]) andThen foreach x in $.xs"
        " { w = W(xs = []) yield W(n = w.n) }",
        [],
    ),
    (
        "a catch can end it",
        "workflow W() => (n: Int) andThen { f = Fetch() yield W(n = f.total) }"
        " catch { w = W() yield W(n = w.n) }",
        [],
    ),
    (
        "calling one facet twice is no recursion",
        body_of("a = Double(n = 1) b = Double(n = a.twice) yield W(n = b.twice)"),
        [],
    ),
]

IDLE: list[Row] = [
    ("a record that nobody reads", body_of('a = Note(text = "x") yield W(n = 1)'), ["AFL3009"]),
    (
        "a schema value that nobody reads",
        body_of('a = Line(sku = "x") yield W(n = 1)'),
        ["AFL3009"],
    ),
    ("a composed facet without effects", body_of("a = Double(n = 1) yield W(n = 1)"), ["AFL3009"]),
    ("a pure event facet", body_of("a = Pure(n = 1) yield W(n = 1)"), ["AFL3009"]),
    ("any other event facet has an effect", body_of('a = Send(text = "x") yield W(n = 1)'), []),
    (
        "a composed facet with an effect inside",
        'facet Tell() andThen { s = Send(text = "x") }\n' + body_of("a = Tell() yield W(n = 1)"),
        [],
    ),
    (
        "a facet that logs has an effect",
        "facet Tell() andThen { sys.log(a = 1) }\n" + body_of("a = Tell() yield W(n = 1)"),
        [],
    ),
    ("read by a log", body_of('a = Note(text = "x") sys.log(a = a.text) yield W(n = 1)'), []),
    (
        "read by an assertion",
        body_of("a = Double(n = 1) sys.assert(a.twice > 1) yield W(n = 1)"),
        [],
    ),
    (
        "handed over as a step",
        "event facet Take(note: Note)\n"
        + body_of('a = Note(text = "x") t = Take(note = a)', "W()"),
        [],
    ),
    (
        "of a chain only the last is idle",
        body_of('a = Note(text = "x") b = Note(text = a.text) yield W(n = 1)'),
        ["AFL3009"],
    ),
    (
        "a step with a body does something",
        body_of('a = Note(text = "x") andThen { s = Send(text = a.text) } yield W(n = 1)'),
        [],
    ),
]

TABLES = {
    "clauses": CLAUSES,
    "after": AFTER,
    "cycles": CYCLES,
    "foreach": FOREACH,
    "when": WHEN,
    "recursion": RECURSION,
    "idle steps": IDLE,
}


@each_of(TABLES)
def test_flow(fragment: str, expected: list[str]) -> None:
    assert codes(fragment) == expected
