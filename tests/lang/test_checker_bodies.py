"""Prompts, scripts, schedules and doc tags: what stands in and around a declaration.

Each row says in words what it shows; a fragment stands in one namespace.
"""

from __future__ import annotations

import pytest

from afl.lang.api import compile_sources
from tests.lang.fragments import Row, codes_of, each_of

PROMPTS: list[Row] = [
    (
        "a template with parameters",
        'event facet F(a: String) => (b: String) prompt { template "{a}" }',
        [],
    ),
    (
        "fields of a schema",
        'schema S { id: String }\nevent facet F(s: S) => (b: String) prompt { template "{s.id}" }',
        [],
    ),
    (
        "an unknown field of it",
        'schema S { id: String }\nevent facet F(s: S) => (b: String) prompt { template "{s.ids}" }',
        ["AFL1014"],
    ),
    (
        "fields of what has none",
        'event facet F(a: String) => (b: String) prompt { template "{a.id}" }',
        ["AFL2010"],
    ),
    ("on a facet", 'facet F(a: String) => (b: String) prompt { template "{a}" }', ["AFL4010"]),
    (
        "without a template",
        'event facet F() => (b: String) prompt { system "Be brief." }',
        ["AFL4011"],
    ),
    ("with an empty one", 'event facet F() => (b: String) prompt { template " " }', ["AFL4011"]),
    (
        "an unknown placeholder",
        'event facet F(a: String) => (b: String) prompt { template "{x}" }',
        ["AFL4012"],
    ),
    (
        "each of several",
        'event facet F(a: String) => (b: String) prompt { system "{y}" template "{x} {z} {a}" }',
        ["AFL4012"] * 3,
    ),
    (
        "a return is no placeholder",
        'event facet F(a: String) => (b: String) prompt { template "{b}" }',
        ["AFL4012"],
    ),
    (
        "doubled braces are text",
        'event facet F(a: String) => (b: String) prompt { template "{{x}} {a}" }',
        [],
    ),
    (
        "and may stand around a placeholder",
        'event facet F(a: String) => (b: String) prompt { template "{{{a}}}" }',
        [],
    ),
    (
        "an escape with braces is no placeholder",
        'event facet F(a: String) => (b: String) prompt { template "\\u{1F600} {a}" }',
        [],
    ),
    (
        "a brace alone",
        'event facet F(a: String) => (b: String) prompt { template "{ {a}" }',
        ["AFL4013"],
    ),
    (
        "nothing between the braces",
        'event facet F(a: String) => (b: String) prompt { template "{}" }',
        ["AFL4013"],
    ),
    (
        "blanks between the braces",
        'event facet F(a: String) => (b: String) prompt { template "{ a }" }',
        ["AFL4013"],
    ),
    (
        "many wrong braces are one mistake",
        'event facet F(a: String) => (b: String) prompt { template "{1} {2} {3}" }',
        ["AFL4013"],
    ),
    (
        "tools",
        "event facet T()\n"
        'event facet F() => (b: String) prompt { template "x" tools [T, shop.F, "mcp:a/b"] }',
        [],
    ),
    (
        "a tool that does not exist",
        'event facet F() => (b: String) prompt { template "x" tools [T] }',
        ["AFL1005"],
    ),
    (
        "a tool without a handler",
        'facet T()\nevent facet F() => (b: String) prompt { template "x" tools [T] }',
        ["AFL4014"],
    ),
    (
        "a policy is no tool",
        'event facet F() => (b: String) prompt { template "x" tools [Retry] }',
        ["AFL4014"],
    ),
    (
        "an MCP tool without a server",
        'event facet F() => (b: String) prompt { template "x" tools ["mcp:a"] }',
        ["AFL4015"],
    ),
    (
        "an MCP tool without its prefix",
        'event facet F() => (b: String) prompt { template "x" tools ["a/b"] }',
        ["AFL4015"],
    ),
    (
        "a tool twice",
        'event facet T()\nevent facet F() => (b: String) prompt { template "x" tools [T, shop.T] }',
        ["AFL4025"],
    ),
    (
        "a prompt and a person",
        'event facet F() => (b: String) with Human(group = "a") prompt { template "x" }',
        ["AFL4027"],
    ),
]

SCRIPTS: list[Row] = [
    (
        "on an event facet it sets returns",
        'event facet F(n: Int) => (m: Int) script { result["m"] = params["n"] }',
        [],
    ),
    ("all of them", 'event facet F() => (m: Int, n: Int) script { result["m"] = 1 }', ["AFL3003"]),
    (
        "optional ones may stay away",
        'event facet F() => (m: Int, n: Int?) script { result["m"] = 1 }',
        [],
    ),
    (
        "not what is not declared, which is one mistake",
        'event facet F() => (total: Int) script { result["totl"] = 1 }',
        ["AFL4017"],
    ),
    (
        "before a body it adds inputs",
        'workflow W(n: Int) => (m: Json) script { result["twice"] = params["n"] * 2 }'
        " andThen { yield W(m = $.twice) }",
        [],
    ),
    (
        "before a body it changes inputs",
        'workflow W(n: Int) => (m: Int) script { result["n"] = params["n"] * 2 }'
        " andThen { yield W(m = $.n) }",
        [],
    ),
    (
        "before a body it sets no returns",
        'workflow W(n: Int) => (m: Int) script { result["m"] = 1 } andThen { yield W(m = $.n) }',
        ["AFL4017"],
    ),
    (
        "as a clause it sets returns",
        'workflow W() => (m: Int) andThen script { result["m"] = 1 }',
        [],
    ),
    (
        "as a clause it may set them in other ways",
        "workflow W() => (m: Int, n: Int) andThen script { result.update(m=1, n=2) }",
        [],
    ),
    (
        "as a clause it sets too few",
        'workflow W() => (m: Int, n: Int) andThen script { result["m"] = 1 }',
        ["AFL3003"],
    ),
    (
        "as a clause beside a yield of the same",
        'workflow W() => (m: Int) andThen { yield W(m = 1) } andThen script { result["m"] = 1 }',
        ["AFL3005"],
    ),
    ("not Python", "event facet F() => (m: Int) script { for x in }", ["AFL4016"]),
    ("a script is not a function", "event facet F() => (m: Int) script { return 1 }", ["AFL4016"]),
    (
        "what Python only warns of is fine",
        'event facet F() => (m: String) script { result["m"] = "\\d" }',
        [],
    ),
    (
        "without code, which is one mistake",
        "workflow W() => (m: Int) andThen script { }",
        ["AFL4018"],
    ),
    ("with comments only", "event facet F() => (m: Int) script { # later\n }", ["AFL4018"]),
    (
        "in another language, which is one mistake",
        "event facet F() => (m: Int) script ruby { puts(1) }",
        ["AFL4019"],
    ),
    ("in Python by name", 'event facet F() => (m: Int) script python { result["m"] = 1 }', []),
    (
        "a script and a person",
        'event facet F() => (m: Int) with Human(group = "a") script { result["m"] = 1 }',
        ["AFL4027"],
    ),
]

_W = "workflow W(n: Int = 1) andThen { sys.log(n = $.n) }\n"
SCHEDULES: list[Row] = [
    ("by cron", f'{_W}schedule s = W(n = 2) cron "0 2 * * *" zone "Europe/Berlin"', []),
    ("by interval", f"{_W}schedule s = W() every 15m", []),
    ("too often", f"{_W}schedule s = W() every 999ms", ["AFL4006"]),
    ("once", f'{_W}schedule s = W() at "2027-01-31T09:00" zone "Europe/Berlin"', []),
    (
        "with all that it can have",
        f'{_W}schedule s = W() every 1h zone "UTC" start "2027-01-31" end "2028-01-31T09:00:00Z" '
        "jitter 5m overlap queue catch_up all",
        [],
    ),
    ("at no time", f'{_W}schedule s = W() at "noon"', ["AFL4029"]),
    ("with a start that is none", f'{_W}schedule s = W() every 1h start "x"', ["AFL4029"]),
    ("with an end that is none", f'{_W}schedule s = W() every 1h end ""', ["AFL4029"]),
    ("with an unknown overlap", f"{_W}schedule s = W() every 1h overlap drop", ["AFL4030"]),
    ("with an unknown catch-up", f"{_W}schedule s = W() every 1h catch_up lots", ["AFL4030"]),
    ("on a day that never comes", f'{_W}schedule s = W() cron "0 0 30 2 *"', ["AFL4021"]),
    ("twice", f"{_W}schedule s = W() every 1h schedule s = W() every 2h", ["AFL1004"]),
    ("of an event facet", "event facet E()\nschedule s = E() every 1h", ["AFL4023"]),
    ("of a schema", "schema S { n: Int = 1 }\nschedule s = S() every 1h", ["AFL4023"]),
    ("of nothing", "schedule s = E() every 1h", ["AFL1005"]),
    (
        "without a needed argument",
        "workflow V(n: Int) andThen { sys.log(n = $.n) }\nschedule s = V() every 1h",
        ["AFL2002"],
    ),
    ("with an argument that is not constant", f"{_W}schedule s = W(n = $.n) every 1h", ["AFL2014"]),
    ("without a zone's area", f'{_W}schedule s = W() cron "0 2 * * *" zone "Berlin"', ["AFL4022"]),
    (
        "with an offset for a zone",
        f'{_W}schedule s = W() cron "0 2 * * *" zone "+02:00"',
        ["AFL4022"],
    ),
    *(
        (f"cron `{text}`", f'{_W}schedule s = W() cron "{text}"', [])
        for text in (
            "* * * * *",
            "*/15 9-17 * * mon-fri",
            "0,30 0 1,15 jan-jun/2 7",
            "5/10 * * DEC *",
            "0  2 * * *",
        )
    ),
    *(
        (f"not cron `{text}`", f'{_W}schedule s = W() cron "{text}"', ["AFL4021"])
        for text in (
            "",
            "@daily",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "*/0 * * * *",
            "5-1 * * * *",
            "1, * * * *",
            "* * ? * *",
            "* * * foo *",
            "1.5 * * * *",
        )
    ),
]

DOC_TAGS: list[Row] = [
    (
        "of parameters and returns",
        "/** Doc.\n * @param n a\n * @return m b */\nevent facet F(n: Int) => (m: Int)",
        [],
    ),
    ("an unknown parameter", "/** @param x a */\nevent facet F(n: Int)", ["AFL9001"]),
    ("an unknown return", "/** @return x a */\nevent facet F() => (n: Int)", ["AFL9001"]),
    (
        "a return taken for a parameter",
        "/** @param m a */\nevent facet F(n: Int) => (m: Int)",
        ["AFL9001"],
    ),
    ("of fields", "/** @param id a */\nschema S { id: String }", []),
    ("a mail address is no tag", "/** Ask me@param x */\nevent facet F()", []),
    ("a tag without a name says nothing", "/** @param */\nevent facet F()", []),
    (
        "a doc comment inside a body",
        "workflow W() andThen { /** a */ sys.log(n = 1) }",
        ["AFL9002"],
    ),
    ("a doc comment at the end", "event facet F()\n/** a */", ["AFL9002"]),
    ("of two the second one counts", "/** a */\n/** b */\nevent facet F()", ["AFL9002"]),
]

TABLES = {
    "prompt": PROMPTS,
    "script": SCRIPTS,
    "schedule": SCHEDULES,
    "doc tag": DOC_TAGS,
}


@each_of(TABLES)
def test_bodies(fragment: str, expected: list[str]) -> None:
    assert codes_of(fragment) == expected


def _primary(fragment: str) -> str:
    text = f"namespace shop {{\n{fragment}\n}}\n"
    (found,) = compile_sources([("flow.afl", text)]).diagnostics
    return found.primary.span.text


@pytest.mark.parametrize(
    ("fragment", "place"),
    [
        (
            'event facet F(a: String) => (b: String) prompt {\n  template """\n    {{x}} {a}\n'
            '    {lang} \\u{41}\n  """\n}',
            "{lang}",
        ),
        ('event facet F() => (m: Int) script {\n    x = "é"; result["é"] = 1\n}', '"é"'),
        ('event facet F() => (m: Int) script { result["n"] = 1 }', '"n"'),
        ("event facet F() => (m: Int) script {\n    if True\n        pass\n}", "if True"),
        ("event facet F() => (m: Int) script { if True }", "if True"),
    ],
)
def test_a_message_points_into_the_text(fragment: str, place: str) -> None:
    assert _primary(fragment) == place


def test_a_message_points_into_a_script_with_windows_line_ends() -> None:
    assert (
        _primary('event facet F() => (m: Int) script {\r\n  x = 1\r\n  result["n"] = x\r\n}')
        == '"n"'
    )
