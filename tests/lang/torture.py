"""Inputs that break careless compilers: very long, very deep, never closed, or all of it at once.

They are made on demand, because some are large.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

MEGABYTE = 1_000_000

Case = Callable[[], str]


def _space(text: str) -> str:
    return f"namespace a {{ {text} }}"


def _facet(default: str, type: str = "Json") -> str:
    return _space(f"facet F(x: {type} = {default})")


def _body(statements: str) -> str:
    return _space(f"event facet E(x: Int = 0) => (y: Int) facet F() andThen {{ {statements} }}")


def _script(code: str) -> str:
    return _space(f"event facet E() script {{\n{code}\n}}")


def _prompt(template: str) -> str:
    return _space(f'event facet F(x: Int) prompt {{ template "{template}" }}')


def _fill(piece: str, size: int = MEGABYTE) -> str:
    return piece * (size // len(piece))


def _filled_default(piece: str) -> str:
    return _facet(_fill(piece))


def _times(piece: str, count: int) -> str:
    """A piece many times; `#` in it becomes a number that counts up."""
    return "".join(piece.replace("#", str(number)) for number in range(count))


def _circle(piece: str, count: int) -> str:
    """The same, where `@` becomes the next number, and the last one's next is the first."""
    return "".join(
        piece.replace("#", str(number)).replace("@", str((number + 1) % count))
        for number in range(count)
    )


def _nested(before: str, inner: str, after: str, depth: int) -> str:
    return before * depth + inner + after * depth


_SIGNS = ("(", "[", "{", "#{", '"', "'", "}", ")", "\x00", "\ud800", "\n", "\r", "\ufeff", " ")
_MORE_SIGNS = ("\\", ";", "/*", "//", "#", "@", "\u3000", "😀")
_OPENERS = ("(", "[", "#{a:", "!", "-", "([#{a:")

_UNCLOSED = (
    "namespace",
    "namespace a",
    "namespace a {",
    "namespace a { facet F(",
    "namespace a { facet F(x:",
    "namespace a { facet F(x: [",
    "namespace a { facet F(x: {String:",
    'namespace a { facet F(x: Json = "',
    'namespace a { facet F(x: Json = """',
    "namespace a { facet F(x: Json = #{",
    "namespace a { facet F() catch",
    "namespace a { facet F() andThen {",
    "namespace a { facet F() andThen { s = E(",
    "namespace a { facet F() andThen when { case",
    "namespace a { facet F() andThen script {",
    "namespace a { facet F() andThen foreach x in",
    "namespace a { event facet F() prompt {",
    "namespace a { schema S {",
    "namespace a { enum E {",
    "namespace a { implicit i = F(",
    "namespace a { schedule s =",
    "namespace a { /*",
)

_LONG: dict[str, Case] = {
    "a sum": lambda: _facet("1+" * 10_000 + "1", "Int"),
    "a product of large numbers": lambda: _facet("9223372036854775807*" * 10_000 + "1", "Long"),
    "a joined text": lambda: _facet('"ab"++' * 10_000 + '""', "String"),
    "fields": lambda: _body(f"s = E(x = {'a.' * 10_000}b)"),
    "indices": lambda: _body(f"s = E(x = a{'[0]' * 5_000})"),
    "defaults": lambda: _body(f"s = E(x = {'s.x ?? ' * 2_000} 1)"),
    "conjunction": lambda: _body(f"sys.assert({'s.x != null && ' * 2_000} true)"),
    "disjunction": lambda: _body(f"sys.assert({'s.x == null || ' * 2_000} true)"),
    "comparisons": lambda: _body(f"sys.assert({'1 < ' * 10_000} 1)"),
    "a list": lambda: _facet(f"[{'1, ' * 10_000}]", "[Int]"),
    "a list of mixed types": lambda: _facet(f"[{'1, true, ' * 2_000}]", "[Int]"),
    "a map": lambda: _facet("#{" + _times("k#: 1, ", 5_000) + "}"),
    "a map of one key": lambda: _facet("#{" + "k: 1, " * 2_000 + "}"),
    "question marks": lambda: _space(f"schema S {{ x: Int{'? ' * 10_000} }}"),
    "a line": lambda: _space("facet F(x: Int) " * 2_000 + " " * MEGABYTE),
    "a string": lambda: _facet(f'"{_fill("abc ")}"', "String"),
    "escapes": lambda: _facet('"' + _fill("\\n", 500_000) + '"', "String"),
    "wrong escapes": lambda: _facet('"' + _fill("\\q") + '"', "String"),
    "a comment": lambda: f"/* {_fill('* / ')} */ namespace a {{}}",
    "a doc comment": lambda: f"/** {_fill('@param x {y} * ')} */ namespace a {{}}",
    "a name": lambda: f"namespace {_fill('a')} {{ facet {_fill('b')}() }}",
    "two names": lambda: _body(f"{'a' * 20_000} = E() t = E(x = {'a' * 19_999}b.y)"),
    "a template": lambda: _prompt(_fill("{x} {{ ")),
    "a template of open braces": lambda: _prompt(_fill("{")),
    "5,000 digits": lambda: _facet("9" * 5_000, "Long"),
    "a number": lambda: _facet(_fill("9"), "Long"),
    "a double": lambda: _facet(f"1.{_fill('9')}e{'9' * 5_000}", "Double"),
    "a duration": lambda: _facet("9" * 5_000 + "w", "Duration"),
    "a number with bars": lambda: _facet("1" + _fill("_1"), "Long"),
}

_DEEP: dict[str, Case] = {
    "lists": lambda: _facet(_nested("[", "", "]", 90)),
    "lists, too": lambda: _facet(_nested("[", "", "]", 50_000)),
    "maps": lambda: _facet(_nested("#{a: ", "1", "}", 45)),
    "maps, too": lambda: _facet(_nested("#{a: ", "1", "}", 30_000)),
    "parentheses": lambda: _facet(_nested("(", "1", ")", 45), "Int"),
    "types": lambda: _space(f"schema S {{ x: {_nested('[', 'Int', ']', 95)} }}"),
    "types, too": lambda: _space(f"schema S {{ x: {_nested('{String:', 'Int', '}', 50_000)} }}"),
    "blocks": lambda: _body(_nested("s = F() andThen { ", "", " }", 40)),
    "blocks, too": lambda: _body(_nested("s = F() andThen { ", "", " }", 5_000)),
    "cases": lambda: _body(
        _nested("s = F() andThen when { case true => { ", "", " } case _ => {} }", 30)
    ),
    "cases, too": lambda: _body(
        _nested("s = F() andThen when { case true => { ", "", " } case _ => {} }", 2_000)
    ),
}

_MANY: dict[str, Case] = {
    "statements": lambda: _body("s = E() " * 100_000),
    "steps": lambda: _body(_times("s# = E()\n", 5_000)),
    "steps in a row": lambda: _body(_circle("s@ = E(x = s#.y)\n", 4_000).replace("s3999.y", "1")),
    "steps in a circle": lambda: _body(_circle("s# = E(x = s@.y)\n", 3_000)),
    "misspelt steps": lambda: _body(_times("step# = E(x = stap#.y)\n", 2_000)),
    "facets in a circle": lambda: _space(_circle("facet F#() andThen { s = F@() }\n", 2_000)),
    "schemas in a circle": lambda: _space(_circle("schema S# { x: S@? }\n", 3_000)),
    "schemas in each other": lambda: _space(_circle("schema S# { x: S@ }\n", 3_000)),
    "mixins in a circle": lambda: _space(_circle("facet F#() with F@() as m\n", 2_000)),
    "parameters": lambda: _space(f"facet F({_times('p#: Int, ', 5_000)})"),
    "equal parameters": lambda: _space(f"facet F({'p: Int, ' * 2_000})"),
    "arguments": lambda: _body(f"s = E({_times('p# = 1, ', 2_000)})"),
    "members": lambda: _space(f"enum E {{ {_times('m#, ', 5_000)} }}"),
    "policies": lambda: _space("event facet F() " + "with Retry() " * 2_000),
    "clauses": lambda: _space("facet F() " + "andThen {} " * 5_000),
    "clauses with steps": lambda: _space(
        "facet E() facet F() " + _times("andThen { s# = E() }\n", 2_000)
    ),
    "cases": lambda: _space(f"facet F() andThen when {{ {'case true => {} ' * 2_000} }}"),
    "catches": lambda: _body(_times("s# = E() catch {}\n", 3_000)),
    "yields": lambda: _space(f"facet F() => (x: Int) andThen {{ {'yield F(x = 1) ' * 2_000} }}"),
    "namespaces": lambda: _circle("namespace n# { use n@ }\n", 2_000),
    "uses": lambda: _space("use a " * 2_000),
    "doc comments": lambda: "/** x */ " * 5_000,
    "comments": lambda: "namespace a { /* x */ // y\n }" * 5_000,
    "errors on one line": lambda: _space("facet F(x: ) " * 20_000),
}

_ODD: dict[str, Case] = {
    "carriage returns": lambda: 'namespace a {\r\n facet F(x: String = """\r\n  a\r\n """)\r}\r\n',
    "lone carriage returns": lambda: _facet("1", "Int").replace(" ", "\r"),
    "two byte order marks": lambda: "\ufeff\ufeffnamespace a {}",
}

_SCRIPTS: dict[str, Case] = {
    "nested braces": lambda: _script("x = " + _nested("{1: ", "{}", "}", 90)),
    "deep braces": lambda: _script("x = " + _nested("{", "", "}", 50_000)),
    "deep parentheses": lambda: _script("x = " + _nested("(", "", ")", 50_000)),
    "signs": lambda: _script("x = " + "-" * 100_000 + "1"),
    "a long sum": lambda: _script("x = " + "1+" * 50_000 + "1"),
    "attributes": lambda: _script("x = a" + ".b" * 50_000),
    "nots": lambda: _script("x = " + "not " * 50_000 + "1"),
    "deep ifs": lambda: _script("\n".join(" " * n + "if x:" for n in range(500))),
    "a long elif": lambda: _script("if x: pass\n" + "elif x: pass\n" * 5_000),
    "lambdas": lambda: _script("x = " + "lambda: " * 20_000 + "1"),
    "many lines": lambda: _script("x = 1\n" * 30_000),
    "a number of 5,000 digits": lambda: _script("x = " + "9" * 5_000),
    "NUL": lambda: _script("x = 1\x00"),
    "a surrogate": lambda: _script("x = '\ud800'"),
    "wrong escapes": lambda: _script("x = '\\d \\q'\ny = 1 is 1"),
    "quotes": lambda: _script(_fill("'\"")),
    "a script": lambda: _script("script { }"),
}


def _cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for sign in (*_SIGNS, *_MORE_SIGNS):
        cases[f"1 MB of {sign!a}"] = partial(_fill, sign)
    for sign in _OPENERS:
        cases[f"1 MB of {sign} in a default"] = partial(_filled_default, sign)
    for text in _UNCLOSED:
        cases[f"unclosed: {text}"] = partial(str, text)
        cases[f"unclosed 5,000 times: {text}"] = partial(_times, text + " ", 5_000)
    for title, group in (
        ("long", _LONG),
        ("deep", _DEEP),
        ("many", _MANY),
        ("odd", _ODD),
        ("script", _SCRIPTS),
    ):
        cases |= {f"{title}: {name}": case for name, case in group.items()}
    return cases


CASES = _cases()
