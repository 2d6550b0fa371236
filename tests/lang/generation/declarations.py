"""Random declarations. Each uses only those written before it, so nothing recurs by accident."""

from __future__ import annotations

from random import Random

from tests.lang.generation.bodies import Bodies, Place
from tests.lang.generation.expressions import Expressions
from tests.lang.generation.policies import BREAKER, HUMAN, event_policies, flow_policies
from tests.lang.generation.world import (
    JSON,
    STRING,
    Enum,
    Facet,
    Field,
    Schema,
    Type,
    Unit,
    Value,
    World,
)

_CRONS = ("0 2 * * *", "*/15 * * * *", "30 8 1 * 1-5")
_ZONES = ("UTC", "Europe/Berlin", "America/New_York")
_FORMS = ("record", "open", "composed", "event", "event", "workflow", "workflow")


class Declarations:
    """Writes declarations into units."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng: Random = world.rng
        self.expressions = Expressions(world)

    def add(self, unit: Unit) -> None:
        """One more declaration of a random kind."""
        kind = self.rng.choices(
            ("schema", "enum", "facet", "implicit", "schedule"), (2, 2, 10, 1, 1)
        )[0]
        text = getattr(self, f"_{kind}")(unit)
        if text:
            unit.items.append(text)

    def _schema(self, unit: Unit) -> str:
        schema = Schema(
            self.world.fresh(capital=True), unit.namespace, self._fields(self.rng.randint(0, 4))
        )
        text = f"schema {schema.name} {{ {self._params(unit, schema.fields)} }}"
        self.world.schemas[schema.name] = schema
        return self._doc([]) + text

    def _enum(self, unit: Unit) -> str:
        members = [self.world.fresh() for _ in range(self.rng.randint(1, 4))]
        enum = Enum(self.world.fresh(capital=True), unit.namespace, members)
        self.world.enums[enum.name] = enum
        comma = self.rng.choice(("", ","))
        return f"{self._doc([])}enum {enum.name} {{ {', '.join(members)}{comma} }}"

    def _implicit(self, unit: Unit) -> str:
        able = [
            (facet, item)
            for facet in self.world.facets
            if facet.namespace == unit.namespace and not facet.implied
            for item in facet.params
            if item.type.kind != "facet"
        ]
        if not able:
            return ""
        facet, item = self.rng.choice(able)
        facet.implied.add(item.name)
        value = self.expressions.make([], item.type, 1)
        return f"implicit {self.world.fresh()} = {facet.name}({item.name} = {value})"

    def _schedule(self, unit: Unit) -> str:
        flows = [facet for facet in self.world.facets if facet.form == "workflow"]
        if not flows:
            return ""
        rng = self.rng
        call = Bodies(self.world, unit, self.expressions).call(rng.choice(flows), [])
        when = (
            f'cron "{rng.choice(_CRONS)}"'
            if rng.random() < 0.5
            else f"every {rng.choice(('15m', '1h30m'))}"
            if rng.random() < 0.7
            else 'at "2026-05-01T09:00+02:00"'
        )
        zone = f' zone "{rng.choice(_ZONES)}"' if rng.random() < 0.5 else ""
        more = "".join(
            f" {clause}"
            for clause in (
                'start "2026-01-01"',
                'end "2027-01-01T09:00"',
                "jitter 5m",
                f"overlap {rng.choice(('skip', 'allow', 'queue', 'cancel'))}",
                f"catch_up {rng.choice(('none', 'last', 'all'))}",
            )
            if rng.random() < 0.2
        )
        return f"schedule {self.world.fresh()} = {call} {when}{zone}{more}"

    def _facet(self, unit: Unit) -> str:
        rng = self.rng
        form = rng.choice(_FORMS)
        params = self._fields(rng.randint(0, 3))
        taken = {item.name for item in params}
        returns = [f for f in self._fields(rng.randint(0, 3)) if f.name not in taken]
        if form == "record":
            returns = []
        facet = Facet(self.world.fresh(capital=True), unit.namespace, form, params, returns)
        word = {"event": "event facet", "workflow": "workflow"}.get(form, "facet")
        records = [other for other in self.world.facets if other.form == "record"]
        if form in ("composed", "event") and records and rng.random() < 0.15:
            params.append(Field(self.world.fresh(), Type("facet", name=rng.choice(records).name)))
        text = f"{self._doc(params)}{word} {facet.name}({self._params(unit, params)})"
        if returns or rng.random() < 0.1:
            text += f" => ({self._params(unit, returns)})"
        text += self._rest(unit, facet)
        self.world.facets.append(facet)
        if params and params[0].type.kind != "facet" and rng.random() < 0.15:
            self._add_filler(unit, facet)
        return text

    def _add_filler(self, unit: Unit, facet: Facet) -> None:
        """A record facet that can be mixed into calls of another to give its first parameter."""
        shared = Field(facet.params[0].name, facet.params[0].type)
        facet.filler = Facet(self.world.fresh(capital=True), unit.namespace, "record", [shared], [])
        unit.items.append(f"facet {facet.filler.name}({self._params(unit, [shared])})")
        self.world.facets.append(facet.filler)

    def _rest(self, unit: Unit, facet: Facet) -> str:
        """What follows the parameters and returns."""
        if facet.form == "event":
            return self._event_rest(unit, facet)
        if facet.form in ("record", "open"):
            return ""
        rng = self.rng
        bodies = Bodies(self.world, unit, self.expressions)
        scope = [Value(f"$.{item.name}", item.type) for item in facet.params]
        parts = flow_policies(rng) if facet.form == "workflow" else []
        guest: tuple[str, Facet] | None = None
        if rng.random() < 0.2:
            text, alias, mixed = bodies.aliased_mixin(scope)
            if mixed is not None:
                parts.append(text.strip())
                facet.aliases[alias] = mixed
                guest = (alias, mixed)
                scope = [*scope, Value(f"$.{alias}", Type("facet", name=mixed.name))]
        place = Place(scope, facet.name, 2, facet, guest)
        if facet.returns and rng.random() < 0.1:
            duty = [item for item in facet.returns if item.required]
            parts.append(f"catch {bodies.catch(place.deeper(), duty)}")
        if rng.random() < 0.05:
            # a script ahead of the body sets inputs of its own
            derived = self.world.fresh()
            parts.append(bodies.script(f'result["{derived}"] = len(params)\n'))
            place = place.seeing([Value(f"$.{derived}", JSON)])
        parts.append(bodies.clauses(place, facet.returns))
        return "\n  " + "\n  ".join(parts)

    def _event_rest(self, unit: Unit, facet: Facet) -> str:
        rng = self.rng
        scope = [Value(f"$.{item.name}", item.type) for item in facet.params]
        parts = event_policies(rng, self.expressions.make(scope, STRING, 1))
        facet.retries = not any("irreversible" in policy for policy in parts)
        roll = rng.random()
        if roll < 0.2:
            parts.append(self._prompt(unit, facet))
        elif roll < 0.4:
            code = (
                "".join(f'result["{item.name}"] = params\n' for item in facet.returns) or "pass\n"
            )
            parts.append(Bodies(self.world, unit, self.expressions).script(code))
        elif roll < 0.5:
            parts.append(f"with {rng.choice(HUMAN)}")
        elif roll < 0.6:
            parts.append(f"with {rng.choice(BREAKER)}")
        return "".join(f"\n  {part}" for part in parts)

    def _prompt(self, unit: Unit, facet: Facet) -> str:
        rng = self.rng
        slots = " ".join(f"{{{item.name}}}" for item in facet.params)
        entries = [f'template "Do this: {slots} {{{{x}}}}"']
        if rng.random() < 0.5:
            entries.append('system "You are careful."')
        if rng.random() < 0.3:
            entries.append('model "large"')
        if rng.random() < 0.5:
            events = [f for f in self.world.facets if f.form == "event"]
            tools = [self.world.ref(unit, f) for f in rng.sample(events, min(len(events), 2))]
            tools += rng.choice(([], ['"mcp:files/read"']))
            entries.append(f"tools [{', '.join(tools)}]")
        rng.shuffle(entries)
        return "prompt { " + "\n    ".join(entries) + " }"

    # Parts

    def _fields(self, count: int) -> list[Field]:
        fields = []
        for name in self.world.labels(count):
            type = self.world.random_type()
            default = self.expressions.make([], type, 1) if self.rng.random() < 0.25 else None
            fields.append(Field(name, type, default))
        return fields

    def _params(self, unit: Unit, fields: list[Field]) -> str:
        items = []
        for item in fields:
            default = "" if item.default is None else f" = {item.default}"
            items.append(f"{item.name}: {self._type(unit, item.type)}{default}")
        return ", ".join(items) + ("," if items and self.rng.random() < 0.1 else "")

    def _type(self, unit: Unit, type: Type) -> str:
        return self.world.type_text(unit, type)

    def _doc(self, fields: list[Field]) -> str:
        if self.rng.random() < 0.7:
            return ""
        lines = [
            "Does what its name says.",
            *(f"@param {item.name} a value" for item in fields[:1]),
        ]
        if self.rng.random() < 0.5:
            return f"\x02/** {lines[0]} */\x03\n"
        return "\x02/**\n" + "".join(f"   * {line}\n" for line in lines) + "   */\x03\n"
