"""Names: what is declared where, what a name means from a place, and what cannot be seen from it.

Each row says in words what it shows.
"""

from __future__ import annotations

import pytest

from afl.lang.api import compile_sources
from afl.lang.diagnostics.model import Diagnostic
from tests.lang.fragments import Row, each_of

#: In words what it shows, a fragment of a namespace, and what is said about it.
#: The same for the files of a program.
Files = tuple[str, list[str], list[str]]

#: What the fragments call.
WORLD = """
  enum Status { open, paid }
  schema Address { street: String, city: String? }
  facet Note(text: String)
  event facet Fetch(id: String = "") => (total: Int, text: String, to: Address)
  event facet Send(text: String)
"""


def _check(files: list[str]) -> list[Diagnostic]:
    sources = [(f"file{position}.afl", text) for position, text in enumerate(files)]
    return list(compile_sources(sources).diagnostics)


def _fragment(fragment: str) -> str:
    return f"namespace shop {{{WORLD}{fragment}\n}}\n"


def _body(statements: str, signature: str = "W(id: String)") -> str:
    return f"workflow {signature} andThen {{ {statements} }}"


MAIL = "namespace mail { event facet Send(to: String) enum Kind { short, long } }"
POST = "namespace post { event facet Send(to: String) schema Parcel { grams: Int } }"

LOOKUP: list[Files] = [
    (
        "a namespace goes on in another file",
        ["namespace a { event facet F() }", "namespace a { workflow W() andThen { f = F() } }"],
        [],
    ),
    (
        "the order of files means nothing",
        ["namespace a { workflow W() andThen { f = F() } }", "namespace a { event facet F() }"],
        [],
    ),
    (
        "a full name needs no use",
        [MAIL, 'namespace a { workflow W() andThen { s = mail.Send(to = "x") } }'],
        [],
    ),
    (
        "a short name needs one",
        [MAIL, 'namespace a { workflow W() andThen { s = Send(to = "x") } }'],
        ["AFL1005"],
    ),
    (
        "with a use a short name is found",
        [MAIL, 'namespace a { use mail workflow W() andThen { s = Send(to = "x") } }'],
        [],
    ),
    (
        "a use holds for its block only",
        [
            MAIL,
            'namespace a { use mail workflow W() andThen { s = Send(to = "x") } }',
            'namespace a { workflow V() andThen { s = Send(to = "x") } }',
        ],
        ["AFL1005"],
    ),
    (
        "the own namespace wins over a used one, which is then not needed",
        [
            MAIL,
            "namespace a { use mail event facet Send() workflow W() andThen { s = Send() } }",
        ],
        ["AFL1002"],
    ),
    (
        "two used namespaces with one name",
        [
            MAIL,
            POST,
            'namespace a { use mail use post workflow W() andThen { s = Send(to = "x") } }',
        ],
        ["AFL1006"],
    ),
    (
        "two used namespaces, and a full name",
        [
            MAIL,
            POST,
            "namespace a { use mail use post event facet F(kind: Kind = long, p: Parcel)"
            ' workflow W() andThen { s = post.Send(to = "x") } }',
        ],
        [],
    ),
    (
        "a used namespace is needed for a type",
        [POST, "namespace a { use post event facet F(parcel: Parcel) }"],
        [],
    ),
    (
        "or for a mixin",
        [
            "namespace m { facet Tag(tag: String) }",
            'namespace a { use m event facet F() with Tag(tag = "x") as t }',
        ],
        [],
    ),
    (
        "or for a schedule",
        [
            "namespace m { workflow W() andThen { sys.log(a = 1) } }",
            "namespace a { use m schedule nightly = W() every 1d }",
        ],
        [],
    ),
    (
        "or for a tool of a prompt",
        [
            "namespace m { event facet Search(text: String) => (found: String) }",
            "namespace a { use m event facet Ask(q: String) => (a: String)"
            ' prompt { template "{q}" tools [Search] } }',
        ],
        [],
    ),
    ("a use of nothing", [MAIL, "namespace a { use mail event facet F() }"], ["AFL1002"]),
    (
        "a use that is given twice",
        [MAIL, "namespace a { use mail use mail event facet F(kind: Kind) }"],
        ["AFL1003"],
    ),
    ("a use of an unknown namespace", ["namespace a { use mial event facet F() }"], ["AFL1001"]),
    (
        "a namespace does not open those below it",
        ["namespace a.b { event facet F() }", "namespace c { use a event facet G() }"],
        ["AFL1001"],
    ),
    (
        "short names that an unknown namespace may have are not complained about",
        ["namespace a { use mial workflow W(k: Kind) andThen { s = Send(to = $.k) } }"],
        ["AFL1001"],
    ),
    (
        "nor are its full names",
        ["namespace a { use mial workflow W() andThen { s = mial.Send(a = 1) } }"],
        ["AFL1001"],
    ),
    (
        "a misspelt name of a used namespace is one mistake",
        [MAIL, 'namespace a { use mail workflow W() andThen { s = Sned(to = "x") } }'],
        ["AFL1005"],
    ),
    (
        "a full name of an unknown namespace",
        ["namespace a { workflow W() andThen { s = mail.Send() } }"],
        ["AFL1005"],
    ),
    (
        "a policy has a full name too",
        ["namespace a { event facet F() with afl.Retry(max_attempts = 2) }"],
        [],
    ),
]

DECLARED: list[Files] = [
    (
        "a name twice in one file",
        ["namespace a { event facet F() event facet F(n: Int) }"],
        ["AFL1004"],
    ),
    (
        "a name twice in two files",
        ["namespace a { event facet F() }", "namespace a { event facet F() }"],
        ["AFL1004"],
    ),
    ("a name for two kinds", ["namespace a { schema F { n: Int } enum F { n } }"], ["AFL1004"]),
    (
        "the same name in two namespaces",
        ["namespace a { event facet F() }", "namespace b { event facet F() }"],
        [],
    ),
    (
        "the first of two counts",
        ["namespace a { enum E { x } enum E { y } facet F(e: E = x) }"],
        ["AFL1004"],
    ),
    ("a built-in namespace", ["namespace afl { event facet F() }"], ["AFL1020"]),
    ("one below it", ["namespace sys.mail { event facet F() }"], ["AFL1020"]),
    ("one that only starts like it", ["namespace aflame { event facet F() }"], []),
    ("the name of a policy", ["namespace a { facet Timeout(seconds: Int) }"], ["AFL1018"]),
    ("the name of a policy for a schema", ["namespace a { schema Queue { n: Int } }"], ["AFL1018"]),
    (
        "a schedule may have it",
        ["namespace a { workflow W() andThen { sys.log(a = 1) } schedule Cache = W() every 1d }"],
        [],
    ),
    ("two equal parameters", ["namespace a { event facet F(n: Int, n: Int) }"], ["AFL1009"]),
    ("two equal returns", ["namespace a { event facet F() => (n: Int, n: Int) }"], ["AFL1009"]),
    ("two equal fields", ["namespace a { schema S { n: Int, n: Int } }"], ["AFL1009"]),
    ("two equal members", ["namespace a { enum E { n, n } }"], ["AFL1009"]),
    ("a parameter and a return", ["namespace a { event facet F(n: Int) => (n: Int) }"], []),
]

TYPES: list[Row] = [
    ("an unknown type", "event facet F(a: Adress)", ["AFL1007"]),
    ("a built-in type in lower case", "event facet F(a: string)", ["AFL1007"]),
    ("a policy is no type", "event facet F(a: Retry)", ["AFL1007"]),
    (
        "a schedule is no type",
        "workflow W() andThen { sys.log(a = 1) }\n"
        "schedule nightly = W() every 1d\n"
        "event facet F(a: nightly)",
        ["AFL1007"],
    ),
    ("one unknown type in a list of maps", "event facet F(a: [{String: Adress}])", ["AFL1007"]),
    (
        "values of an unknown type are not complained about",
        "event facet F(a: Adress)\n" + _body("f = F(a = 3) g = F(a = open)"),
        ["AFL1007"],
    ),
    (
        "nor what is read from them",
        _body("s = Send(text = $.to.street)", "W(to: Adress)"),
        ["AFL1007"],
    ),
]

CALLED: list[Row] = [
    ("a schema is called", _body('a = Address(street = "x") s = Send(text = a.street)'), []),
    ("a workflow is called", _body("v = V()") + "\nworkflow V() andThen { sys.log(a = 1) }", []),
    ("an enum is not", _body("a = Status()"), ["AFL1008"]),
    ("a policy is not", _body("a = Retry(max_attempts = 2)"), ["AFL1008"]),
    (
        "an implicit is not",
        'implicit usual = Send(text = "x")\n' + _body("a = usual()"),
        ["AFL1008"],
    ),
    ("an unknown facet", _body("a = Fecth()"), ["AFL1005"]),
    (
        "what is read from its step is not complained about",
        _body("a = Fecth() s = Send(text = a.anything.at[3].all)"),
        ["AFL1005"],
    ),
    ("but its arguments are", _body("a = Fecth(id = $.idd)"), ["AFL1005", "AFL1012"]),
]

STEPS: list[Row] = [
    ("a step reads another, before it stands", _body("s = Send(text = a.text) a = Fetch()"), []),
    ("an unknown step", _body("s = Send(text = b.text) a = Fetch()"), ["AFL1011"]),
    (
        "a misspelt step is one mistake, also if nobody else reads it",
        _body('note = Note(text = "x") s = Send(text = ntoe.text)'),
        ["AFL1011"],
    ),
    ("a facet is no step", _body("a = Fetch() s = Send(text = Fetch.text)"), ["AFL1011"]),
    ("two steps of one name", _body("a = Fetch() a = Fetch()"), ["AFL1010"]),
    (
        "a step inside another of that name",
        _body("a = Fetch() b = Fetch() andThen { a = Fetch() }"),
        ["AFL1010"],
    ),
    (
        "a step in its own body",
        _body("a = Fetch() andThen { a = Fetch() }"),
        ["AFL1010"],
    ),
    (
        "equal names in two cases",
        "workflow W(n: Int) andThen when"
        " { case $.n > 1 => { a = Fetch() } case _ => { a = Fetch() } }",
        [],
    ),
    ("equal names in two clauses", _body("a = Fetch()") + " andThen { a = Fetch() }", []),
    ("a step that reads itself", _body("a = Fetch(id = a.text)"), ["AFL1015"]),
    ("a step that waits for itself", _body("a = Fetch() after a"), ["AFL1015"]),
    (
        "a step that reads itself in a mixin",
        _body("a = Fetch() with Note(text = a.text) as n"),
        ["AFL1015"],
    ),
    ("an unknown step to wait for", _body("a = Fetch() after b"), ["AFL1011"]),
    ("a return is read", _body("a = Fetch() s = Send(text = a.text)"), []),
    ("a parameter is read", _body("a = Fetch() s = Send(text = a.id)"), []),
    ("a parameter of a record is read", _body('n = Note(text = "x") s = Send(text = n.text)'), []),
    (
        "a mixin's alias is read",
        _body('a = Fetch() with Note(text = "x") as n s = Send(text = a.n.text)'),
        [],
    ),
    ("an unknown attribute", _body("a = Fetch() s = Send(text = a.txt)"), ["AFL1013"]),
    (
        "an unknown attribute of an alias",
        _body('a = Fetch() with Note(text = "x") as n s = Send(text = a.n.txt)'),
        ["AFL1013"],
    ),
    ("a field of a return", _body("a = Fetch() s = Send(text = a.to.street)"), []),
    ("an unknown field of a return", _body("a = Fetch() s = Send(text = a.to.town)"), ["AFL1014"]),
    ("a field of a number", _body("a = Fetch() s = Send(text = a.total.text)"), ["AFL2010"]),
]

SIGHT: list[Row] = [
    (
        "a body sees the steps around it",
        _body("a = Fetch() b = Fetch() andThen { s = Send(text = a.text) }"),
        [],
    ),
    (
        "a body sees the results of its own event facet",
        _body("a = Fetch() andThen { s = Send(text = a.text) }"),
        [],
    ),
    (
        "what is inside a body is not seen outside",
        _body("a = Fetch() andThen { b = Fetch() } s = Send(text = b.text)"),
        ["AFL1016"],
    ),
    (
        "what is inside a foreach is not seen after it",
        "workflow W(ids: [String]) andThen foreach id in $.ids { a = Fetch(id = $.id) }"
        " andThen { s = Send(text = a.text) }",
        ["AFL1016"],
    ),
    (
        "what is inside a case is not seen after it",
        "workflow W(n: Int) andThen when { case $.n > 1 => { a = Fetch() } case _ => { } }"
        " andThen { s = Send(text = a.text) }",
        ["AFL1016"],
    ),
    (
        "what is inside one case is not seen in the next",
        "workflow W(n: Int) andThen when"
        " { case $.n > 1 => { a = Fetch() } case _ => { s = Send(text = a.text) } }",
        ["AFL1016"],
    ),
    (
        "a catch does not see what it guards",
        _body("a = Fetch()") + " catch { s = Send(text = a.text) }",
        ["AFL1016"],
    ),
    (
        "another declaration is not seen at all",
        _body("a = Fetch()") + "\n" + _body("s = Send(text = a.text)", "V()"),
        ["AFL1011"],
    ),
]

INPUTS: list[Row] = [
    ("an input is read", _body("s = Send(text = $.id)"), []),
    ("an unknown input", _body("s = Send(text = $.name)"), ["AFL1012"]),
    ("an input without the sign", _body("s = Send(text = id)"), ["AFL1021"]),
    (
        "a field of an input without the sign",
        _body("s = Send(text = to.street)", "W(to: Address)"),
        ["AFL1021"],
    ),
    ("a step with the sign", _body("a = Fetch() s = Send(text = $.a.text)"), ["AFL1012"]),
    (
        "a step and an input of one name",
        _body("id = Fetch(id = $.id) s = Send(text = id.text)"),
        [],
    ),
    (
        "an unknown field of an input",
        _body("s = Send(text = $.to.town)", "W(to: Address)"),
        ["AFL1014"],
    ),
    (
        "the alias of a mixin is an input",
        'facet F() => (t: String) with Note(text = "x") as n andThen { yield F(t = $.n.text) }',
        [],
    ),
    (
        "a mixin without an alias is none",
        'facet F() => (t: String) with Note(text = "x") andThen { yield F(t = $.text) }',
        ["AFL1012"],
    ),
    (
        "a foreach variable is an input inside",
        "workflow W(ids: [String]) andThen foreach id in $.ids { s = Send(text = $.id) }",
        [],
    ),
    (
        "and not outside",
        "workflow W(ids: [String]) andThen foreach id in $.ids { s = Send(text = $.id) }"
        " andThen { s = Send(text = $.id) }",
        ["AFL1012"],
    ),
    (
        "nor in its own list",
        "workflow W(ids: [String]) andThen foreach id in $.id { s = Send(text = $.id) }",
        ["AFL1012"],
    ),
    (
        "without the sign",
        "workflow W(ids: [String]) andThen foreach id in $.ids { s = Send(text = id) }",
        ["AFL1021"],
    ),
    (
        "it does not hide an input",
        "workflow W(id: String, ids: [String]) andThen foreach id in $.ids"
        " { s = Send(text = $.id) }",
        ["AFL1017"],
    ),
    (
        "it does not hide the variable of a foreach around it",
        "workflow W(rows: [[String]]) andThen foreach row in $.rows"
        " { f = Fetch() andThen foreach row in $.row { s = Send(text = $.row) } }",
        ["AFL1017"],
    ),
    (
        "a step may have the name of a variable",
        "workflow W(ids: [String]) andThen foreach id in $.ids { id = Send(text = $.id) }",
        [],
    ),
]

ERRORS: list[Row] = [
    (
        "a catch reads its error",
        _body('a = Fetch() catch { s = Send(text = error.type ++ ": " ++ error.message) }'),
        [],
    ),
    (
        "an unknown field of an error",
        _body("a = Fetch() catch { s = Send(text = error.reason) }"),
        ["AFL1014"],
    ),
    ("no error outside a catch", _body("s = Send(text = error.message)"), ["AFL3018"]),
    (
        "a step does not hide the error",
        _body('a = Fetch() catch { error = Send(text = "x") }'),
        ["AFL1017"],
    ),
    (
        "outside a catch a step may be called error",
        _body("error = Fetch() s = Send(text = error.text)"),
        [],
    ),
]


@each_of(
    {
        "types": TYPES,
        "calls": CALLED,
        "steps": STEPS,
        "sight": SIGHT,
        "inputs": INPUTS,
        "errors": ERRORS,
    }
)
def test_names_in_a_namespace(fragment: str, expected: list[str]) -> None:
    assert [found.code for found in _check([_fragment(fragment)])] == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [pytest.param(files, expected, id=words) for words, files, expected in [*LOOKUP, *DECLARED]],
)
def test_names_over_files(files: list[str], expected: list[str]) -> None:
    assert [found.code for found in _check(files)] == expected


@pytest.mark.parametrize(
    ("fragment", "hint"),
    [
        ("event facet F(a: string)", "did you mean `String`?"),
        ("event facet F(a: Bool)", "did you mean `Boolean`?"),
        ("event facet F(a: Adress)", "did you mean `Address`?"),
        (_body("a = Fecth()"), "did you mean `Fetch`?"),
        (_body("note = Fetch() s = Send(text = ntoe.text)"), "did you mean `note`?"),
        (
            _body("s = Send(text = custmer)", "W(customer: String)"),
            "did you mean `$.customer`?",
        ),
        (_body("a = Fetch() s = Send(text = Fetch.text)"), "is a facet"),
        (_body("a = Fetch() s = Send(text = $.a.text)"), "steps are read without `$.`: `a`"),
        (
            _body("s = Send(text = $.custmer)", "W(customer: String)"),
            "did you mean `$.customer`?",
        ),
        (_body("a = Fetch() s = Send(text = a.txet)"), "did you mean `text`?"),
        (_body("sys.assert($.s == Status.open)", "W(s: Status)"), "written alone: `open`"),
        (_body("sys.assert($.s == opne)", "W(s: Status)"), "did you mean `open`?"),
        (_body('sys.assert($.s == "open")', "W(s: Status)"), "without quotes: `open`"),
    ],
)
def test_the_remedy_is_offered(fragment: str, hint: str) -> None:
    (found,) = _check([_fragment(fragment)])
    assert any(hint in suggestion.message for suggestion in found.suggestions)


def test_an_ambiguous_name_offers_both_full_names() -> None:
    use = 'namespace a { use mail use post workflow W() andThen { s = Send(to = "x") } }'
    (found,) = _check([MAIL, POST, use])
    texts = [edit.replacement for suggestion in found.suggestions for edit in suggestion.edits]
    assert texts == ["mail.Send", "post.Send"]


def test_a_second_declaration_points_to_the_first_file() -> None:
    first, second = "namespace a { event facet F() }", "namespace a { event facet F() }"
    (found,) = _check([first, second])
    assert found.primary.span.source.name == "file1.afl"
    assert [label.span.source.name for label in found.secondary] == ["file0.afl"]
