"""Calls, statements and the blocks they stand in."""

from __future__ import annotations

from afl.lang.diagnostics.reporter import advise, replace
from afl.lang.parser.cursor import Cursor, Lost
from afl.lang.parser.expressions import missing_comma, parse_expr
from afl.lang.parser.literals import dedent
from afl.lang.tokens import BAD, SCRIPT, WORD
from afl.lang.tree import (
    Arg,
    BadExpr,
    Block,
    Call,
    Case,
    Catch,
    Clause,
    Expr,
    Foreach,
    Mixin,
    Name,
    Script,
    Statement,
    Step,
    SysAssert,
    SysLog,
    When,
    Yield,
)

_LIST_STOPS = frozenset({",", ")"})
_BLOCK_STOPS = frozenset({"}", ";"})
_CASE_STOPS = frozenset({"}", "case"})


def parse_call(cursor: Cursor) -> Call:
    target = cursor.expect_qname("the name of a facet")
    losses = cursor.losses
    cursor.expect("(", "and arguments")
    args = parse_args(cursor)
    return Call(target.start, cursor.end(), target, args, cursor.losses == losses)


def parse_args(cursor: Cursor) -> list[Arg]:
    """Arguments up to and with the closing parenthesis."""
    opening = cursor.pos - 1
    args: list[Arg] = []
    while not cursor.accept(")"):
        if cursor.at_end_of_list():
            cursor.unclosed(opening)
            return args
        complaints = len(cursor.reporter.diagnostics)
        try:
            arg = _parse_arg(cursor)
            if arg is not None:
                args.append(arg)
            end_of_item(cursor, ")")
        except Lost:
            cursor.skip_to(_LIST_STOPS)
            if not cursor.accept(",") and cursor.kinds[cursor.pos] != ")":
                if len(cursor.reporter.diagnostics) == complaints:
                    cursor.unclosed(opening)
                return args
    return args


def end_of_item(cursor: Cursor, closing: str) -> None:
    """A comma after an element, unless the list ends. A forgotten one is reported, not fatal."""
    kind = cursor.kinds[cursor.pos]
    if kind == ",":
        cursor.take()
    elif kind == closing or cursor.at_end_of_list():
        return
    elif kind == "}" or cursor.at_new_start() or cursor.at_call_step():
        # the list was never closed; the caller says so
        raise Lost
    elif cursor.kinds[cursor.pos - 1] == BAD:
        # a string without an end has swallowed the comma
        if not _at_item(cursor):
            raise Lost
    elif _at_item(cursor):
        missing_comma(cursor)
    else:
        raise cursor.lost(f"`,` or `{closing}`")


def _at_item(cursor: Cursor) -> bool:
    """Whether what stands here looks like the next element of a list of named things."""
    return cursor.at_label() and cursor.kinds[cursor.pos + 1] in ("=", ":")


def _parse_arg(cursor: Cursor) -> Arg | None:
    index = cursor.pos
    if cursor.at_label() and cursor.kinds[index + 1] in ("=", ":"):
        name = cursor.expect_label("a name")
        if cursor.kinds[cursor.pos] == ":":
            span = cursor.span_of(cursor.pos)
            cursor.complain(
                "AFL0101",
                span,
                "an argument is written `name = value`",
                "expected `=`",
                suggestions=[replace(span, " =", "write `=`", safe=True)],
            )
        cursor.take()
        try:
            value: Expr = parse_expr(cursor)
        except Lost:
            # the name counts as given, so that nobody is told that it is missing
            start = cursor.starts[cursor.pos]
            cursor.skip_to(_LIST_STOPS, since=index)
            value = BadExpr(start, max(start, cursor.end()))
        return Arg(name.start, value.end, name, value)
    value = parse_expr(cursor)
    if not isinstance(value, BadExpr):
        cursor.complain(
            "AFL0105",
            cursor.source.span(value.start, value.end),
            "arguments are given by name",
            "which parameter is this?",
            suggestions=[advise("write `name = value`")],
        )
    return None


def parse_mixins(cursor: Cursor) -> list[Mixin]:
    mixins = []
    while cursor.kinds[cursor.pos] == "with":
        index = cursor.take()
        call = parse_call(cursor)
        alias = cursor.expect_name("a mixin") if cursor.accept("as") else None
        mixins.append(Mixin(cursor.starts[index], cursor.end(), call, alias))
    return mixins


def parse_block(cursor: Cursor) -> Block:
    with cursor.nesting(2):
        opening = cursor.expect("{", "and a block")
        statements: list[Statement] = []
        while not _at_end_of_block(cursor, opening):
            start = cursor.pos
            try:
                _parse_statement(cursor, statements)
            except Lost:
                cursor.skip_to(_BLOCK_STOPS)
                if cursor.pos == start:
                    cursor.take()
    return Block(cursor.starts[opening], cursor.end(), statements)


def _at_end_of_block(cursor: Cursor, opening: int) -> bool:
    """Takes the closing brace, and semicolons before it. A brace that is missing is reported."""
    while cursor.accept(";"):
        pass
    if cursor.accept("}"):
        return True
    if cursor.at_next_declaration():
        cursor.unclosed(opening)
        return True
    return False


def _parse_statement(cursor: Cursor, statements: list[Statement]) -> None:
    """Reads one statement and adds it; a step even when what follows its name is damaged."""
    kind = cursor.kinds[cursor.pos]
    if kind == "yield":
        statements.append(_parse_yield(cursor))
        return
    following = cursor.kinds[cursor.pos + 1]
    if kind == WORD and following == "." and cursor.at_word("sys"):
        statements.append(_parse_sys(cursor))
        return
    if following == "=" and cursor.at_label():
        _parse_step(cursor, statements)
        return
    if kind == WORD and following in ("(", "."):
        raise _call_without_name(cursor)
    raise cursor.lost("a step, a `yield` or `}`")


def _call_without_name(cursor: Cursor) -> Lost:
    span = cursor.span_of(cursor.pos)
    cursor.complain(
        "AFL0101",
        span,
        "a call in a block needs a step name",
        "expected `name = `",
        suggestions=[replace(cursor.source.span(span.start, span.start), "s = ", "name the step")],
    )
    return cursor.lost("a step")


def _parse_step(cursor: Cursor, statements: list[Statement]) -> None:
    name = cursor.expect_name("a step")
    cursor.expect("=")
    step = Step(name.start, name.end, name, None, [], [], None, [])
    statements.append(step)
    step.call = parse_call(cursor)
    step.mixins = parse_mixins(cursor)
    if cursor.accept("after"):
        step.after.append(cursor.expect_word("the name of a step"))
        while cursor.accept(","):
            step.after.append(cursor.expect_word("the name of a step"))
    step.catch = maybe_catch(cursor)
    step.clauses = parse_clauses(cursor)
    step.end = cursor.end()


def _parse_yield(cursor: Cursor) -> Yield:
    index = cursor.take()
    targets = [parse_call(cursor)]
    while cursor.accept("with"):
        targets.append(parse_call(cursor))
    return Yield(cursor.starts[index], cursor.end(), targets)


def _parse_sys(cursor: Cursor) -> SysLog | SysAssert:
    start = cursor.starts[cursor.take()]
    cursor.take()
    if cursor.at_word("log"):
        cursor.take()
        cursor.expect("(")
        args = parse_args(cursor)
        return SysLog(start, cursor.end(), args)
    if cursor.at_word("assert"):
        cursor.take()
        cursor.expect("(")
        condition = parse_expr(cursor)
        cursor.expect(")", "after the condition")
        return SysAssert(start, cursor.end(), condition)
    raise cursor.lost("`log` or `assert`", "after `sys.`")


def parse_clauses(cursor: Cursor) -> list[Clause]:
    clauses = []
    while cursor.kinds[cursor.pos] == "andThen":
        clauses.append(_parse_clause(cursor))
    return clauses


def _parse_clause(cursor: Cursor) -> Clause:
    start = cursor.starts[cursor.take()]
    foreach: Foreach | None = None
    body: Block | When | Script
    kind = cursor.kinds[cursor.pos]
    if kind == "when":
        body = _parse_when(cursor)
    elif kind == "script":
        body = parse_script(cursor)
    else:
        if kind == "foreach":
            foreach = _parse_foreach(cursor)
        elif kind != "{":
            raise cursor.lost("`{`, `foreach`, `when` or `script`", "after `andThen`")
        body = parse_block(cursor)
    catch = maybe_catch(cursor)
    return Clause(start, cursor.end(), foreach, body, catch)


def _parse_foreach(cursor: Cursor) -> Foreach:
    start = cursor.starts[cursor.take()]
    variable = cursor.expect_name("the foreach variable")
    cursor.expect("in", "after the foreach variable")
    iterable = parse_expr(cursor)
    limit: Expr | None = None
    if cursor.at_word("limit"):
        cursor.take()
        limit = parse_expr(cursor)
    return Foreach(start, cursor.end(), variable, iterable, limit)


def _parse_when(cursor: Cursor) -> When:
    start = cursor.starts[cursor.take()]
    cases = []
    with cursor.nesting():
        opening = cursor.expect("{", "and cases")
        while not _at_end_of_block(cursor, opening):
            if cursor.kinds[cursor.pos] == "yield":
                cursor.unclosed(opening)
                break
            before = cursor.pos
            try:
                cases.append(_parse_case(cursor))
            except Lost:
                cursor.skip_to(_CASE_STOPS)
                if cursor.pos == before:
                    cursor.take()
    return When(start, cursor.end(), cases)


def _parse_case(cursor: Cursor) -> Case:
    start = cursor.starts[cursor.expect("case")]
    condition: Expr | None = None
    if cursor.at_word("_") and cursor.kinds[cursor.pos + 1] == "=>":
        cursor.take()
    else:
        condition = parse_expr(cursor)
    cursor.expect("=>", "after the condition")
    block = parse_block(cursor)
    return Case(start, cursor.end(), condition, block)


def maybe_catch(cursor: Cursor) -> Catch | None:
    if cursor.kinds[cursor.pos] != "catch":
        return None
    start = cursor.starts[cursor.take()]
    body = _parse_when(cursor) if cursor.kinds[cursor.pos] == "when" else parse_block(cursor)
    return Catch(start, cursor.end(), body)


def parse_script(cursor: Cursor) -> Script:
    start = cursor.starts[cursor.expect("script")]
    language: Name | None = None
    if cursor.kinds[cursor.pos] == WORD:
        language = cursor.expect_label("a language")
    index = cursor.pos
    if cursor.kinds[index] == BAD:
        cursor.losses += 1
        cursor.take()
        return Script(start, cursor.end(), language, "", cursor.starts[index] + 1)
    if cursor.kinds[index] != SCRIPT:
        raise cursor.lost("`{` and Python code", "after `script`")
    cursor.take()
    code_start, code_end = cursor.starts[index] + 1, cursor.ends[index] - 1
    code = dedent(cursor.text[code_start:code_end]).rstrip()
    return Script(start, cursor.end(), language, code, code_start)
