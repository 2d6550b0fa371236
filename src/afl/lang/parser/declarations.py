"""Namespaces and what they declare."""

from __future__ import annotations

from afl.lang.diagnostics.model import Label
from afl.lang.diagnostics.reporter import advise
from afl.lang.parser.blocks import (
    end_of_item,
    maybe_catch,
    parse_call,
    parse_clauses,
    parse_mixins,
    parse_script,
)
from afl.lang.parser.cursor import Cursor, Lost
from afl.lang.parser.docs import DocComments
from afl.lang.parser.expressions import close, missing_comma, parse_expr, parse_type
from afl.lang.parser.literals import read_duration, read_string
from afl.lang.tokens import DURATION, EOF, STRING, TEXT
from afl.lang.tree import (
    BadType,
    Declaration,
    Doc,
    DurationLit,
    EnumDecl,
    Expr,
    FacetDecl,
    FacetKind,
    ImplicitDecl,
    Name,
    Param,
    Prompt,
    PromptEntry,
    ScheduleDecl,
    SchemaDecl,
    StringLit,
    Use,
)

_STARTS = frozenset({"facet", "event", "workflow", "implicit", "schema", "enum", "schedule"})
_PROMPT_STRINGS = frozenset({"system", "template", "model"})
_PROMPT_ENTRIES = _PROMPT_STRINGS | {"tools"}


def at_declaration(cursor: Cursor) -> bool:
    return cursor.kinds[cursor.pos] in _STARTS


def parse_use(cursor: Cursor) -> Use:
    start = cursor.starts[cursor.take()]
    name = cursor.expect_qname("the name of a namespace")
    return Use(start, name.end, name)


def parse_declaration(cursor: Cursor, docs: DocComments, broken: set[str]) -> Declaration:
    """The declaration at the cursor. If it is lost, its name is added to `broken`."""
    doc = docs.take(cursor.pos)
    kind = cursor.kinds[cursor.pos]
    start = cursor.starts[cursor.take()]
    if kind == "event":
        cursor.expect("facet", "after `event`")
    what = {"event": "an event facet", "implicit": "an implicit"}.get(kind, f"a {kind}")
    if kind == "enum":
        what = "an enum"
    name = cursor.expect_name(what)
    try:
        if kind == "schema":
            return _parse_schema(cursor, start, doc, name)
        if kind == "enum":
            return _parse_enum(cursor, start, doc, name)
        if kind == "implicit":
            cursor.expect("=", "after the name")
            call = parse_call(cursor)
            return ImplicitDecl(start, cursor.end(), doc, name, call)
        if kind == "schedule":
            return _parse_schedule(cursor, start, doc, name)
        facet_kind: FacetKind = (
            "event" if kind == "event" else "workflow" if kind == "workflow" else "facet"
        )
        return _parse_facet(cursor, start, doc, facet_kind, name)
    except Lost:
        broken.add(name.text)
        raise


def _parse_facet(
    cursor: Cursor, start: int, doc: Doc | None, kind: FacetKind, name: Name
) -> FacetDecl:
    losses = cursor.losses
    opening = cursor.expect("(", "and parameters")
    params = parse_params(cursor, opening, ")")
    returns: list[Param] | None = None
    if cursor.accept("=>") or _foreign_arrow(cursor):
        opening = cursor.expect("(", "and returns")
        returns = parse_params(cursor, opening, ")")
    facet = FacetDecl(start, 0, doc, kind, name, params, returns, [], None, None, None, [])
    try:
        facet.mixins = parse_mixins(cursor)
        facet.catch = maybe_catch(cursor)
        if cursor.at_word("prompt") and cursor.kinds[cursor.pos + 1] == "{":
            facet.prompt = _parse_prompt(cursor)
        else:
            if cursor.kinds[cursor.pos] == "script":
                facet.script = parse_script(cursor)
            facet.clauses = parse_clauses(cursor)
        _refuse_late_parts(cursor)
    except Lost:
        # the signature is known: callers of this facet must not be told that it is not
        cursor.skip_to(frozenset())
    facet.end = cursor.end()
    facet.damaged = cursor.losses != losses
    return facet


def _foreign_arrow(cursor: Cursor) -> bool:
    """`->` is reported and taken for `=>`."""
    if cursor.kinds[cursor.pos] != "-" or cursor.kinds[cursor.pos + 1] != ">":
        return False
    cursor.lost("`=>`")
    cursor.take()
    cursor.take()
    return True


def _refuse_late_parts(cursor: Cursor) -> None:
    kind = cursor.kinds[cursor.pos]
    if kind in ("with", "catch", "=>", "andThen", "script") or cursor.at_word("prompt"):
        word = cursor.tokens.text(cursor.pos)
        cursor.complain(
            "AFL0101",
            cursor.span_of(cursor.pos),
            f"`{word}` cannot stand here",
            "too late",
            suggestions=[
                advise(
                    "the order is: parameters, `=>` returns, `with` policies and mixins, `catch`, "
                    "then `prompt`, or `script` and `andThen`"
                )
            ],
        )
        raise Lost


def parse_params(cursor: Cursor, opening: int, closing: str) -> list[Param]:
    """Parameters, returns or fields up to and with the closing bracket."""
    params: list[Param] = []
    stops = frozenset({",", closing})
    while not cursor.accept(closing):
        if cursor.at_end_of_list():
            cursor.unclosed(opening)
            return params
        complaints = len(cursor.reporter.diagnostics)
        try:
            params.append(_parse_param(cursor, stops))
            end_of_item(cursor, closing)
        except Lost:
            cursor.skip_to(stops)
            if not cursor.accept(",") and cursor.kinds[cursor.pos] != closing:
                if len(cursor.reporter.diagnostics) == complaints:
                    cursor.unclosed(opening)
                raise
    return params


def _parse_param(cursor: Cursor, stops: frozenset[str]) -> Param:
    name = cursor.expect_label("a name")
    default: Expr | None = None
    try:
        cursor.expect(":", "and a type")
        type_node = parse_type(cursor)
        if cursor.accept("="):
            default = parse_expr(cursor)
        return Param(name.start, cursor.end(), name, type_node, default)
    except Lost:
        start = cursor.starts[cursor.pos]
        cursor.skip_to(stops)
        return Param(name.start, cursor.end(), name, BadType(start, start), None)


def _parse_schema(cursor: Cursor, start: int, doc: Doc | None, name: Name) -> SchemaDecl:
    opening = cursor.expect("{", "and fields")
    fields = parse_params(cursor, opening, "}")
    return SchemaDecl(start, cursor.end(), doc, name, fields)


def _parse_enum(cursor: Cursor, start: int, doc: Doc | None, name: Name) -> EnumDecl:
    opening = cursor.expect("{", "and members")
    members = []
    while cursor.kinds[cursor.pos] != "}":
        members.append(cursor.expect_label("a member"))
        if cursor.at_label():
            missing_comma(cursor)
        elif not cursor.accept(","):
            break
    close(cursor, opening, "}")
    return EnumDecl(start, cursor.end(), doc, name, members)


def _parse_schedule(cursor: Cursor, start: int, doc: Doc | None, name: Name) -> ScheduleDecl:
    cursor.expect("=", "after the name")
    call = parse_call(cursor)
    schedule = ScheduleDecl(start, 0, doc, name, call, None, None, None)
    if _accept_word(cursor, "cron"):
        schedule.cron = _expect_string(cursor, "a cron expression")
    elif _accept_word(cursor, "every"):
        schedule.every = _expect_duration(cursor)
    elif _accept_word(cursor, "at"):
        schedule.at = _expect_string(cursor, "a time")
    else:
        raise cursor.lost("`cron`, `every` or `at`", "after the call")
    if _accept_word(cursor, "zone"):
        schedule.zone = _expect_string(cursor, "a time zone")
    if _accept_word(cursor, "start"):
        schedule.since = _expect_string(cursor, "a time")
    if _accept_word(cursor, "end"):
        schedule.until = _expect_string(cursor, "a time")
    if _accept_word(cursor, "jitter"):
        schedule.jitter = _expect_duration(cursor)
    if _accept_word(cursor, "overlap"):
        schedule.overlap = cursor.expect_name("a policy for overlap")
    if _accept_word(cursor, "catch_up"):
        schedule.catch_up = cursor.expect_name("a policy for catching up")
    schedule.end = cursor.end()
    return schedule


def _accept_word(cursor: Cursor, word: str) -> bool:
    if not cursor.at_word(word):
        return False
    cursor.take()
    return True


def _expect_duration(cursor: Cursor) -> DurationLit:
    if cursor.kinds[cursor.pos] != DURATION:
        raise cursor.lost("a duration such as `15m`")
    return read_duration(cursor)


def _expect_string(cursor: Cursor, what: str) -> StringLit:
    if cursor.kinds[cursor.pos] not in (STRING, TEXT):
        raise cursor.lost(f"{what} in quotes")
    return read_string(cursor)


def _parse_prompt(cursor: Cursor) -> Prompt:
    start = cursor.starts[cursor.take()]
    opening = cursor.take()
    entries: list[PromptEntry] = []
    while not cursor.accept("}"):
        if cursor.kinds[cursor.pos] == EOF:
            cursor.unclosed(opening)
            raise Lost
        if cursor.accept(";"):
            continue
        try:
            entry = _parse_prompt_entry(cursor)
        except Lost:
            _skip_to_entry(cursor)
            continue
        if entry is not None:
            _add_entry(cursor, entries, entry)
    return Prompt(start, cursor.end(), entries)


def _add_entry(cursor: Cursor, entries: list[PromptEntry], entry: PromptEntry) -> None:
    first = next((other for other in entries if other.key.text == entry.key.text), None)
    if first is None:
        entries.append(entry)
        return
    cursor.complain(
        "AFL0112",
        cursor.source.span(entry.key.start, entry.key.end),
        f"`{entry.key.text}` is given twice",
        "second one",
        secondary=(Label(cursor.source.span(first.key.start, first.key.end), "first one"),),
    )


def _skip_to_entry(cursor: Cursor) -> None:
    """Past whatever could not be read, to the next entry or the end of the prompt."""
    cursor.take()
    while cursor.kinds[cursor.pos] not in ("}", EOF) and not (
        cursor.at_label() and cursor.tokens.text(cursor.pos) in _PROMPT_ENTRIES
    ):
        cursor.take()


def _parse_prompt_entry(cursor: Cursor) -> PromptEntry | None:
    key = cursor.expect_label("`system`, `template`, `model` or `tools`")
    if key.text in _PROMPT_STRINGS:
        value: StringLit | list[Name | StringLit] = _expect_string(cursor, "a text")
        return PromptEntry(key.start, cursor.end(), key, value)
    if key.text == "tools":
        value = _parse_tools(cursor)
        return PromptEntry(key.start, cursor.end(), key, value)
    cursor.complain(
        "AFL0111",
        cursor.source.span(key.start, key.end),
        f"a prompt has no entry `{key.text}`",
        "unknown entry",
        suggestions=[advise("the entries are `system`, `template`, `model` and `tools`")],
    )
    while cursor.kinds[cursor.pos] not in ("}", EOF) and not cursor.at_label():
        cursor.take()
    return None


def _parse_tools(cursor: Cursor) -> list[Name | StringLit]:
    opening = cursor.expect("[", "and a list of tools")
    tools: list[Name | StringLit] = []
    while cursor.kinds[cursor.pos] != "]":
        if cursor.kinds[cursor.pos] in (STRING, TEXT):
            tools.append(read_string(cursor))
        else:
            tools.append(cursor.expect_qname("an event facet or an MCP tool in quotes"))
        if not cursor.accept(","):
            break
    close(cursor, opening, "]")
    return tools
