"""The syntax tree: what stands in a file, with the place of every part.

Nodes are plain slotted dataclasses, not frozen ones: a check makes hundreds of thousands, and a
frozen one costs three times as much to make. Nothing changes a node after the parser has returned
it. Parentheses are kept, comments stand beside the tokens, so the formatter can write every token
back. Chains of operators of one level are one node, and so are chains of `.x` and `[i]`: the depth
of a tree is bounded by the nesting that the parser allows, never by the length of an expression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from afl.lang.diagnostics.model import Diagnostic
from afl.lang.source import Source
from afl.lang.tokens import TokenStream


@dataclass(slots=True)
class Node:
    start: int
    end: int


@dataclass(slots=True)
class Name(Node):
    """A name as written, dotted where that is allowed."""

    text: str


# Types


@dataclass(slots=True)
class NamedType(Node):
    name: Name


@dataclass(slots=True)
class ListType(Node):
    of: TypeNode


@dataclass(slots=True)
class MapType(Node):
    key: TypeNode
    of: TypeNode


@dataclass(slots=True)
class OptionalType(Node):
    of: TypeNode


@dataclass(slots=True)
class BadType(Node):
    """Where a type should stand and something else does; already reported."""


TypeNode = NamedType | ListType | MapType | OptionalType | BadType


# Expressions


@dataclass(slots=True)
class StringLit(Node):
    value: str


@dataclass(slots=True)
class IntLit(Node):
    value: int


@dataclass(slots=True)
class DoubleLit(Node):
    value: float


@dataclass(slots=True)
class DurationLit(Node):
    ms: int


@dataclass(slots=True)
class BoolLit(Node):
    value: bool


@dataclass(slots=True)
class NullLit(Node):
    pass


@dataclass(slots=True)
class InputRef(Node):
    """`$.a.b`: an input of the enclosing declaration or a foreach variable, and fields of it."""

    path: list[Name]


@dataclass(slots=True)
class NameRef(Node):
    """`a.b.c`: a step and its attributes, `error.type`, or an enum member."""

    path: list[Name]


@dataclass(slots=True)
class ListLit(Node):
    items: list[Expr]


@dataclass(slots=True)
class MapEntry(Node):
    key: str
    key_end: int
    value: Expr


@dataclass(slots=True)
class MapLit(Node):
    entries: list[MapEntry]


@dataclass(slots=True)
class Paren(Node):
    inner: Expr


@dataclass(slots=True)
class Unary(Node):
    op: str
    operand: Expr


@dataclass(slots=True)
class ChainLink:
    """One operator of a chain, where it stands, and the operand to its right."""

    op: str
    op_start: int
    operand: Expr


@dataclass(slots=True)
class Chain(Node):
    """Operators of one level, read from the left: `a + b - c`, `a && b`, `a ?? b`."""

    first: Expr
    rest: list[ChainLink]


@dataclass(slots=True)
class Compare(Node):
    """One comparison; they do not chain. `op` is a sign or a word, `not in` included."""

    op: str
    op_start: int
    op_end: int
    left: Expr
    right: Expr


@dataclass(slots=True)
class FieldAccess(Node):
    name: Name


@dataclass(slots=True)
class IndexAccess(Node):
    index: Expr


@dataclass(slots=True)
class Postfix(Node):
    """`base[0].name[1]`: what follows a reference that has been indexed, or a literal."""

    base: Expr
    accessors: list[FieldAccess | IndexAccess]


@dataclass(slots=True)
class BadExpr(Node):
    """Where an expression should stand and something else does; already reported."""


Expr = (
    StringLit
    | IntLit
    | DoubleLit
    | DurationLit
    | BoolLit
    | NullLit
    | InputRef
    | NameRef
    | ListLit
    | MapLit
    | Paren
    | Unary
    | Chain
    | Compare
    | Postfix
    | BadExpr
)


# Calls and statements


@dataclass(slots=True)
class Arg(Node):
    name: Name
    value: Expr


@dataclass(slots=True)
class Call(Node):
    """`target(args)`. `complete` is false when part of it could not be read."""

    target: Name
    args: list[Arg]
    complete: bool = True


@dataclass(slots=True)
class Mixin(Node):
    """`with Call(...) as alias`. The span starts at `with`."""

    call: Call
    alias: Name | None


@dataclass(slots=True)
class Script(Node):
    """`script python { code }`; the span starts at `script`.

    `code` has its common indentation removed, `code_start` is where the text inside the braces
    starts.
    """

    language: Name | None
    code: str
    code_start: int


@dataclass(slots=True)
class Block(Node):
    statements: list[Statement]


@dataclass(slots=True)
class Case(Node):
    """`condition` is None for `case _`."""

    condition: Expr | None
    block: Block


@dataclass(slots=True)
class When(Node):
    cases: list[Case]


@dataclass(slots=True)
class Catch(Node):
    """`catch` and what runs: a block or a `when`."""

    body: Block | When


@dataclass(slots=True)
class Foreach(Node):
    """`foreach variable in iterable limit n`, without the block."""

    variable: Name
    iterable: Expr
    limit: Expr | None


@dataclass(slots=True)
class Clause(Node):
    """`andThen` and what runs, and the catch that guards it. `foreach` goes with a block only."""

    foreach: Foreach | None
    body: Block | When | Script
    catch: Catch | None


@dataclass(slots=True)
class Step(Node):
    """`name = call`. `call` is None when it could not be read; the name counts all the same."""

    name: Name
    call: Call | None
    mixins: list[Mixin]
    after: list[Name]
    catch: Catch | None
    clauses: list[Clause]


@dataclass(slots=True)
class Yield(Node):
    """`yield A(...) with B(...)`: one or more targets."""

    targets: list[Call]


@dataclass(slots=True)
class SysLog(Node):
    args: list[Arg]


@dataclass(slots=True)
class SysAssert(Node):
    condition: Expr


Statement = Step | Yield | SysLog | SysAssert


# Declarations


@dataclass(slots=True)
class Doc(Node):
    """A doc comment; `text` has the stars and the common indentation removed."""

    text: str


@dataclass(slots=True)
class Param(Node):
    """A parameter, a return or a schema field."""

    name: Name
    type: TypeNode
    default: Expr | None


@dataclass(slots=True)
class Prompt(Node):
    """`prompt { ... }`. `entries` maps an entry's word to what follows it; tools are names or
    strings."""

    entries: list[PromptEntry]


@dataclass(slots=True)
class PromptEntry(Node):
    key: Name
    value: StringLit | list[Name | StringLit]


FacetKind = Literal["facet", "event", "workflow"]


@dataclass(slots=True)
class FacetDecl(Node):
    doc: Doc | None
    kind: FacetKind
    name: Name
    params: list[Param]
    returns: list[Param] | None
    mixins: list[Mixin]
    catch: Catch | None
    prompt: Prompt | None
    script: Script | None
    clauses: list[Clause]
    #: part of it could not be read; what seems missing may be there
    damaged: bool = False


@dataclass(slots=True)
class SchemaDecl(Node):
    doc: Doc | None
    name: Name
    fields: list[Param]


@dataclass(slots=True)
class EnumDecl(Node):
    doc: Doc | None
    name: Name
    members: list[Name]


@dataclass(slots=True)
class ImplicitDecl(Node):
    doc: Doc | None
    name: Name
    call: Call


@dataclass(slots=True)
class ScheduleDecl(Node):
    """`schedule name = Call(...) cron "..." zone "..."`, or `every 15m`, or `at "..."`, and then
    `start "..." end "..." jitter 5m overlap skip catch_up last`, each or none."""

    doc: Doc | None
    name: Name
    call: Call
    cron: StringLit | None
    every: DurationLit | None
    zone: StringLit | None
    at: StringLit | None = None
    since: StringLit | None = None
    until: StringLit | None = None
    jitter: DurationLit | None = None
    overlap: Name | None = None
    catch_up: Name | None = None


@dataclass(slots=True)
class Use(Node):
    name: Name


Declaration = FacetDecl | SchemaDecl | EnumDecl | ImplicitDecl | ScheduleDecl


@dataclass(slots=True)
class Namespace(Node):
    doc: Doc | None
    name: Name
    uses: list[Use]
    declarations: list[Declaration]
    #: uses and declarations as they stand, for the formatter
    items: list[Use | Declaration]


@dataclass(slots=True)
class File:
    """One parsed file. `items` holds what stands at top level; only namespaces are legal there."""

    source: Source
    tokens: TokenStream
    items: list[Namespace | Use | Declaration]
    diagnostics: list[Diagnostic]
    #: names of declarations that could not be read: references to them are no second mistake
    broken: set[str]
    #: false when the parser gave up before the end
    complete: bool = True

    @property
    def namespaces(self) -> list[Namespace]:
        return [item for item in self.items if isinstance(item, Namespace)]
