"""Policies, effects, mixins, implicits, prompts, scripts, schedules and doc tags.

Each row says in words what it shows; a fragment stands in one namespace.
"""

from __future__ import annotations

import pytest

from afl.lang.api import compile_sources

Row = tuple[str, str, list[str]]

#: A policy with the arguments it needs, and the kinds of facet that may have it.
POLICIES = {
    "Retry(max_attempts = 2)": {"event"},
    "Timeout(seconds = 5)": {"event", "workflow", "facet"},
    'Queue(name = "slow")': {"event", "workflow"},
    "Priority(level = 9)": {"event", "workflow"},
    "Concurrency(max = 2)": {"event", "workflow"},
    "RateLimit(max = 2, per = 1s)": {"event"},
    'Breaker(service = "bank", slow = 5s)': {"event"},
    "Budget(usd = 0.5)": {"event", "workflow", "facet"},
    "Cache(ttl = 1h)": {"event"},
    "Effect(kind = pure)": {"event"},
    'Human(group = "ops")': {"event"},
    "Placement(kind = spread)": {"event", "workflow"},
    "FailFast()": {"workflow", "facet"},
}
#: Policies that say what a facet is, and so belong to its declaration.
DECLARED = {"Effect", "Human", "FailFast"}

_KINDS = {
    "event": "event facet F(id: String) with Effect(kind = pure){}",
    "workflow": "workflow F(id: String){} andThen {{ sys.log(id = $.id) }}",
    "facet": "facet F(id: String){} andThen {{ sys.log(id = $.id) }}",
}


def _check(fragment: str) -> list[str]:
    text = f"namespace shop {{\n{fragment}\n}}\n"
    return [diagnostic.code for diagnostic in compile_sources([("flow.afl", text)]).diagnostics]


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_where_a_policy_may_be_declared(policy: str, kind: str) -> None:
    declaration = _KINDS[kind].format(f" with {policy}")
    if kind == "event" and policy.startswith("Effect"):
        declaration = f"event facet F(id: String) with {policy}"
    assert _check(declaration) == ([] if kind in POLICIES[policy] else ["AFL4001"])


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_where_a_policy_may_be_given_to_a_call(policy: str, kind: str) -> None:
    declaration = _KINDS[kind].format("")
    call = f'workflow Run() andThen {{ f = F(id = "1") with {policy} sys.log(f = f.id) }}'
    fits = kind in POLICIES[policy] and policy.partition("(")[0] not in DECLARED
    assert _check(f"{declaration}\n{call}") == ([] if fits else ["AFL4001"])


POLICY_ROWS: list[Row] = [
    (
        "a breaker before a person",
        'event facet F() with Human(group = "ops") with Breaker()',
        ["AFL4001"],
    ),
    (
        "a breaker before a model",
        'event facet F() => (a: String) with Breaker() prompt { template "x" }',
        ["AFL4001"],
    ),
    (
        "a breaker before a model, at a call",
        'event facet F() => (a: String) prompt { template "x" }\n'
        "workflow W() => (a: String) andThen { f = F() with Breaker() yield W(a = f.a) }",
        ["AFL4001"],
    ),
    ("a breaker that is open for ever", "event facet F() with Breaker(cooldown = 2h)", ["AFL4006"]),
    ("a breaker before a script", "event facet F() with Breaker() script { pass }", []),
    (
        "one policy twice",
        "event facet F() with Retry(max_attempts = 2) with Retry(delay = 5s)",
        ["AFL4002"],
    ),
    (
        "also by its full name",
        "event facet F() with Retry(max_attempts = 2) with afl.Retry(delay = 5s)",
        ["AFL4002"],
    ),
    (
        "a call may give what the declaration gives",
        "event facet F() with Retry(max_attempts = 2)\n"
        "workflow W() andThen { f = F() with Retry(max_attempts = 5) }",
        [],
    ),
    ("no alias", "event facet F() with Retry() as again", ["AFL4003"]),
    (
        "a schema value has no policies",
        "schema S { n: Int }\n"
        "workflow W() => (n: Int) andThen { s = S(n = 1) with Retry() yield W(n = s.n) }",
        ["AFL4028"],
    ),
    ("an unknown policy", "event facet F() with Retri(max_attempts = 2)", ["AFL1005"]),
    (
        "an unknown argument is one mistake, not two",
        "event facet F() with Timeout(second = 5)",
        ["AFL2001"],
    ),
    ("a missing argument", "event facet F() with Priority()", ["AFL2002"]),
    ("an argument of the wrong type", 'event facet F() with Timeout(seconds = "5")', ["AFL2004"]),
    ("values are constant", "event facet F(n: Int) with Priority(level = $.n)", ["AFL2014"]),
    (
        "but a key may read the inputs",
        "event facet F(id: String) with Concurrency(max = 1, key = $.id)"
        " with RateLimit(max = 1, per = 1s, key = $.id)",
        [],
    ),
    (
        "and at a call the steps",
        "event facet F(id: String) => (id: String)\nworkflow W() andThen"
        ' { a = F(id = "1") b = F(id = "2") with Concurrency(max = 1, key = a.id) }',
        [],
    ),
]

RANGES: list[Row] = [
    ("a priority is 0 to 9", "event facet F() with Priority(level = 10)", ["AFL4006"]),
    ("and not below", "event facet F() with Priority(level = -1)", ["AFL4006"]),
    ("at least one attempt", "event facet F() with Retry(max_attempts = 0)", ["AFL4006"]),
    ("waits do not shrink", "event facet F() with Retry(backoff = 0.5)", ["AFL4006"]),
    ("no negative wait", "event facet F() with Retry(delay = -1s)", ["AFL4006"]),
    ("a timeout of something", "event facet F() with Timeout()", ["AFL4006"]),
    ("zero seconds are nothing", "event facet F() with Timeout(seconds = 0)", ["AFL4006"]),
    ("a part may be zero", "event facet F() with Timeout(hours = 0, minutes = 5)", []),
    ("a budget of something", "event facet F() with Budget()", ["AFL4006"]),
    ("null is nothing", "event facet F() with Budget(usd = null)", ["AFL4006"]),
    ("no money at all is not a budget", "event facet F() with Budget(usd = 0.0)", ["AFL4006"]),
    ("one of two is enough", "event facet F() with Budget(tokens = 5000)", []),
    ("at least one at a time", "event facet F() with Concurrency(max = 0)", ["AFL4006"]),
    (
        "a rate has a stretch of time",
        "event facet F() with RateLimit(max = 1, per = 0s)",
        ["AFL4006"],
    ),
    (
        "a deadline is in the future",
        'event facet F() with Human(group = "a", deadline = 0s)',
        ["AFL4006"],
    ),
    ("a queue has a name", 'event facet F() with Queue(name = "")', ["AFL4006"]),
    ("so has a group", 'event facet F() with Human(group = "")', ["AFL4006"]),
    (
        "two mistakes in one policy",
        "event facet F() with Retry(max_attempts = 0, backoff = 0.0)",
        ["AFL4006"] * 2,
    ),
]

EFFECTS: list[Row] = [
    (
        "each kind exists",
        "\n".join(
            f"event facet F{i}() with Effect(kind = {kind})"
            for i, kind in enumerate(("pure", "idempotent", "keyed", "irreversible"))
        ),
        [],
    ),
    (
        "an unknown kind is one mistake",
        "event facet F() with Effect(kind = pur) with Cache(ttl = 1h)",
        ["AFL1019"],
    ),
    (
        "a missing kind is one mistake",
        "event facet F() with Effect() with Cache(ttl = 1h)",
        ["AFL2002"],
    ),
    (
        "irreversible work is not tried again",
        "event facet F() with Effect(kind = irreversible) with Retry()",
        ["AFL4004"],
    ),
    (
        "not by a call either",
        "event facet F() with Effect(kind = irreversible)\n"
        "workflow W() andThen { f = F() with Retry() }",
        ["AFL4004"],
    ),
    (
        "a single attempt is no retry",
        "event facet F() with Effect(kind = irreversible) with Retry(max_attempts = 1)",
        [],
    ),
    ("a cache wants pure work", "event facet F() with Cache(ttl = 1h)", ["AFL4005"]),
    (
        "idempotent is not pure",
        "event facet F() with Effect(kind = idempotent) with Cache(ttl = 1h)",
        ["AFL4005"],
    ),
    ("pure is", "event facet F() with Effect(kind = pure) with Cache(ttl = 1h)", []),
    (
        "a cache at a call wants it too",
        "event facet F() => (n: Int)\n"
        "workflow W() => (n: Int) andThen { f = F() with Cache(ttl = 1h) yield W(n = f.n) }",
        ["AFL4005"],
    ),
    (
        "a check that fits",
        "event facet Sent(id: String) => (done: Boolean)\n"
        "event facet F(id: String, n: Int) with Effect(kind = irreversible, check = Sent)",
        [],
    ),
    (
        "a check by its full name",
        "event facet Sent(id: String) => (done: Boolean)\n"
        "event facet F(id: String) with Effect(kind = irreversible, check = shop.Sent)",
        [],
    ),
    (
        "a check that is no facet",
        "event facet F() with Effect(kind = irreversible, check = Sent)",
        ["AFL1005"],
    ),
    (
        "a check in quotation marks",
        'event facet F() with Effect(kind = irreversible, check = "Sent")',
        ["AFL4024"],
    ),
    (
        "a check that no handler serves",
        "facet Sent() => (done: Boolean) andThen { yield Sent(done = true) }\n"
        "event facet F() with Effect(kind = irreversible, check = Sent)",
        ["AFL4024"],
    ),
    (
        "a check that does not answer",
        "event facet Sent() => (ok: Boolean)\n"
        "event facet F() with Effect(kind = irreversible, check = Sent)",
        ["AFL4024"],
    ),
    (
        "a check that answers something else",
        "event facet Sent() => (done: String)\n"
        "event facet F() with Effect(kind = irreversible, check = Sent)",
        ["AFL4024"],
    ),
    (
        "a check that wants more than there is",
        "event facet Sent(day: String) => (done: Boolean)\n"
        "event facet F() with Effect(kind = irreversible, check = Sent)",
        ["AFL4024"],
    ),
    (
        "a check whose extra parameter has a default",
        'event facet Sent(day: String = "") => (done: Boolean)\n'
        "event facet F() with Effect(kind = irreversible, check = Sent)",
        [],
    ),
    (
        "a check that wants another type",
        "event facet Sent(id: Int) => (done: Boolean)\n"
        "event facet F(id: String) with Effect(kind = irreversible, check = Sent)",
        ["AFL4024"],
    ),
]

MIXINS: list[Row] = [
    (
        "without an alias it fills a parameter",
        "facet Page(limit: Int)\nevent facet Find(text: String, limit: Int)\n"
        'workflow W() andThen { f = Find(text = "x") with Page(limit = 5) }',
        [],
    ),
    (
        "in a signature too",
        "facet Page(limit: Int)\n"
        "event facet Find(text: String, limit: Int) with Page(limit = 5)\n"
        'workflow W() andThen { f = Find(text = "x") }',
        [],
    ),
    (
        "what it fills has to fit",
        "facet Page(limit: Int)\n"
        "event facet Find(text: String, limit: String) with Page(limit = 5)",
        ["AFL4008"],
    ),
    (
        "with an alias it does not fill",
        "facet Page(limit: Int)\n"
        "event facet Find(text: String, limit: String) with Page(limit = 5) as page",
        [],
    ),
    (
        "an alias that is a parameter",
        "facet Page(limit: Int)\nevent facet Find(text: String) with Page(limit = 5) as text",
        ["AFL4007"],
    ),
    (
        "an alias that is a return",
        "facet Page(limit: Int)\nevent facet Find() => (text: String) with Page(limit = 5) as text",
        ["AFL4007"],
    ),
    (
        "one alias twice",
        "facet Page(limit: Int)\n"
        "event facet Find() with Page(limit = 5) as p with Page(limit = 6) as p",
        ["AFL4007"],
    ),
    (
        "an alias of the signature, at a call",
        "facet Page(limit: Int)\n"
        "event facet Find() with Page(limit = 5) as p\n"
        "workflow W() andThen { f = Find() with Page(limit = 6) as p }",
        ["AFL4007"],
    ),
    (
        "its values are read by the alias, from inputs and from steps",
        "facet Page(limit: Int)\n"
        "facet Find(n: Int) => (m: Int) with Page(limit = $.n) as p"
        " andThen { yield Find(m = $.p.limit) }\n"
        "workflow W() => (m: Int) andThen { f = Find(n = 1) yield W(m = f.p.limit + f.m) }",
        [],
    ),
    (
        "an unknown value of it",
        "facet Page(limit: Int)\n"
        "facet Find() => (m: Int) with Page(limit = 1) as p andThen { yield Find(m = $.p.size) }",
        ["AFL1013"],
    ),
    (
        "a missing argument of it",
        "facet Page(limit: Int)\nevent facet Find() with Page() as p",
        ["AFL2002"],
    ),
    (
        "a schema cannot be mixed in",
        "schema Page { limit: Int }\nevent facet Find() with Page(limit = 5)",
        ["AFL4009"],
    ),
    ("an enum cannot either", "enum Page { a, b }\nevent facet Find() with Page()", ["AFL4009"]),
]

IMPLICITS: list[Row] = [
    (
        "it fills an argument",
        'event facet Mail(to: String, sender: String)\nimplicit mail = Mail(sender = "a")\n'
        'workflow W() andThen { m = Mail(to = "b") }',
        [],
    ),
    (
        "not all of them",
        'event facet Mail(to: String, sender: String)\nimplicit mail = Mail(sender = "a")\n'
        "workflow W() andThen { m = Mail() }",
        ["AFL2002"],
    ),
    (
        "two for one facet",
        'event facet Mail(to: String = "", sender: String = "")\n'
        'implicit a = Mail(sender = "a")\nimplicit b = Mail(to = "b")',
        ["AFL4020"],
    ),
    (
        "an unknown argument",
        'event facet Mail(to: String)\nimplicit a = Mail(sender = "a")',
        ["AFL2001"],
    ),
    ("of the wrong type", "event facet Mail(to: String)\nimplicit a = Mail(to = 1)", ["AFL2004"]),
    ("not constant", "event facet Mail(to: String)\nimplicit a = Mail(to = $.x)", ["AFL2014"]),
    ("for a schema there are none", "schema S { n: Int }\nimplicit a = S(n = 1)", ["AFL1008"]),
    ("for a policy there are none", "implicit a = Retry(max_attempts = 5)", ["AFL1008"]),
]

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
    "policy": POLICY_ROWS,
    "range": RANGES,
    "effect": EFFECTS,
    "mixin": MIXINS,
    "implicit": IMPLICITS,
    "prompt": PROMPTS,
    "script": SCRIPTS,
    "schedule": SCHEDULES,
    "doc tag": DOC_TAGS,
}


@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        pytest.param(fragment, expected, id=f"{table}: {words}")
        for table, rows in TABLES.items()
        for words, fragment, expected in rows
    ],
)
def test_policies(fragment: str, expected: list[str]) -> None:
    assert _check(fragment) == expected


def test_implicits_serve_their_own_namespace_only() -> None:
    mail = "namespace mail { event facet Mail(to: String, sender: String) }"
    with_implicit = 'use mail implicit m = Mail(sender = "a")'
    call = 'use mail workflow W() andThen { m = Mail(to = "b") }'
    here = f'{mail} namespace a {{ {with_implicit} workflow W() andThen {{ m = Mail(to = "b") }} }}'
    elsewhere = f"{mail} namespace a {{ {with_implicit} }} namespace b {{ {call} }}"
    assert not compile_sources([("flow.afl", here)]).diagnostics
    found = compile_sources([("flow.afl", elsewhere)]).diagnostics
    assert [diagnostic.code for diagnostic in found] == ["AFL2002"]


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
