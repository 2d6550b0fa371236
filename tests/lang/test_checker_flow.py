"""Blocks and data flow: what a clause sees, what a body yields, what waits for what.

Each row says in words what it shows; a fragment stands in one namespace.
"""

from __future__ import annotations

import pytest

from afl.lang.api import compile_sources

Row = tuple[str, str, list[str]]

#: What the fragments call. Every one of them is used by name only, so none needs to be.
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
    text = f"namespace shop {{{WORLD}{fragment}\n}}\n"
    return [diagnostic.code for diagnostic in compile_sources([("flow.afl", text)]).diagnostics]


def _body(statements: str, signature: str = "W(id: String) => (n: Int)") -> str:
    return f"workflow {signature} andThen {{ {statements} }}"


CLAUSES: list[Row] = [
    (
        "a clause reads a step of an earlier plain block",
        _body("a = Fetch()") + " andThen { yield W(n = a.total) }",
        [],
    ),
    (
        "a clause does not see the steps of a later one",
        _body("yield W(n = a.total)") + " andThen { a = Fetch() }",
        ["AFL1016"],
    ),
    (
        "the condition of a when reads an earlier clause",
        _body("a = Fetch()")
        + " andThen when { case a.total > 1 => { yield W(n = 1) } case _ => { yield W(n = 0) } }",
        [],
    ),
    (
        "a foreach goes over a list of an earlier clause",
        "facet Ids(ids: [String])\n"
        + _body('a = Ids(ids = ["x"])', "W() => (n: [Int])")
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
        _body("a = Fetch() andThen { b = Fetch() } yield W(n = b.total)"),
        ["AFL1016"],
    ),
    (
        "a later clause may use the name of a step again, and then means its own",
        _body("a = Fetch() yield W(n = a.total)", "W() => (n: Int, t: String)")
        + " andThen { a = Fetch() yield W(t = a.text) }",
        [],
    ),
    (
        "within one block a name is used once",
        _body("a = Fetch() a = Fetch() yield W(n = a.total)"),
        ["AFL1010"],
    ),
    (
        "a step's body may not reuse a name of the block around it",
        _body("a = Fetch() b = Fetch() andThen { a = Fetch() } yield W(n = a.total + b.total)"),
        ["AFL1010"],
    ),
    (
        "statements may stand in any order",
        _body("yield W(n = b.total) b = Fetch(id = a.text) a = Fetch()"),
        [],
    ),
    (
        "a step's body reads the block around it, its own step and the inputs",
        _body(
            "a = Fetch() b = Fetch(id = a.text) andThen"
            " { sys.log(x = a.total, y = b.total, z = $.id) } yield W(n = b.total)"
        ),
        [],
    ),
]

AFTER: list[Row] = [
    (
        "after adds an order without data",
        _body("a = Fetch() b = Send(text = $.id) after a", "W(id: String)"),
        [],
    ),
    ("after names a step", _body('b = Send(text = "x") after nobody', "W()"), ["AFL1011"]),
    ("a step cannot wait for itself", _body('b = Send(text = "x") after b', "W()"), ["AFL1015"]),
    (
        "after a step that the arguments read adds nothing",
        _body("a = Fetch() b = Send(text = a.text) after a", "W()"),
        ["AFL3019"],
    ),
    (
        "after the same step twice adds nothing",
        _body('a = Fetch() b = Send(text = "x") after a, a', "W()"),
        ["AFL3019"],
    ),
    (
        "a step in a body waits for the step of that body anyway",
        _body('a = Fetch() andThen { b = Send(text = "x") after a }', "W()"),
        ["AFL3019"],
    ),
    (
        "after may name a step of an earlier clause",
        _body("a = Fetch()", "W()") + ' andThen { b = Send(text = "x") after a }',
        [],
    ),
    (
        "a step that somebody waits for is not idle",
        _body('a = Note(text = "x") b = Send(text = "y") after a', "W()"),
        [],
    ),
]

CYCLES: list[Row] = [
    (
        "two steps that read each other",
        _body("a = Fetch(id = b.text) b = Fetch(id = a.text)", "W()"),
        ["AFL3007"],
    ),
    (
        "one that reads and one that waits",
        _body("a = Fetch() after b b = Fetch(id = a.text)", "W()"),
        ["AFL3007"],
    ),
    (
        "three in a ring are one mistake",
        _body("a = Fetch(id = c.text) b = Fetch(id = a.text) c = Fetch(id = b.text)", "W()"),
        ["AFL3007"],
    ),
    (
        "the body of a step waits for one that waits for the step",
        _body("a = Fetch() andThen { c = Fetch(id = b.text) } b = Fetch(id = a.text)", "W()"),
        ["AFL3007"],
    ),
    (
        "the same, deeper: through the yield of a body",
        _body(
            "a = Shape(size = 1) andThen { yield Shape(area = b.total) }"
            ' b = Fetch(id = "" ++ a.area) yield W(n = b.total)',
        ),
        ["AFL3007"],
    ),
    (
        "the catch of a step waits for one that waits for the step",
        _body('a = Fetch() catch { c = Fetch(id = b.text) } b = Fetch(id = a.text ?? "")', "W()"),
        ["AFL3007"],
    ),
    (
        "the key of a policy counts as reading",
        _body("a = Fetch() with Concurrency(max = 1, key = b.text) b = Fetch(id = a.text)", "W()"),
        ["AFL3007"],
    ),
    (
        "a step may read itself in its own body",
        _body("a = Fetch() andThen { b = Fetch(id = a.text) }", "W()"),
        [],
    ),
    (
        "a step that refers to itself in its arguments never starts",
        _body("a = Fetch(id = a.text)", "W()"),
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

CATCH: list[Row] = [
    (
        "at a step, it may yield to the step's facet, and readers notice nothing",
        _body('f = Fetch() catch { yield Fetch(total = 0, text = "") } yield W(n = f.total)'),
        [],
    ),
    (
        "returns that it does not yield may be null",
        _body(
            "f = Fetch() catch { yield Fetch(total = 0) }"
            ' yield W(n = f.total) sys.log(t = f.text ?? "-")'
        ),
        [],
    ),
    (
        "and must be handled",
        _body("f = Fetch() catch { } yield W(n = f.total)"),
        ["AFL2005"],
    ),
    (
        "with a when, every case must yield to be sure",
        _body(
            'f = Fetch() catch when { case error.type == "Timeout" => { yield Fetch(total = 0) }'
            " case _ => { } } yield W(n = f.total)"
        ),
        ["AFL2005"],
    ),
    (
        "at a block, it replaces what the block yields",
        _body("f = Fetch() yield W(n = f.total)") + " catch { yield W(n = 0) }",
        [],
    ),
    (
        "at a block, it must yield too",
        _body("f = Fetch() yield W(n = f.total)") + " catch { sys.log(m = error.message) }",
        ["AFL3004"],
    ),
    (
        "at the declaration, it stands before the body",
        "workflow W() => (n: Int) catch { yield W(n = 0) }"
        " andThen { f = Fetch() yield W(n = f.total) }",
        [],
    ),
    (
        "at the declaration, it must yield too",
        "workflow W() => (n: Int) catch { } andThen { f = Fetch() yield W(n = f.total) }",
        ["AFL3004"],
    ),
    (
        "at an event facet, it must yield what the handler would have returned",
        "event facet Ask() => (n: Int) catch { sys.log(m = error.message) }",
        ["AFL3003"],
    ),
    (
        "at an event facet, it does",
        "event facet Ask() => (n: Int) catch { yield Ask(n = 0) }",
        [],
    ),
    (
        "the error has a type and a message",
        _body("f = Fetch() catch { sys.log(t = error.type, m = error.message) }", "W()"),
        [],
    ),
    (
        "and nothing else",
        _body("f = Fetch() catch { sys.log(t = error.code) }", "W()"),
        ["AFL1014"],
    ),
    (
        "outside there is no error",
        _body("f = Fetch() sys.log(m = error.message)", "W()"),
        ["AFL3018"],
    ),
    (
        "the error is seen in a step's body inside the catch",
        _body("f = Fetch() catch { g = Fetch() andThen { sys.log(m = error.message) } }", "W()"),
        [],
    ),
    (
        "a step in a catch may not be called error",
        _body('f = Fetch() catch { error = Send(text = "x") }', "W()"),
        ["AFL1017"],
    ),
    (
        "the catch of a block does not see the steps of the block",
        _body("f = Fetch()", "W()") + " catch { sys.log(t = f.text) }",
        ["AFL1016"],
    ),
    (
        "the catch of a step does not see its returns",
        _body("f = Fetch() catch { sys.log(t = f.text) }", "W()"),
        ["AFL3015"],
    ),
    (
        "but its parameters",
        _body("f = Fetch() catch { sys.log(t = f.id) }", "W()"),
        [],
    ),
]

YIELDS: list[Row] = [
    ("a workflow yields its return", _body("yield W(n = 1)"), []),
    ("never", _body("f = Fetch()"), ["AFL3003"]),
    ("some of two returns", _body("yield W(n = 1)", "W() => (n: Int, m: Int)"), ["AFL3003"]),
    ("an optional return need not be yielded", _body("f = Fetch()", "W() => (n: Int?)"), []),
    ("nor one with a default", _body("f = Fetch()", "W() => (n: Int = 3)"), []),
    (
        "in some cases only",
        "workflow W(x: Int) => (n: Int) andThen when"
        " { case $.x > 1 => { yield W(n = 1) } case _ => { } }",
        ["AFL3004"],
    ),
    (
        "in some cases of a step's body only",
        _body("f = Fetch() andThen when { case f.total > 1 => { yield W(n = 1) } case _ => { } }"),
        ["AFL3004"],
    ),
    (
        "in every case of a step's body",
        _body(
            "f = Fetch() andThen when { case f.total > 1 => { yield W(n = 1) }"
            " case _ => { yield W(n = 2) } }"
        ),
        [],
    ),
    (
        "in a step's catch only",
        _body("f = Fetch() catch { yield W(n = 1) }"),
        ["AFL3004"],
    ),
    ("twice in one block", _body("yield W(n = 1) yield W(n = 2)"), ["AFL3005"]),
    (
        "three times are two mistakes",
        _body("yield W(n = 1) yield W(n = 2) yield W(n = 3)"),
        ["AFL3005"] * 2,
    ),
    ("twice in one statement", _body("yield W(n = 1) with W(n = 2)"), ["AFL3005"]),
    ("in two clauses", _body("yield W(n = 1)") + " andThen { yield W(n = 2) }", ["AFL3005"]),
    (
        "in a step's catch and after it",
        _body("f = Fetch() catch { yield W(n = 0) } yield W(n = f.total ?? 1)"),
        ["AFL3005"],
    ),
    (
        "in a clause and in a case of another",
        "workflow W(x: Int) => (n: Int) andThen { yield W(n = 1) } andThen when"
        " { case $.x > 1 => { yield W(n = 1) } case _ => { } }",
        ["AFL3005"],
    ),
    (
        "two cases are one path each",
        _body("f = Fetch()") + " andThen when"
        " { case f.total > 1 => { yield W(n = 1) } case _ => { yield W(n = 2) } }",
        [],
    ),
    (
        "lists are joined",
        _body("yield W(n = [1])", "W() => (n: [Int])") + " andThen { yield W(n = [2]) }",
        [],
    ),
    (
        "different returns in two clauses",
        _body("yield W(n = 1)", "W() => (n: Int, m: Int)") + " andThen { yield W(m = 2) }",
        [],
    ),
    (
        "to somebody else is one mistake, not two",
        _body("f = Fetch() yield Fetch(total = 1)"),
        ["AFL3001"],
    ),
    (
        "to nobody inside a foreach is one mistake, not two",
        "workflow W(ids: [String]) => (n: [Int]) andThen foreach id in $.ids { yield V(n = [1]) }",
        ["AFL3001"],
    ),
    ("of an unknown return is one mistake, not two", _body("yield W(m = 1)"), ["AFL3002"]),
    (
        "what a wrong yield reads is not idle",
        _body('a = Note(text = "x") yield V(n = a.text)'),
        ["AFL3001"],
    ),
    ("of a wrong type", _body('yield W(n = "one")'), ["AFL2004"]),
    ("of one return twice", _body("yield W(n = 1, n = 2)"), ["AFL2003"]),
    ("by the full name", _body("yield shop.W(n = 1)"), []),
    (
        "the body of a step yields for the step",
        _body("s = Shape(size = 1) andThen { yield Shape(area = 2) } yield W(n = s.area)"),
        [],
    ),
    (
        "the body of a step that must, and does not",
        _body("s = Shape(size = 1) andThen { f = Fetch() } yield W(n = s.area)"),
        ["AFL3003"],
    ),
    (
        "the body of a step that does in some cases",
        _body(
            "s = Shape(size = 1) andThen when { case s.size > 1 => { yield Shape(area = 2) }"
            " case _ => { } } yield W(n = s.area)"
        ),
        ["AFL3004"],
    ),
    (
        "the body of an event facet's step may, and need not",
        _body("f = Fetch() andThen { yield Fetch(total = f.total + 1) } yield W(n = f.total)"),
        [],
    ),
    (
        "a facet without a body, called without one",
        _body("s = Shape(size = 1) yield W(n = s.area)"),
        ["AFL3013"],
    ),
    (
        "the body of a step reads what it is about to yield",
        _body("s = Shape(size = 1) andThen { yield Shape(area = s.area) } yield W(n = s.area)"),
        ["AFL3015"],
    ),
    ("a workflow needs a body", "workflow W() => (n: Int)", ["AFL3016"]),
    ("a facet needs none", "facet F() => (n: Int)", []),
]

MIXIN_YIELDS: list[Row] = [
    (
        "a mixin with an alias can be yielded to by name",
        "facet F() => (n: Int) with Double(n = 1) as d"
        " andThen { yield F(n = 1) with Double(twice = 5) }",
        [],
    ),
    (
        "or by its alias",
        "facet F() => (n: Int) with Double(n = 1) as d"
        " andThen { yield F(n = 1) with d(twice = 5) }",
        [],
    ),
    (
        "of two mixins of one facet the name does not tell which",
        "facet F() => (n: Int) with Double(n = 1) as d with Double(n = 2) as e andThen"
        " { yield F(n = 1) with Double(twice = 5) }",
        ["AFL3014"],
    ),
    (
        "the aliases do",
        "facet F() => (n: Int) with Double(n = 1) as d with Double(n = 2) as e andThen"
        " { yield F(n = 1) with d(twice = 5) with e(twice = 6) }",
        [],
    ),
    (
        "a mixin without an alias cannot be yielded to",
        "facet F(n: Int) => (m: Int) with Double(n = 1) andThen"
        " { yield F(m = 1) with Double(twice = 5) }",
        ["AFL3001"],
    ),
    (
        "a mixin without a body needs the yield",
        "facet F() => (n: Int) with Shape(size = 1) as s andThen { yield F(n = $.s.size) }",
        ["AFL3003"],
    ),
    (
        "and gets it",
        "facet F() => (n: Int) with Shape(size = 1) as s andThen"
        " { yield F(n = $.s.size) with s(area = 2) }",
        [],
    ),
]

RECURSION: list[Row] = [
    ("a workflow that calls itself", _body("w = W(id = $.id) yield W(n = w.n)"), ["AFL3008"]),
    (
        "two that call each other are one mistake",
        "workflow A() => (n: Int) andThen { b = B() yield A(n = b.n) }"
        " workflow B() => (n: Int) andThen { a = A() yield B(n = a.n) }",
        ["AFL3008"],
    ),
    (
        "by way of a step's body",
        _body("f = Fetch() andThen { w = W(id = f.text) } yield W(n = f.total)"),
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
        _body("a = Double(n = 1) b = Double(n = a.twice) yield W(n = b.twice)"),
        [],
    ),
]

IDLE: list[Row] = [
    ("a record that nobody reads", _body('a = Note(text = "x") yield W(n = 1)'), ["AFL3009"]),
    ("a schema value that nobody reads", _body('a = Line(sku = "x") yield W(n = 1)'), ["AFL3009"]),
    ("a composed facet without effects", _body("a = Double(n = 1) yield W(n = 1)"), ["AFL3009"]),
    ("a pure event facet", _body("a = Pure(n = 1) yield W(n = 1)"), ["AFL3009"]),
    ("any other event facet has an effect", _body('a = Send(text = "x") yield W(n = 1)'), []),
    (
        "a composed facet with an effect inside",
        'facet Tell() andThen { s = Send(text = "x") }\n' + _body("a = Tell() yield W(n = 1)"),
        [],
    ),
    (
        "a facet that logs has an effect",
        "facet Tell() andThen { sys.log(a = 1) }\n" + _body("a = Tell() yield W(n = 1)"),
        [],
    ),
    ("read by a log", _body('a = Note(text = "x") sys.log(a = a.text) yield W(n = 1)'), []),
    ("read by an assertion", _body("a = Double(n = 1) sys.assert(a.twice > 1) yield W(n = 1)"), []),
    (
        "handed over as a step",
        "event facet Take(note: Note)\n" + _body('a = Note(text = "x") t = Take(note = a)', "W()"),
        [],
    ),
    (
        "of a chain only the last is idle",
        _body('a = Note(text = "x") b = Note(text = a.text) yield W(n = 1)'),
        ["AFL3009"],
    ),
    (
        "a step with a body does something",
        _body('a = Note(text = "x") andThen { s = Send(text = a.text) } yield W(n = 1)'),
        [],
    ),
]

TABLES = {
    "clauses": CLAUSES,
    "after": AFTER,
    "cycles": CYCLES,
    "foreach": FOREACH,
    "when": WHEN,
    "catch": CATCH,
    "yields": YIELDS,
    "yields to mixins": MIXIN_YIELDS,
    "recursion": RECURSION,
    "idle steps": IDLE,
}


@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        pytest.param(fragment, expected, id=f"{table}: {words}")
        for table, rows in TABLES.items()
        for words, fragment, expected in rows
    ],
)
def test_flow(fragment: str, expected: list[str]) -> None:
    assert codes(fragment) == expected
