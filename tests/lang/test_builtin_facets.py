"""The facets of the namespaces below `afl`: checked like others, and part of a program only
where they are called."""

from __future__ import annotations

import pytest

from afl.lang.api import Compilation, compile_sources

PROGRAM = """
namespace t {{
  event facet Tell(text: Json) => (id: String)

  workflow W() => (id: String) andThen {{
    first = {call}
    told = Tell(text = "x") after first
    yield W(id = told.id)
  }}
}}
"""


def compiled(call: str) -> Compilation:
    return compile_sources([("t.afl", PROGRAM.format(call=call))])


@pytest.mark.parametrize(
    ("call", "facet"),
    [
        ("afl.time.Sleep(duration = 90d)", "afl.time.Sleep"),
        ('afl.time.Until(time = "2027-01-31T09:00:00+01:00")', "afl.time.Until"),
        ('afl.event.Wait(name = "paid")', "afl.event.Wait"),
        ('afl.event.Wait(name = "paid", key = "42", timeout = 2d)', "afl.event.Wait"),
        ('afl.mail.Send(to = "clerk", payload = #{n: 1})', "afl.mail.Send"),
        ('afl.mail.Ask(to = "clerk:2", payload = "what?", timeout = 2d)', "afl.mail.Ask"),
    ],
)
def test_a_program_holds_the_built_in_facets_that_it_calls(call: str, facet: str) -> None:
    compilation = compiled(call)
    assert compilation.diagnostics == ()
    assert compilation.program is not None
    names = {each.name for each in compilation.program.facets}
    assert names == {"t.Tell", "t.W", facet}


def test_a_program_holds_those_that_are_tools_and_what_they_are_for() -> None:
    text = """
namespace t {
  event facet Think(q: String) => (a: String)
    prompt { template "{q}" tools [afl.mail.Ask] }
}
"""
    program = compile_sources([("t.afl", text)]).program
    assert program is not None
    assert {each.name for each in program.facets} == {"t.Think", "afl.mail.Ask"}
    assert program.docs["afl.mail.Ask"].startswith("Ask an agent by a message")


def test_a_program_that_calls_none_holds_none() -> None:
    program = compiled('Tell(text = "y")').program
    assert program is not None
    assert {each.name for each in program.facets} == {"t.Tell", "t.W"}
    assert not any(id.startswith("afl") for id in program.spans)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("afl.time.Sleep()", "AFL2002"),
        ("afl.time.Sleep(duration = 3)", "AFL2004"),
        ('afl.event.Wait(name = "paid", timeout = "2d")', "AFL2004"),
        ("afl.time.Slep(duration = 1s)", "AFL1005"),
        ('afl.mail.Send(to = "clerk")', "AFL2002"),
        ('afl.mail.Ask(to = 7, payload = "x")', "AFL2004"),
    ],
)
def test_their_arguments_are_checked(call: str, code: str) -> None:
    assert [each.code for each in compiled(call).errors] == [code]


def test_their_namespaces_can_be_used_and_cannot_be_extended() -> None:
    used = compile_sources(
        [
            (
                "t.afl",
                "namespace t { use afl.time workflow W() andThen { s = Sleep(duration = 1s) } }",
            )
        ]
    )
    assert used.diagnostics == ()
    extended = compile_sources([("t.afl", "namespace afl.time { event facet Nap() }")])
    assert [each.code for each in extended.errors] == ["AFL1020"]
