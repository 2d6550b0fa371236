"""How bodies end: what a body catches, and what it yields.

Each row says in words what it shows; a fragment stands in one namespace.
"""

from __future__ import annotations

from tests.lang.flow_world import body_of, codes
from tests.lang.fragments import Row, each_of

CATCH: list[Row] = [
    (
        "at a step, it may yield to the step's facet, and readers notice nothing",
        body_of('f = Fetch() catch { yield Fetch(total = 0, text = "") } yield W(n = f.total)'),
        [],
    ),
    (
        "returns that it does not yield may be null",
        body_of(
            "f = Fetch() catch { yield Fetch(total = 0) }"
            ' yield W(n = f.total) sys.log(t = f.text ?? "-")'
        ),
        [],
    ),
    (
        "and must be handled",
        body_of("f = Fetch() catch { } yield W(n = f.total)"),
        ["AFL2005"],
    ),
    (
        "with a when, every case must yield to be sure",
        body_of(
            'f = Fetch() catch when { case error.type == "Timeout" => { yield Fetch(total = 0) }'
            " case _ => { } } yield W(n = f.total)"
        ),
        ["AFL2005"],
    ),
    (
        "at a block, it replaces what the block yields",
        body_of("f = Fetch() yield W(n = f.total)") + " catch { yield W(n = 0) }",
        [],
    ),
    (
        "at a block, it must yield too",
        body_of("f = Fetch() yield W(n = f.total)") + " catch { sys.log(m = error.message) }",
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
        body_of("f = Fetch() catch { sys.log(t = error.type, m = error.message) }", "W()"),
        [],
    ),
    (
        "and nothing else",
        body_of("f = Fetch() catch { sys.log(t = error.code) }", "W()"),
        ["AFL1014"],
    ),
    (
        "outside there is no error",
        body_of("f = Fetch() sys.log(m = error.message)", "W()"),
        ["AFL3018"],
    ),
    (
        "the error is seen in a step's body inside the catch",
        body_of("f = Fetch() catch { g = Fetch() andThen { sys.log(m = error.message) } }", "W()"),
        [],
    ),
    (
        "a step in a catch may not be called error",
        body_of('f = Fetch() catch { error = Send(text = "x") }', "W()"),
        ["AFL1017"],
    ),
    (
        "the catch of a block does not see the steps of the block",
        body_of("f = Fetch()", "W()") + " catch { sys.log(t = f.text) }",
        ["AFL1016"],
    ),
    (
        "the catch of a step does not see its returns",
        body_of("f = Fetch() catch { sys.log(t = f.text) }", "W()"),
        ["AFL3015"],
    ),
    (
        "but its parameters",
        body_of("f = Fetch() catch { sys.log(t = f.id) }", "W()"),
        [],
    ),
]

YIELDS: list[Row] = [
    ("a workflow yields its return", body_of("yield W(n = 1)"), []),
    ("never", body_of("f = Fetch()"), ["AFL3003"]),
    ("some of two returns", body_of("yield W(n = 1)", "W() => (n: Int, m: Int)"), ["AFL3003"]),
    ("an optional return need not be yielded", body_of("f = Fetch()", "W() => (n: Int?)"), []),
    ("nor one with a default", body_of("f = Fetch()", "W() => (n: Int = 3)"), []),
    (
        "in some cases only",
        "workflow W(x: Int) => (n: Int) andThen when"
        " { case $.x > 1 => { yield W(n = 1) } case _ => { } }",
        ["AFL3004"],
    ),
    (
        "in some cases of a step's body only",
        body_of(
            "f = Fetch() andThen when { case f.total > 1 => { yield W(n = 1) } case _ => { } }"
        ),
        ["AFL3004"],
    ),
    (
        "in every case of a step's body",
        body_of(
            "f = Fetch() andThen when { case f.total > 1 => { yield W(n = 1) }"
            " case _ => { yield W(n = 2) } }"
        ),
        [],
    ),
    (
        "in a step's catch only",
        body_of("f = Fetch() catch { yield W(n = 1) }"),
        ["AFL3004"],
    ),
    ("twice in one block", body_of("yield W(n = 1) yield W(n = 2)"), ["AFL3005"]),
    (
        "three times are two mistakes",
        body_of("yield W(n = 1) yield W(n = 2) yield W(n = 3)"),
        ["AFL3005"] * 2,
    ),
    ("twice in one statement", body_of("yield W(n = 1) with W(n = 2)"), ["AFL3005"]),
    ("in two clauses", body_of("yield W(n = 1)") + " andThen { yield W(n = 2) }", ["AFL3005"]),
    (
        "in a step's catch and after it",
        body_of("f = Fetch() catch { yield W(n = 0) } yield W(n = f.total ?? 1)"),
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
        body_of("f = Fetch()") + " andThen when"
        " { case f.total > 1 => { yield W(n = 1) } case _ => { yield W(n = 2) } }",
        [],
    ),
    (
        "lists are joined",
        body_of("yield W(n = [1])", "W() => (n: [Int])") + " andThen { yield W(n = [2]) }",
        [],
    ),
    (
        "different returns in two clauses",
        body_of("yield W(n = 1)", "W() => (n: Int, m: Int)") + " andThen { yield W(m = 2) }",
        [],
    ),
    (
        "to somebody else is one mistake, not two",
        body_of("f = Fetch() yield Fetch(total = 1)"),
        ["AFL3001"],
    ),
    (
        "to nobody inside a foreach is one mistake, not two",
        "workflow W(ids: [String]) => (n: [Int]) andThen foreach id in $.ids { yield V(n = [1]) }",
        ["AFL3001"],
    ),
    ("of an unknown return is one mistake, not two", body_of("yield W(m = 1)"), ["AFL3002"]),
    (
        "what a wrong yield reads is not idle",
        body_of('a = Note(text = "x") yield V(n = a.text)'),
        ["AFL3001"],
    ),
    ("of a wrong type", body_of('yield W(n = "one")'), ["AFL2004"]),
    ("of one return twice", body_of("yield W(n = 1, n = 2)"), ["AFL2003"]),
    ("by the full name", body_of("yield shop.W(n = 1)"), []),
    (
        "the body of a step yields for the step",
        body_of("s = Shape(size = 1) andThen { yield Shape(area = 2) } yield W(n = s.area)"),
        [],
    ),
    (
        "the body of a step that must, and does not",
        body_of("s = Shape(size = 1) andThen { f = Fetch() } yield W(n = s.area)"),
        ["AFL3003"],
    ),
    (
        "the body of a step that does in some cases",
        body_of(
            "s = Shape(size = 1) andThen when { case s.size > 1 => { yield Shape(area = 2) }"
            " case _ => { } } yield W(n = s.area)"
        ),
        ["AFL3004"],
    ),
    (
        "the body of an event facet's step may, and need not",
        body_of("f = Fetch() andThen { yield Fetch(total = f.total + 1) } yield W(n = f.total)"),
        [],
    ),
    (
        "a facet without a body, called without one",
        body_of("s = Shape(size = 1) yield W(n = s.area)"),
        ["AFL3013"],
    ),
    (
        "the body of a step reads what it is about to yield",
        body_of("s = Shape(size = 1) andThen { yield Shape(area = s.area) } yield W(n = s.area)"),
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

TABLES = {
    "catch": CATCH,
    "yields": YIELDS,
    "yields to mixins": MIXIN_YIELDS,
}


@each_of(TABLES)
def test_endings(fragment: str, expected: list[str]) -> None:
    assert codes(fragment) == expected
