"""What a generated program declares, as far as the rest of the program must know it."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

PRIMITIVES = ("String", "Int", "Long", "Double", "Boolean", "Json", "Duration")
ORDERED = ("String", "Int", "Long", "Double", "Duration")

_WORDS = (
    "load", "parse", "merge", "score", "order", "report", "ticket", "draft", "review", "fetch",
    "image", "answer", "batch", "invoice", "route", "signal", "model", "limit", "zone", "tools",
)  # fmt: skip
#: Reserved and contextual words are fine as names of parameters, and the compiler must know it.
_LABELS = (
    "in",
    "use",
    "facet",
    "when",
    "script",
    "with",
    "limit",
    "not",
    "contains",
    "prompt",
    "_",
)


@dataclass(frozen=True, slots=True)
class Type:
    """`kind`: a primitive, or list, map, opt (of something), schema, enum, facet (with a name)."""

    kind: str
    of: Type | None = None
    name: str = ""

    @property
    def inner(self) -> Type:
        assert self.of is not None
        return self.of


STRING, INT, LONG, DOUBLE, BOOLEAN, JSON, DURATION = (Type(name) for name in PRIMITIVES)


def list_of(type: Type) -> Type:
    return Type("list", type)


def optional(type: Type) -> Type:
    # Json holds null already
    return type if type.kind in ("opt", "Json") else Type("opt", type)


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, return or schema field; `default` is a constant as written."""

    name: str
    type: Type
    default: str | None = None

    @property
    def required(self) -> bool:
        return self.default is None and self.type.kind != "opt"


@dataclass(frozen=True, slots=True)
class Value:
    """Something that can be read. `stable` values are paths, which a test for null narrows."""

    text: str
    type: Type
    stable: bool = True


@dataclass(slots=True, eq=False)
class Schema:
    name: str
    namespace: str
    fields: list[Field]


@dataclass(slots=True, eq=False)
class Enum:
    name: str
    namespace: str
    members: list[str]


@dataclass(slots=True, eq=False)
class Facet:
    """`form`: record (params only), open (returns, no body), composed, event or workflow."""

    name: str
    namespace: str
    form: str
    params: list[Field]
    returns: list[Field]
    aliases: dict[str, Facet] = field(default_factory=dict)
    #: whether it may be tried again
    retries: bool = False
    #: a record facet that shares a parameter, so that mixing it in gives that parameter
    filler: Facet | None = None
    #: parameters that an implicit of the facet's namespace gives
    implied: set[str] = field(default_factory=set)

    def attributes(self) -> list[Field]:
        """What a step of this facet can be asked for: returns, then parameters."""
        own = {item.name for item in self.returns}
        return [*self.returns, *(item for item in self.params if item.name not in own)]


Declared = Schema | Enum | Facet


@dataclass(slots=True, eq=False)
class Unit:
    """One `namespace { }` block of one file."""

    namespace: str
    file: int
    uses: set[str] = field(default_factory=set)
    items: list[str] = field(default_factory=list)


@dataclass(slots=True)
class World:
    """Everything declared so far, and fresh names. Names are never used twice in a program."""

    rng: Random
    schemas: dict[str, Schema] = field(default_factory=dict)
    enums: dict[str, Enum] = field(default_factory=dict)
    facets: list[Facet] = field(default_factory=list)
    count: int = 0

    def fresh(self, *, capital: bool = False) -> str:
        self.count += 1
        word = self.rng.choice(_WORDS)
        return f"{word.capitalize() if capital else word}{self.count}"

    def labels(self, count: int) -> list[str]:
        """Different names for parameters or fields."""
        names = [self.fresh() for _ in range(count)]
        if names and self.rng.random() < 0.2:
            names[0] = self.rng.choice(_LABELS)
        return names

    def random_type(self, depth: int = 2) -> Type:
        roll = self.rng.random()
        if depth and roll < 0.15:
            return list_of(self.random_type(depth - 1))
        if depth and roll < 0.22:
            return Type("map", self.random_type(depth - 1))
        if depth and roll < 0.34:
            return optional(self.random_type(depth - 1))
        if roll < 0.44 and self.schemas:
            return Type("schema", name=self.rng.choice(list(self.schemas)))
        if roll < 0.54 and self.enums:
            return Type("enum", name=self.rng.choice(list(self.enums)))
        return Type(self.rng.choice(PRIMITIVES))

    def facet(self, name: str) -> Facet:
        return next(facet for facet in self.facets if facet.name == name)

    def ref(self, unit: Unit, declared: Declared) -> str:
        """A declaration's name as a unit may write it: short or full, with a `use` if needed."""
        full = f"{declared.namespace}.{declared.name}"
        if self.rng.random() < 0.2:
            return full
        if declared.namespace != unit.namespace:
            if declared.namespace not in unit.uses and self.rng.random() < 0.5:
                return full
            unit.uses.add(declared.namespace)
        return declared.name

    def type_text(self, unit: Unit, type: Type) -> str:
        match type.kind:
            case "list":
                return f"[{self.type_text(unit, type.inner)}]"
            case "map":
                return f"{{String: {self.type_text(unit, type.inner)}}}"
            case "opt":
                return f"{self.type_text(unit, type.inner)}?"
            case "schema":
                return self.ref(unit, self.schemas[type.name])
            case "enum":
                return self.ref(unit, self.enums[type.name])
            case "facet":
                return self.ref(unit, self.facet(type.name))
            case name:
                return name
