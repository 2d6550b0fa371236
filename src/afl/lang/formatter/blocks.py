"""Calls, statements and the blocks they stand in."""

from __future__ import annotations

from afl.lang.formatter.brackets import write_body, write_enclosed, write_list
from afl.lang.formatter.expressions import write_expr, write_name
from afl.lang.formatter.tokens_out import TokenWriter
from afl.lang.tree import (
    Arg,
    Block,
    Call,
    Case,
    Catch,
    Clause,
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

_PARENTHESES = ("(", ")")


def write_call(out: TokenWriter, call: Call) -> None:
    """`target(args)`."""
    write_name(out, call.target)
    write_list(out, _PARENTHESES, call.args, _write_arg)


def _write_arg(out: TokenWriter, arg: Arg) -> None:
    write_name(out, arg.name)
    out.space()
    out.token("=")
    out.space()
    write_expr(out, arg.value)


def write_mixins(out: TokenWriter, mixins: list[Mixin]) -> None:
    """All on the line of what they follow, or each on its own: the lines are the open group's."""
    with out.indented():
        for mixin in mixins:
            out.line(" ")
            out.token("with")
            out.space()
            write_call(out, mixin.call)
            if mixin.alias is not None:
                out.space()
                out.token("as")
                out.space()
                out.token()


def write_clauses(out: TokenWriter, clauses: list[Clause]) -> None:
    """Clauses in a row; the caller has separated the first one from what stands before it."""
    for position, clause in enumerate(clauses):
        if position:
            out.space(joint=True)
        out.token("andThen")
        out.space()
        if clause.foreach is not None:
            _write_foreach(out, clause.foreach)
            out.space()
        match clause.body:
            case Block():
                write_block(out, clause.body)
            case When():
                _write_when(out, clause.body)
            case Script():
                write_script(out, clause.body)
        if clause.catch is not None:
            out.space(joint=True)
            write_catch(out, clause.catch)


def write_catch(out: TokenWriter, catch: Catch) -> None:
    """`catch` and its block or `when`."""
    out.token("catch")
    out.space()
    if isinstance(catch.body, When):
        _write_when(out, catch.body)
    else:
        write_block(out, catch.body)


def write_script(out: TokenWriter, script: Script) -> None:
    """`script`, its language and its block of code."""
    out.token("script")
    out.space()
    if script.language is not None:
        out.token()
        out.space()
    out.token()


def write_block(out: TokenWriter, block: Block) -> None:
    """A block; with statements in it, it is never on one line."""
    write_body(out, block.statements, _write_statement)


def _write_foreach(out: TokenWriter, foreach: Foreach) -> None:
    out.token("foreach")
    out.space()
    out.token()
    out.space()
    out.token("in")
    out.space()
    write_expr(out, foreach.iterable)
    if foreach.limit is not None:
        out.space()
        out.token()
        out.space()
        write_expr(out, foreach.limit)


def _write_when(out: TokenWriter, when: When) -> None:
    out.token("when")
    out.space()
    write_body(out, when.cases, _write_case)


def _write_case(out: TokenWriter, case: Case) -> None:
    out.token("case")
    out.space()
    if case.condition is None:
        out.token()
    else:
        write_expr(out, case.condition)
    out.space()
    out.token("=>")
    out.space()
    block = case.block
    if len(block.statements) == 1 and out.is_one_line(block.start, block.end):
        statement = block.statements[0]
        write_enclosed(
            out, ("{", "}"), lambda: _write_statement(out, statement), pad=" ", yields=True
        )
    else:
        write_block(out, block)


def _write_statement(out: TokenWriter, statement: Statement) -> None:
    match statement:
        case Step():
            _write_step(out, statement)
        case Yield(targets=targets):
            _write_yield(out, targets)
        case SysLog(args=args):
            out.joined(3)
            write_list(out, _PARENTHESES, args, _write_arg)
        case SysAssert(condition=condition):
            out.joined(3)
            write_enclosed(out, _PARENTHESES, lambda: write_expr(out, condition))


def _write_step(out: TokenWriter, step: Step) -> None:
    if step.call is None:
        raise AssertionError("a file with errors cannot be formatted")
    out.token()
    out.space()
    out.token("=")
    out.space()
    with out.group():
        write_call(out, step.call)
        write_mixins(out, step.mixins)
        if step.after:
            _write_after(out, step)
        if step.mixins and (step.catch or step.clauses):
            out.line(" ")
    if not step.mixins and (step.catch or step.clauses):
        out.space(joint=True)
    if step.catch is not None:
        write_catch(out, step.catch)
        if step.clauses:
            out.space(joint=True)
    write_clauses(out, step.clauses)


def _write_after(out: TokenWriter, step: Step) -> None:
    """On the line of the call, or below the mixins if they have lines of their own."""
    with out.indented():
        if step.mixins:
            out.line(" ")
        else:
            out.space()
        out.token("after")
        out.space()
        _write_step_names(out, step.after)


def _write_step_names(out: TokenWriter, names: list[Name]) -> None:
    with out.group(), out.indented():
        for position in range(len(names)):
            if position:
                out.token(",")
                out.line(" ")
            out.token()


def _write_yield(out: TokenWriter, targets: list[Call]) -> None:
    with out.group():
        out.token("yield")
        out.space()
        write_call(out, targets[0])
        with out.indented():
            for target in targets[1:]:
                out.line(" ")
                out.token("with")
                out.space()
                write_call(out, target)
