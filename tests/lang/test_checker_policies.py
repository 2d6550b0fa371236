"""Policies, effects, mixins and implicits.

Each row says in words what it shows; a fragment stands in one namespace.
"""

from __future__ import annotations

import pytest

from afl.lang.api import compile_sources
from tests.lang.fragments import Row, codes_of, each_of

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


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_where_a_policy_may_be_declared(policy: str, kind: str) -> None:
    declaration = _KINDS[kind].format(f" with {policy}")
    if kind == "event" and policy.startswith("Effect"):
        declaration = f"event facet F(id: String) with {policy}"
    assert codes_of(declaration) == ([] if kind in POLICIES[policy] else ["AFL4001"])


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_where_a_policy_may_be_given_to_a_call(policy: str, kind: str) -> None:
    declaration = _KINDS[kind].format("")
    call = f'workflow Run() andThen {{ f = F(id = "1") with {policy} sys.log(f = f.id) }}'
    fits = kind in POLICIES[policy] and policy.partition("(")[0] not in DECLARED
    assert codes_of(f"{declaration}\n{call}") == ([] if fits else ["AFL4001"])


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

TABLES = {
    "policy": POLICY_ROWS,
    "range": RANGES,
    "effect": EFFECTS,
    "mixin": MIXINS,
    "implicit": IMPLICITS,
}


@each_of(TABLES)
def test_policies(fragment: str, expected: list[str]) -> None:
    assert codes_of(fragment) == expected


def test_implicits_serve_their_own_namespace_only() -> None:
    mail = "namespace mail { event facet Mail(to: String, sender: String) }"
    with_implicit = 'use mail implicit m = Mail(sender = "a")'
    call = 'use mail workflow W() andThen { m = Mail(to = "b") }'
    here = f'{mail} namespace a {{ {with_implicit} workflow W() andThen {{ m = Mail(to = "b") }} }}'
    elsewhere = f"{mail} namespace a {{ {with_implicit} }} namespace b {{ {call} }}"
    assert not compile_sources([("flow.afl", here)]).diagnostics
    found = compile_sources([("flow.afl", elsewhere)]).diagnostics
    assert [diagnostic.code for diagnostic in found] == ["AFL2002"]
