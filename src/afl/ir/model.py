"""The compiled program. Names are resolved, statements have ids that are paths, nothing is left to
look up.

A statement id is the declaration's name and the way to the statement: `review.ReviewPull/0/tests`
is the step `tests` of the first clause. Parts of a way: a clause's index, a step's name, `case-N`
of a `when`, `catch`, `yield-N`, `log-N`, `assert-N` (counted within their block), and `with/alias`
for a mixin that runs as a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal as OneOf

from afl.ir.types import Type

#: The version of the form in which programs are stored. A reader refuses what is newer.
FORMAT_VERSION = 1


# Expressions


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. A Duration is its milliseconds, an enum member its name."""

    value: str | int | float | bool | None
    type: Type | None


@dataclass(frozen=True, slots=True)
class Input:
    """`$.name.path`: a parameter of the declaration, or a mixin of its signature by alias."""

    name: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """`$.name.path` where the name is the variable of the foreach clause with that id."""

    clause: str
    name: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepValue:
    """`step.name.path`. `source` says where the name is found; `step` itself has an empty name."""

    step: str
    source: OneOf["step", "return", "param", "mixin"]
    name: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ErrorValue:
    """`error.type` or `error.message` of the catch with that id; an empty field is all of it."""

    catch: str
    field: str


@dataclass(frozen=True, slots=True)
class ListExpr:
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class MapItem:
    key: str
    value: Expr


@dataclass(frozen=True, slots=True)
class MapExpr:
    items: tuple[MapItem, ...]


@dataclass(frozen=True, slots=True)
class UnaryExpr:
    op: OneOf["-", "!"]
    operand: Expr


@dataclass(frozen=True, slots=True)
class Link:
    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class ChainExpr:
    """Operators of one level, applied from the left. `&&`, `||` and `??` stop at the first that
    decides."""

    first: Expr
    rest: tuple[Link, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class CompareExpr:
    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class FieldOf:
    name: str


@dataclass(frozen=True, slots=True)
class IndexOf:
    index: Expr


@dataclass(frozen=True, slots=True)
class PostfixExpr:
    base: Expr
    accessors: tuple[FieldOf | IndexOf, ...]


Expr = (
    Literal
    | Input
    | Variable
    | StepValue
    | ErrorValue
    | ListExpr
    | MapExpr
    | UnaryExpr
    | ChainExpr
    | CompareExpr
    | PostfixExpr
)


# Calls


@dataclass(frozen=True, slots=True)
class Argument:
    """`origin`: written in the call, taken from a mixin without alias, or from an implicit."""

    name: str
    value: Expr
    origin: OneOf["call", "mixin", "implicit"] = "call"


@dataclass(frozen=True, slots=True)
class Policy:
    """`with Retry(...)`: a policy of the built-in namespace, with every argument it was given."""

    name: str
    args: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Mixin:
    """A facet mixed into another. With an alias in a signature it runs as a step of its own."""

    id: str
    facet: str
    alias: str | None
    args: tuple[Argument, ...]


# Statements and blocks


@dataclass(frozen=True, slots=True)
class Script:
    language: str
    code: str


@dataclass(frozen=True, slots=True)
class Block:
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A case of a `when`; the default has no condition."""

    id: str
    condition: Expr | None
    block: Block


@dataclass(frozen=True, slots=True)
class When:
    """The first case whose condition is true runs."""

    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Catch:
    id: str
    body: Block | When
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Foreach:
    variable: str
    iterable: Expr
    limit: Expr | None


@dataclass(frozen=True, slots=True)
class Clause:
    """`needs` are the steps that its iterable or its conditions read."""

    id: str
    foreach: Foreach | None
    body: Block | When | Script
    catch: Catch | None
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """`needs` are the ids of the steps that must be complete before this one starts, `after` among
    them."""

    id: str
    name: str
    facet: str
    kind: OneOf["facet", "event", "workflow", "schema"]
    args: tuple[Argument, ...]
    mixins: tuple[Mixin, ...]
    policies: tuple[Policy, ...]
    after: tuple[str, ...]
    needs: tuple[str, ...]
    catch: Catch | None
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class YieldTarget:
    """`owner` is the id of what receives the values: a declaration, a step or a mixin."""

    owner: str
    args: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Yield:
    id: str
    targets: tuple[YieldTarget, ...]
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Log:
    id: str
    args: tuple[Argument, ...]
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assert:
    id: str
    condition: Expr
    needs: tuple[str, ...]


Statement = Step | Yield | Log | Assert


# Declarations


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter, a return or a field. A default is a constant expression."""

    name: str
    type: Type
    default: Expr | None


@dataclass(frozen=True, slots=True)
class Tool:
    """What a prompt may call: an event facet by its full name, or an MCP tool as `server/tool`."""

    kind: OneOf["facet", "mcp"]
    name: str


@dataclass(frozen=True, slots=True)
class Prompt:
    system: str | None
    template: str
    model: str | None
    tools: tuple[Tool, ...]


@dataclass(frozen=True, slots=True)
class Facet:
    """A facet, event facet or workflow. A script serves an event facet, and comes before the body
    of others."""

    name: str
    kind: OneOf["facet", "event", "workflow"]
    params: tuple[Param, ...]
    returns: tuple[Param, ...]
    policies: tuple[Policy, ...]
    mixins: tuple[Mixin, ...]
    catch: Catch | None
    prompt: Prompt | None
    script: Script | None
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    name: str
    fields: tuple[Param, ...]


@dataclass(frozen=True, slots=True)
class Enum:
    name: str
    members: tuple[str, ...]


Overlap = OneOf["allow", "skip", "queue", "cancel"]
CatchUp = OneOf["none", "last", "all"]
#: What a schedule does while a run of it goes on, and about times that nobody was there for.
DEFAULT_OVERLAP: Overlap = "skip"
DEFAULT_CATCH_UP: CatchUp = "last"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Exactly one of `cron`, `every_ms` and `at` is set. Times are in ISO 8601; those without an
    offset are of the zone."""

    name: str
    workflow: str
    args: tuple[Argument, ...]
    cron: str | None
    every_ms: int | None
    zone: str
    #: the one time at which it starts its workflow
    at: str | None = None
    #: it starts nothing before this time, and intervals are counted from it
    start: str | None = None
    #: it starts nothing after this time
    end: str | None = None
    jitter_ms: int | None = None
    overlap: Overlap = DEFAULT_OVERLAP
    catch_up: CatchUp = DEFAULT_CATCH_UP


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """Lines and columns count from 1; the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Program:
    """Every list is sorted by name. `spans` and `docs`, by declaration name or statement id, are
    for people: two programs that differ in nothing else are the same program."""

    facets: tuple[Facet, ...]
    schemas: tuple[Schema, ...]
    enums: tuple[Enum, ...]
    schedules: tuple[Schedule, ...]
    spans: Mapping[str, SourceSpan] = field(default_factory=dict, compare=False)
    docs: Mapping[str, str] = field(default_factory=dict, compare=False)
