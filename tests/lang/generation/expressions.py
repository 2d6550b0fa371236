"""Random expressions of a wanted type, over the values that can be read where they stand."""

from __future__ import annotations

from random import Random

from tests.lang.generation.world import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    ORDERED,
    PRIMITIVES,
    STRING,
    Type,
    Value,
    World,
    list_of,
    optional,
)

# How strongly an expression binds, weakest first; too weak an operand gets parentheses.
OR, AND, COMPARE, COALESCE, CONCAT, SUM, PRODUCT, UNARY, ATOM = range(9)

Written = tuple[str, int]
Scope = list[Value]

_STRINGS = (
    '""', '"a"', '"two words"', r'"line\nbreak \"quoted\""', r'"\u0041\u{1F600}"', '"ä → 😀"',
    '"{x} // no"', '"/* no */"', r'"C:\\temp\/"', '"\'single\'"', '"#{ ${"',
)  # fmt: skip
_TEXTS = ('"""one"""', '"""\n    first\n      second\n    """', '"""\n\tsay "hi" {{x}}\n\t"""')
_DURATIONS = ("500ms", "30s", "10m", "2h", "3d", "1w", "1h30m", "1d12h5m3s20ms")
_KEYS = ("a", "key", "in", "use", '"two words"', '"x"', "k9")


def settled(type: Type) -> Type:
    """The type with String for Json: `++` joins only lists whose elements are of one type."""
    if type.kind == "Json":
        return STRING
    return Type(type.kind, settled(type.of), type.name) if type.of is not None else type


class Expressions:
    """Writes expressions. An empty scope gives constants."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng: Random = world.rng

    def make(self, scope: Scope, type: Type, depth: int = 2) -> str:
        """An expression that fits a type."""
        return self.written(scope, type, depth)[0]

    def operand(self, scope: Scope, type: Type, depth: int, binds: int) -> str:
        text, strength = self.written(scope, type, depth)
        return text if strength >= binds else f"({text})"

    def written(self, scope: Scope, type: Type, depth: int) -> Written:
        result = self._plain(scope, type, depth)
        return (f"({result[0]})", ATOM) if self.rng.random() < 0.05 else result

    def _plain(self, scope: Scope, type: Type, depth: int) -> Written:
        rng = self.rng
        if scope and rng.random() < 0.5:
            values = self.readable(scope, type)
            if values:
                return rng.choice(values).text, ATOM
        if depth > 0 and scope and rng.random() < 0.15 and type.kind not in ("opt", "Json"):
            values = self.readable(scope, optional(type))
            if values:
                default = self.operand(scope, type, depth - 1, CONCAT)
                return f"{rng.choice(values).text} ?? {default}", COALESCE
        return self._made(scope, type, depth)

    def _made(self, scope: Scope, type: Type, depth: int) -> Written:
        rng = self.rng
        match type.kind:
            case "facet":
                # nothing but a step will do; callers have seen that there is one
                return rng.choice(self.readable(scope, type)).text, ATOM
            case "opt":
                if rng.random() < 0.4:
                    return "null", ATOM
                return self.written(scope, type.inner, depth)
            case "Json":
                simple = Type(rng.choice([name for name in PRIMITIVES if name != "Json"]))
                return self.written(scope, rng.choice([simple, list_of(simple)]), depth)
            case "list":
                return self._list(scope, type, depth)
            case "map":
                keys = rng.sample(_KEYS, rng.randint(0, 3))
                return self._map([(key, type.inner) for key in keys], scope, depth)
            case "schema":
                fields = self.world.schemas[type.name].fields
                given = [f for f in fields if f.required or rng.random() < 0.5]
                rng.shuffle(given)
                return self._map([(f.name, f.type) for f in given], scope, depth)
            case "enum":
                return rng.choice(self.world.enums[type.name].members), ATOM
            case "String":
                return self._string(scope, depth)
            case "Boolean":
                return self._boolean(scope, depth)
            case "Duration":
                return self._duration(scope, depth)
            case _:
                return self._number(scope, type, depth)

    # Values that can be read

    def readable(self, scope: Scope, type: Type) -> list[Value]:
        """The values of exactly this type, those inside of other values among them."""
        found: list[Value] = []
        for value in [*scope, *self._elements(scope)]:
            if value.type == type:
                found.append(value)
            elif value.type.kind == "schema":
                for field in self.world.schemas[value.type.name].fields:
                    if field.type == type:
                        found.append(Value(f"{value.text}.{field.name}", type, value.stable))
            elif value.type.kind == "facet":
                for field in self.world.facet(value.type.name).attributes():
                    if field.type == type:
                        found.append(Value(f"{value.text}.{field.name}", type, value.stable))
        return found

    def _elements(self, scope: Scope) -> list[Value]:
        """What lists and maps hold."""
        elements: list[Value] = []
        for value in scope:
            if value.type.kind == "list":
                index = self.rng.choice(("[0]", "[7]", "[1_0]"))
            elif value.type.kind == "map":
                index = self.rng.choice(('["k"]', '["two words"]', ".k", ".in"))
            else:
                continue
            elements.append(Value(value.text + index, value.type.inner, stable=False))
        return elements

    def testable(self, scope: Scope) -> list[Value]:
        """Paths that may be null."""
        return [value for value in scope if value.type.kind == "opt" and value.stable]

    # Literals and operators

    def _list(self, scope: Scope, type: Type, depth: int) -> Written:
        rng = self.rng
        if depth > 0 and rng.random() < 0.2:
            first = self.operand(scope, settled(type), depth - 1, SUM)
            second = self.operand(scope, settled(type), depth - 1, SUM)
            return f"{first} ++ {second}", CONCAT
        items = [self.make(scope, type.inner, depth - 1) for _ in range(rng.randint(0, 3))]
        return f"[{self._joined(items)}]", ATOM

    def _map(self, entries: list[tuple[str, Type]], scope: Scope, depth: int) -> Written:
        items = [f"{key}: {self.make(scope, type, depth - 1)}" for key, type in entries]
        return "#{" + self._joined(items) + "}", ATOM

    def _joined(self, items: list[str]) -> str:
        return ", ".join(items) + ("," if items and self.rng.random() < 0.15 else "")

    def _string(self, scope: Scope, depth: int) -> Written:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.5:
            # a text block is kept as it stands, whatever the layout does around it
            return (
                f"\x02{rng.choice(_TEXTS)}\x03" if rng.random() < 0.1 else rng.choice(_STRINGS)
            ), ATOM
        parts = [self.operand(scope, STRING, depth - 1, SUM)]
        for _ in range(rng.randint(1, 2)):
            type = rng.choice((STRING, STRING, INT, DOUBLE, BOOLEAN, DURATION))
            parts.append(self.operand(scope, type, depth - 1, SUM))
        return " ++ ".join(parts), CONCAT

    def _boolean(self, scope: Scope, depth: int) -> Written:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.2:
            return rng.choice(("true", "false")), ATOM
        roll = rng.random()
        if roll < 0.15:
            parts = [self.operand(scope, BOOLEAN, depth - 1, AND) for _ in range(rng.randint(2, 3))]
            return " || ".join(parts), OR
        if roll < 0.3:
            return self._and(scope, depth)
        if roll < 0.4:
            return f"!{self.operand(scope, BOOLEAN, depth - 1, UNARY)}", UNARY
        return self._comparison(scope, depth), COMPARE

    def _and(self, scope: Scope, depth: int) -> Written:
        rng = self.rng
        tested = self.testable(scope)
        if tested and rng.random() < 0.5:
            value = rng.choice(tested)
            narrowed = [*scope, Value(value.text, value.type.inner)]
            right = self.operand(narrowed, BOOLEAN, depth - 1, COMPARE)
            return f"{value.text} != null && {right}", AND
        parts = [self.operand(scope, BOOLEAN, depth - 1, COMPARE) for _ in range(rng.randint(2, 3))]
        return " && ".join(parts), AND

    def _comparison(self, scope: Scope, depth: int) -> str:
        rng = self.rng
        tested = self.testable(scope)
        if tested and rng.random() < 0.3:
            return f"{rng.choice(tested).text} {rng.choice(('==', '!='))} null"
        enums = [value for value in scope if value.type.kind == "enum"]
        if enums and rng.random() < 0.3:
            return self._enum_comparison(rng.choice(enums))
        less = depth - 1
        if rng.random() < 0.25:
            left = self.operand(scope, STRING, less, COALESCE)
            word = rng.choice(("contains", "startsWith", "endsWith"))
            return f"{left} {word} {self.operand(scope, STRING, less, COALESCE)}"
        type = Type(rng.choice(ORDERED))
        left = self.operand(scope, type, less, COALESCE)
        if rng.random() < 0.2:
            container = self.operand(scope, list_of(type), less, COALESCE)
            if rng.random() < 0.3:
                return f"{container} contains {left}"
            return f"{left} {rng.choice(('in', 'not in'))} {container}"
        sign = rng.choice(("==", "!=", "<", "<=", ">", ">="))
        return f"{left} {sign} {self.operand(scope, type, less, COALESCE)}"

    def _enum_comparison(self, value: Value) -> str:
        members = self.world.enums[value.type.name].members
        member = self.rng.choice(members)
        if self.rng.random() < 0.3:
            return f"{value.text} in [{self._joined(members[:2])}]"
        return f"{value.text} {self.rng.choice(('==', '!='))} {member}"

    def _duration(self, scope: Scope, depth: int) -> Written:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.6:
            return rng.choice(_DURATIONS), ATOM
        if rng.random() < 0.3:
            return f"{self.operand(scope, DURATION, depth - 1, PRODUCT)} * 2", PRODUCT
        left = self.operand(scope, DURATION, depth - 1, SUM)
        return f"{left} + {self.operand(scope, DURATION, depth - 1, PRODUCT)}", SUM

    def _number(self, scope: Scope, type: Type, depth: int) -> Written:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.5:
            return self._number_literal(type)
        if type == DOUBLE and rng.random() < 0.3:
            left = self.operand(scope, rng.choice((DOUBLE, INT)), depth - 1, PRODUCT)
            return f"{left} / {rng.choice(('2', '0.5', '8'))}", PRODUCT
        if type in (DOUBLE, LONG) and rng.random() < 0.2:
            return self.written(scope, INT, depth - 1)
        roll = rng.random()
        if roll < 0.25:
            return f"-{self.operand(scope, type, depth - 1, UNARY)}", UNARY
        if roll < 0.5:
            left = self.operand(scope, type, depth - 1, PRODUCT)
            return f"{left} {rng.choice(('* 3', '% 7', '* 1'))}", PRODUCT
        left = self.operand(scope, type, depth - 1, SUM)
        return f"{left} {rng.choice('+-')} {self.operand(scope, type, depth - 1, PRODUCT)}", SUM

    def _number_literal(self, type: Type) -> Written:
        rng = self.rng
        if type == INT:
            return rng.choice(("0", "1", "42", "1_000", str(rng.randint(0, 10_000)))), ATOM
        if type == LONG:
            return rng.choice(("3", "5_000_000_000", "123456789012")), ATOM
        return rng.choice(("0.5", "2.0", "1e3", "1.5e-3", "1_0.2_5", "7")), ATOM
