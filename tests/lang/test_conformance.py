"""The language by example: programs that must compile, and holes that must stay closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from afl.ir import codec
from afl.ir.digest import program_hash
from afl.ir.model import Program
from afl.lang.api import compile_sources

FOLDER = Path(__file__).parent / "conformance"
LISTINGS = sorted(FOLDER.glob("*.afl"))


def _compile(path: Path) -> Program:
    compilation = compile_sources([(path.name, path.read_text(encoding="utf-8"))])
    assert compilation.diagnostics == ()
    assert compilation.program is not None
    return compilation.program


def test_there_are_listings() -> None:
    assert len(LISTINGS) == 19


@pytest.mark.parametrize("path", LISTINGS, ids=lambda path: path.stem)
def test_a_listing_compiles_and_survives_storing(path: Path) -> None:
    program = _compile(path)
    stored = codec.loads(codec.dumps(program))
    assert stored == program
    assert (stored.spans, stored.docs) == (program.spans, program.docs)
    assert program_hash(stored) == program_hash(program)


@pytest.mark.parametrize("path", LISTINGS, ids=lambda path: path.stem)
def test_every_statement_can_be_found_in_its_source(path: Path) -> None:
    program = _compile(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert {facet.name for facet in program.facets} <= program.spans.keys()
    for span in program.spans.values():
        assert span.file == path.name
        assert 1 <= span.line <= span.end_line <= len(lines)


#: What must be rejected, and by which code.
HOLES = {
    "unknown argument": ("s = E(a = 1, b = 2)", "AFL2001"),
    "missing argument": ("s = E()", "AFL2002"),
    "argument given twice": ("s = E(a = 1, a = 2)", "AFL2003"),
    "argument of the wrong type": ('s = E(a = "one")', "AFL2004"),
    "yield of a return that does not exist": ("yield W(missing = 1)", "AFL3002"),
    "unknown facet by its short name": ("s = Nobody(a = 1)", "AFL1005"),
    "attribute of a record that it does not have": (
        "k = Keep(n = 1) sys.log(v = k.missing)",
        "AFL1013",
    ),
    "foreach over an input that does not exist": (
        "k = Keep(n = 1) andThen foreach x in $.missing { sys.log(x = $.x) }",
        "AFL1012",
    ),
    "foreach over a step that does not exist": (
        "k = Keep(n = 1) andThen foreach x in missing.xs { sys.log(x = $.x) }",
        "AFL1011",
    ),
    "call of itself": ("w = W() yield W(o = w.o)", "AFL3008"),
    "step that reads itself": ("s = E(a = s.r)", "AFL1015"),
}


def _check(text: str) -> list[str]:
    return [diagnostic.code for diagnostic in compile_sources([("flow.afl", text)]).diagnostics]


@pytest.mark.parametrize(("statements", "code"), HOLES.values(), ids=HOLES.keys())
def test_a_hole_is_closed(statements: str, code: str) -> None:
    text = (
        "namespace t { facet Keep(n: Long) event facet E(a: Long) => (r: Long)"
        f" workflow W() => (o: Long?) andThen {{ {statements} }} }}"
    )
    assert _check(text) == [code]


def test_a_facet_that_calls_itself_by_way_of_another_is_found() -> None:
    text = (
        "namespace t { facet A() => (n: Long) andThen { b = B() yield A(n = b.n) }"
        " facet B() => (n: Long) andThen { a = A() yield B(n = a.n) } }"
    )
    assert _check(text) == ["AFL3008"]


def test_a_name_declared_in_two_blocks_of_a_namespace_is_found() -> None:
    assert _check("namespace t { facet A() } namespace t { facet A() }") == ["AFL1004"]


#: What others reject and must be accepted.
ACCEPTED = {
    "input that a script before the body derives": (
        'workflow W(i: Long) => (o: Json) script { result["twice"] = params["i"] * 2 }'
        " andThen { yield W(o = $.twice) }"
    ),
    "error in the catch of a declaration": (
        "workflow W() => (o: String) catch { yield W(o = error.type ++ error.message) }"
        ' andThen { e = E(a = 1) yield W(o = "" ++ e.r) }'
    ),
    "yield to the step's own facet in the catch of a step": (
        "workflow W() => (o: Long) andThen"
        " { e = E(a = 1) catch { yield E(r = 0) } yield W(o = e.r) }"
    ),
}


@pytest.mark.parametrize("declaration", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_is_sound_is_accepted(declaration: str) -> None:
    assert _check(f"namespace t {{ event facet E(a: Long) => (r: Long) {declaration} }}") == []
