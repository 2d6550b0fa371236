"""A small program that uses most of the model, written by hand."""

from __future__ import annotations

from afl.ir.model import (
    Argument,
    Block,
    Clause,
    Enum,
    Facet,
    Input,
    Literal,
    Param,
    Program,
    Schedule,
    Schema,
    SourceSpan,
    Step,
    StepValue,
    Yield,
    YieldTarget,
)
from afl.ir.types import INT, STRING, EnumRef, ListOf, OptionalOf, SchemaRef

_GREET = Facet(
    name="demo.Greet",
    kind="event",
    params=(Param("name", STRING, Literal("world", STRING)),),
    returns=(Param("text", STRING, None),),
    policies=(),
    mixins=(),
    catch=None,
    prompt=None,
    script=None,
    clauses=(),
)

_HELLO = Step(
    id="demo.Main/0/hello",
    name="hello",
    facet="demo.Greet",
    kind="event",
    args=(Argument("name", Input("who", ())),),
    mixins=(),
    policies=(),
    after=(),
    needs=(),
    catch=None,
    clauses=(),
)

_RESULT = Yield(
    id="demo.Main/0/yield-0",
    targets=(
        YieldTarget(
            "demo.Main",
            (Argument("text", StepValue("demo.Main/0/hello", "return", "text", ())),),
        ),
    ),
    needs=("demo.Main/0/hello",),
)

_MAIN = Facet(
    name="demo.Main",
    kind="workflow",
    params=(Param("who", STRING, None),),
    returns=(Param("text", STRING, None),),
    policies=(),
    mixins=(),
    catch=None,
    prompt=None,
    script=None,
    clauses=(Clause("demo.Main/0", None, Block((_HELLO, _RESULT)), None, ()),),
)

EXAMPLE = Program(
    facets=(_GREET, _MAIN),
    schemas=(
        Schema(
            "demo.Person",
            (
                Param("age", OptionalOf(INT), None),
                Param("friends", ListOf(SchemaRef("demo.Person")), None),
                Param("mood", EnumRef("demo.Mood"), None),
            ),
        ),
    ),
    enums=(Enum("demo.Mood", ("Calm", "Merry")),),
    schedules=(
        Schedule(
            name="demo.Daily",
            workflow="demo.Main",
            args=(Argument("who", Literal("you", STRING)),),
            cron="0 9 * * *",
            every_ms=None,
            zone="UTC",
        ),
    ),
    spans={"demo.Main": SourceSpan("main.afl", 3, 1, 9, 2)},
    docs={"demo.Main": "Says hello."},
)
