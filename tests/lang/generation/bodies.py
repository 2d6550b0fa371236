"""Random blocks, clauses and steps that yield what their owner must return, on every path."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from random import Random

from tests.lang.generation.expressions import Expressions, Scope
from tests.lang.generation.policies import call_policies
from tests.lang.generation.world import (
    BOOLEAN,
    INT,
    STRING,
    Facet,
    Field,
    Type,
    Unit,
    Value,
    World,
    list_of,
    optional,
)

_ERROR = [Value("error.type", STRING), Value("error.message", STRING)]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block stands: what it can read, whom it yields to, and how deep it may still nest."""

    scope: Scope
    owner: str
    depth: int
    #: the facet whose body this is; it may call itself under a condition
    itself: Facet | None = None
    #: a mixin of the signature that one yield may serve too
    guest: tuple[str, Facet] | None = None

    def seeing(self, values: Scope) -> Place:
        return replace(self, scope=[*self.scope, *values])

    def deeper(self) -> Place:
        return replace(self, depth=self.depth - 1, guest=None)


@dataclass(slots=True)
class _Steps:
    """The statements of a block so far, and what they make readable."""

    statements: list[str]
    names: list[str]
    values: Scope


class Bodies:
    """Writes the bodies of one unit's declarations."""

    def __init__(self, world: World, unit: Unit, expressions: Expressions) -> None:
        self.world = world
        self.unit = unit
        self.expressions = expressions
        self.rng: Random = world.rng

    # Clauses

    def clauses(self, place: Place, returns: list[Field]) -> str:
        """One or more `andThen` clauses that together yield all returns."""
        rng = self.rng
        kinds = [self._clause_kind(returns) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        if all(kind == "foreach" for kind in kinds) and any(not _is_list(r) for r in returns):
            kinds[0] = "plain"
        duties = self._share(kinds, returns)
        parts = []
        for kind, duty in zip(kinds, duties, strict=True):
            text, seen = self._clause(kind, place, duty)
            parts.append(text)
            place = replace(place.seeing(seen), guest=None)
        return "\n".join(parts)

    def _clause_kind(self, returns: list[Field]) -> str:
        return self.rng.choices(
            ("plain", "foreach", "when", "script"), (5, 2, 2, 1 if returns else 0)
        )[0]

    def _share(self, kinds: list[str], returns: list[Field]) -> list[list[Field]]:
        duties: list[list[Field]] = [[] for _ in kinds]
        for item in returns:
            if not item.required and self.rng.random() < 0.4:
                continue
            able = [i for i, kind in enumerate(kinds) if kind != "foreach" or _is_list(item)]
            if not able:
                continue
            duties[self.rng.choice(able)].append(item)
            if _is_list(item) and self.rng.random() < 0.2:
                duties[self.rng.choice(able)].append(item)
        return [list(dict.fromkeys(duty)) for duty in duties]

    def _clause(self, kind: str, place: Place, duty: list[Field]) -> tuple[str, Scope]:
        rng = self.rng
        seen: Scope = []
        if kind == "script" and duty:
            body = self.script("".join(f'result["{item.name}"] = None\n' for item in duty))
        elif kind == "foreach":
            body = self._foreach(place, duty)
        elif kind == "when":
            body = self.when(place.deeper(), duty)
        else:
            body, seen = self.block(replace(place, depth=place.depth - 1), duty)
        if rng.random() < 0.2:
            return f"andThen {body} catch {self.catch(place.deeper(), duty)}", []
        return f"andThen {body}", seen

    def script(self, code: str) -> str:
        """A script whose text is kept as it is; its strings and comments hold braces."""
        language = self.rng.choice(("", " python"))
        extra = self.rng.choice(
            ("", "x = {1: {'}': 2}}  # }\n", 'text = """ { """\n', "if True:\n    pass\n")
        )
        code = "".join(f"    {line}\n" for line in (extra + code).splitlines())
        return f"\x02script{language} {{\n{code}  }}\x03"

    def _foreach(self, place: Place, duty: list[Field]) -> str:
        rng = self.rng
        lists = [value for value in place.scope if value.type.kind == "list"]
        if lists and rng.random() < 0.7:
            source = rng.choice(lists)
            iterable, element = source.text, source.type.inner
        else:
            element = Type(rng.choice(("String", "Int", "Double")))
            iterable = self.expressions.make([], list_of(element), 1)
            if iterable == "[]":
                iterable, element = "[1, 2]", INT
        name = self.world.fresh()
        limit = f" limit {rng.choice(('1', '5', '10 + 2'))}" if rng.random() < 0.3 else ""
        inner = place.deeper().seeing([Value(f"$.{name}", element)])
        return f"foreach {name} in {iterable}{limit} {self.block(inner, duty)[0]}"

    def when(self, place: Place, duty: list[Field]) -> str:
        """Cases that all yield the same returns, with the default as the last."""
        rng = self.rng
        cases = []
        for _ in range(rng.randint(0, 2)):
            tested = self.expressions.testable(place.scope)
            inner = place
            if tested and rng.random() < 0.4:
                value = rng.choice(tested)
                condition = f"{value.text} != null"
                inner = place.seeing([Value(value.text, value.type.inner)])
            else:
                condition = self.expressions.make(place.scope, BOOLEAN, 2)
            cases.append(f"case {condition} => {self.block(inner, duty, conditional=True)[0]}")
        cases.append(f"case _ => {self.block(place, duty, conditional=True)[0]}")
        return "when {\n" + _indented("\n".join(cases)) + "\n}"

    def catch(self, place: Place, duty: list[Field]) -> str:
        """What runs after a failure; it yields in the place of what failed."""
        inner = place.seeing(_ERROR)
        if self.rng.random() < 0.3:
            return self.when(inner, duty)
        return self.block(inner, duty)[0]

    # Blocks

    def block(
        self, place: Place, duty: list[Field], *, conditional: bool = False
    ) -> tuple[str, Scope]:
        """A block and what its steps let later clauses read."""
        rng = self.rng
        steps = _Steps([], [], [])
        for _ in range(rng.randint(0, 2) if place.depth > 0 else 0):
            self._add_step(place.seeing(steps.values), steps, conditional=conditional)
        inner = place.seeing(steps.values)
        statements = [*steps.statements, *self._yields(inner, duty)]
        if rng.random() < 0.15:
            statements.append(f"sys.assert({self.expressions.make(inner.scope, BOOLEAN)})")
        if rng.random() < 0.15:
            statements.append(
                f"sys.log({self._args([Field('event', STRING), Field('in', INT)], inner.scope)})"
            )
        # the order of statements means nothing
        rng.shuffle(statements)
        end = rng.choice(("", "", "", ";"))
        text = "".join(f"{statement}{end}\n" for statement in statements)
        return "{\n" + _indented(text) + "}", steps.values

    def _yields(self, place: Place, duty: list[Field]) -> list[str]:
        rng = self.rng
        if not duty:
            return []
        groups = [duty]
        if len(duty) > 1 and rng.random() < 0.3:
            cut = rng.randint(1, len(duty) - 1)
            groups = [duty[:cut], duty[cut:]]
        yields = [f"yield {place.owner}({self._args(group, place.scope)})" for group in groups]
        if place.guest is not None:
            name, facet = place.guest
            yields[0] += f" with {name}({self._args(facet.returns, place.scope)})"
        return yields

    def _args(self, fields: list[Field], scope: Scope) -> str:
        args = [f"{item.name} = {self.expressions.make(scope, item.type)}" for item in fields]
        self.rng.shuffle(args)
        return ", ".join(args) + ("," if args and self.rng.random() < 0.1 else "")

    # Steps

    def _add_step(self, place: Place, steps: _Steps, *, conditional: bool) -> None:
        rng = self.rng
        name = self.world.fresh()
        if conditional and place.itself is not None and rng.random() < 0.3:
            callee = place.itself
        elif self.world.schemas and (not self.world.facets or rng.random() < 0.15):
            self._add_schema_step(name, place, steps)
            return
        else:
            able = [facet for facet in self.world.facets if self._callable(facet, place.scope)]
            if not able:
                return
            callee = rng.choice(able)
        text = f"{name} = {self.call_with_mixins(callee, place.scope)}"
        text += call_policies(rng, callee, self._key(place.scope))
        if steps.names and rng.random() < 0.2:
            text += f" after {', '.join(rng.sample(steps.names, rng.randint(1, len(steps.names))))}"
        tail, lost = self._tail(name, callee, place)
        steps.statements.append(text + tail)
        steps.names.append(name)
        for item in callee.attributes():
            type = optional(item.type) if item.name in lost else item.type
            steps.values.append(Value(f"{name}.{item.name}", type))
        for alias, mixed in callee.aliases.items():
            steps.values.append(Value(f"{name}.{alias}", Type("facet", name=mixed.name)))
        if not lost and callee is not place.itself:
            steps.values.append(Value(name, Type("facet", name=callee.name)))

    def _add_schema_step(self, name: str, place: Place, steps: _Steps) -> None:
        schema = self.world.schemas[self.rng.choice(list(self.world.schemas))]
        given = [item for item in schema.fields if item.required or self.rng.random() < 0.5]
        target = self.world.ref(self.unit, schema)
        steps.statements.append(f"{name} = {target}({self._args(given, place.scope)})")
        steps.names.append(name)
        steps.values.append(Value(name, Type("schema", name=schema.name)))

    def _tail(self, name: str, callee: Facet, place: Place) -> tuple[str, set[str]]:
        """The catch and the body of a step, and which returns its catch leaves out."""
        rng = self.rng
        own = {item.name for item in callee.returns}
        params = [item for item in callee.params if item.name not in own]
        inner = Place(
            [*place.scope, *(Value(f"{name}.{item.name}", item.type) for item in params)],
            self.world.ref(self.unit, callee),
            place.depth - 1,
        )
        text, lost = "", set()
        if callee is not place.itself and place.depth > 0 and rng.random() < 0.15:
            duty = [item for item in callee.returns if rng.random() < 0.6]
            lost = own - {item.name for item in duty}
            text += f" catch {self.catch(inner, duty)}"
        if callee.form == "open" or (
            callee.form in ("record", "composed") and place.depth > 1 and rng.random() < 0.1
        ):
            text += "\n" + _indented(self.clauses(inner, callee.returns))
        return text, lost

    def call(self, callee: Facet, scope: Scope, filled: Set[str] = frozenset()) -> str:
        """A call with the arguments that it needs, unless filled otherwise, and some more."""
        given = [item for item in self._needed(callee) if item.name not in filled]
        given += [item for item in callee.params if item not in given and self.rng.random() < 0.4]
        return f"{self.world.ref(self.unit, callee)}({self._args(given, scope)})"

    def call_with_mixins(self, callee: Facet, scope: Scope) -> str:
        """The call of a step. A mixin may give a parameter that the call then need not give."""
        rng = self.rng
        text, filler = "", callee.filler
        if filler is not None and rng.random() < 0.5:
            text += f" with {self.world.ref(self.unit, filler)}({self._args(filler.params, scope)})"
        else:
            filler = None
        if rng.random() < 0.1:
            text += self.aliased_mixin(scope)[0]
        filled = {item.name for item in filler.params} if filler is not None else set()
        return self.call(callee, scope, filled) + text

    def aliased_mixin(self, scope: Scope) -> tuple[str, str, Facet | None]:
        """`with Facet(...) as name`, the name and the facet; empty when there is no facet."""
        able = [
            facet
            for facet in self.world.facets
            if facet.form in ("record", "composed", "event") and self._callable(facet, scope)
        ]
        if not able:
            return "", "", None
        facet, alias = self.rng.choice(able), self.world.fresh()
        call = f"{self.world.ref(self.unit, facet)}({self._args(self._needed(facet), scope)})"
        return f" with {call} as {alias}", alias, facet

    def _needed(self, facet: Facet) -> list[Field]:
        """Parameters that a call must give here: no default, not optional, no implicit."""
        implied = facet.implied if facet.namespace == self.unit.namespace else set()
        return [item for item in facet.params if item.required and item.name not in implied]

    def _callable(self, facet: Facet, scope: Scope) -> bool:
        """Whether there is a step for every parameter that takes one."""
        return all(
            item.type.kind != "facet" or self.expressions.readable(scope, item.type)
            for item in facet.params
        )

    def _key(self, scope: Scope) -> str:
        return self.expressions.make(scope, STRING, 1)


def _is_list(item: Field) -> bool:
    return item.type.kind == "list"


def _indented(text: str) -> str:
    """Two blanks before every line, except inside of what is kept as it is."""
    lines: list[str] = []
    kept = False
    for line in text.split("\n"):
        lines.append(line if kept or not line else f"  {line}")
        kept = line.rfind("\x02") > line.rfind("\x03") or (kept and "\x03" not in line)
    return "\n".join(lines)
