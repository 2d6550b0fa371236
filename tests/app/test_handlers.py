from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pytest

from afl import App, Context, Permanent, Retry, Skip
from afl.app.errors import BadHandler
from afl.kernel.model import Json
from afl.runtime.handler_table import HandlerTable
from afl.runtime.plan import Plan
from afl.runtime.programs import Plans
from afl.testing.engine import Engine

FLOW = """
namespace billing {
  enum Kind { debit, credit }
  schema Card { number: String, kind: Kind }
  event facet Charge(amount: Double, card: Card) => (id: String, fee: Double)
  event facet Describe(card: Card) => (text: String)
  event facet Pick(n: Int) => (card: Card)
  event facet Maybe(n: Int) => (note: String?)
  event facet Tell(text: String?) => ()
  event facet Slug(t: String) => (s: String) script { result["s"] = params["t"] }
  workflow Pay(amount: Double) => (id: String, fee: Double) andThen {
    card = Card(number = "4", kind = credit)
    done = Charge(amount = $.amount, card = card)
    yield Pay(id = done.id, fee = done.fee)
  }
  workflow Text() => (text: String) andThen {
    picked = Pick(n = 3)
    described = Describe(card = picked.card)
    yield Text(text = described.text)
  }
  workflow Noted() => (note: String?) andThen {
    m = Maybe(n = 1)
    yield Noted(note = m.note)
  }
}
namespace other { event facet Charge() => () }
"""


OLDER = """
namespace a {
  event facet F(old: Int) => ()
  workflow W() => () andThen { f = F(old = 1) }
}
"""


@dataclass
class Card:
    number: str
    kind: str


@dataclass
class Receipt:
    id: str
    fee: Decimal


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.compile(FLOW)
    return engine


@pytest.fixture
def app(engine: Engine) -> App:
    app = App("billing")
    engine.use(app)
    return app


def problems(engine: Engine, app: App) -> list[str]:
    plans = engine.evaluator.plans
    with pytest.raises(BadHandler) as refused:
        app.table(plans.get(str(engine.store.deployed())), plans)
    return str(refused.value).splitlines()


class TestCalls:
    def test_arguments_come_by_name_as_they_are_annotated(self, engine: Engine, app: App) -> None:
        seen: list[object] = []

        @app.handler("billing.Charge")
        def charge(amount: Decimal, card: Card, ctx: Context) -> Receipt:
            seen.extend([amount, card, ctx.step, ctx.attempt, ctx.facet])
            return Receipt(ctx.idempotency_key, amount * Decimal("0.02"))

        run = engine.run("billing.Pay", {"amount": 12.5})
        assert seen == [Decimal("12.5"), Card("4", "credit"), "0/done", 1, "billing.Charge"]
        assert run.outputs == {"id": f"{run.id}:0/done", "fee": 0.25}
        assert charge(Decimal(1), Card("1", "debit"), _NoContext()).fee == Decimal("0.02")

    def test_one_return_may_be_answered_by_itself(self, engine: Engine, app: App) -> None:
        @app.handler("Describe")
        async def describe(card: Card) -> str:
            return f"{card.kind} {card.number}"

        @app.handler("Pick")
        def pick(n: int) -> Card:
            return Card(str(n), "debit")

        assert engine.run("billing.Text").outputs == {"text": "debit 3"}

    def test_a_wrong_field_fails_the_step_for_good_and_is_named(
        self, engine: Engine, app: App
    ) -> None:
        @app.handler("billing.Charge")
        def charge(amount: float, card: dict[str, str]) -> dict[str, Json]:
            return {"id": "x", "fees": 1.0}

        run = engine.run("billing.Pay", {"amount": 1.0})
        assert run.error is not None
        assert run.error["type"] == "WrongValue"
        assert "`billing.Charge`: there is no `fees` here; did you mean `fee`" in str(
            run.error["message"]
        )

    def test_an_argument_that_does_not_fit_fails_the_step_and_is_named(
        self, engine: Engine, app: App
    ) -> None:
        @dataclass
        class Short:
            number: str

        def charge(amount, card):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            raise AssertionError("not reached")

        charge.__annotations__ = {"card": Short}
        app.handler("billing.Charge")(charge)
        run = engine.run("billing.Pay", {"amount": 1.0})
        assert run.error is not None
        assert run.error["type"] == "WrongValue"
        assert "`card`: `Short` has no field `kind`" in str(run.error["message"])

    def test_a_handler_may_skip_where_nothing_is_needed(self, engine: Engine, app: App) -> None:
        @app.handler("Maybe")
        def maybe(n: int) -> str:
            raise Skip("not today")

        @app.handler("billing.Charge")
        def charge(amount: float, card: Card) -> Receipt:
            raise Skip("free")

        assert engine.run("billing.Noted").outputs == {"note": None}
        run = engine.run("billing.Pay", {"amount": 1.0})
        assert run.error is not None
        assert "skipped `billing.Charge` (free), which returns `id`" in str(run.error["message"])

    def test_what_a_handler_raises_is_the_error_of_the_step(self, engine: Engine, app: App) -> None:
        raised: list[Exception] = [Permanent("card is blocked"), Retry("no line")]

        @app.handler("billing.Charge")
        def charge(amount: float, card: Card) -> Receipt:
            raise raised.pop(0)

        for kind, message in (("Permanent", "card is blocked"), ("Retry", "no line")):
            run = engine.run("billing.Pay", {"amount": 1.0})
            assert run.error is not None
            assert (run.error["type"], run.error["message"]) == (kind, message)


class TestSignatures:
    def test_an_unknown_facet_is_refused_with_the_near_one(self, engine: Engine, app: App) -> None:
        @app.handler("billing.Chrage")
        def charge() -> None: ...

        (problem,) = problems(engine, app)
        assert problem.endswith(
            "serves `billing.Chrage`, but the deployed program has no such event facet. "
            "Did you mean `billing.Charge`?"
        )

    def test_missing_and_extra_parameters_are_all_named(self, engine: Engine, app: App) -> None:
        @app.handler("billing.Charge")
        def charge(amont: float, card: Card, db: str = "injected") -> None: ...

        found = problems(engine, app)
        assert [each.rpartition("`billing.Charge`: ")[2] for each in found] == [
            "it wants `amont`, which the facet does not have; did you mean `amount`?",
            "it does not take `amount`.",
        ]

    def test_types_that_cannot_fit_are_refused(self, engine: Engine, app: App) -> None:
        @app.handler("Pick")
        def pick(n: str) -> None: ...

        @app.handler("Tell")
        def tell(text: str) -> None: ...

        found = [each.partition(": ")[2] for each in problems(engine, app)]
        assert found == [
            "`n` is `Int` in the program and `str` in the function.",
            "`text` is `String?`, so it may be null; annotate it as optional.",
        ]

    @pytest.mark.parametrize(
        ("facet", "problem"),
        [
            ("billing.Pay", "`billing.Pay` is a workflow: only event facets have handlers."),
            ("Charge", "several facets have that name: `billing.Charge`, `other.Charge`."),
            ("Slug", "`billing.Slug` is served by its script."),
        ],
    )
    def test_what_has_no_handler_is_refused(
        self, engine: Engine, app: App, facet: str, problem: str
    ) -> None:
        @app.handler(facet)
        def serve(**everything: Json) -> None: ...

        (found,) = problems(engine, app)
        assert problem in found

    def test_a_function_that_takes_everything_fits(self, engine: Engine, app: App) -> None:
        @app.handler("billing.Charge")
        def charge(**given: Json) -> dict[str, Json]:
            assert given == {"amount": 1.0, "card": {"number": "4", "kind": "credit"}}
            return {"id": "x", "fee": 0.0}

        assert engine.run("billing.Pay", {"amount": 1.0}).success

    def test_what_cannot_be_a_handler_is_refused_at_once(self, app: App) -> None:
        with pytest.raises(BadHandler, match="by position"):

            @app.handler("A")
            def by_position(n: int, /) -> None: ...

        with pytest.raises(BadHandler, match="async def"):

            @app.handler("B", process=True)
            async def waits() -> None: ...

        @app.handler("C")
        def first() -> None: ...

        with pytest.raises(BadHandler, match="has a handler already"):
            app.handler("C")(first)


def test_a_run_of_an_older_program_is_told_apart() -> None:
    engine, app = Engine(), App("x")
    engine.compile(OLDER)
    older = engine.operations.submit("a.W").id
    engine.compile(OLDER.replace("old", "new"))

    @app.handler("a.F")
    def serve(new: int) -> None: ...

    table = app.table(
        engine.evaluator.plans.get(engine.operations.program()), engine.evaluator.plans
    )
    engine.use(_Fixed(table))
    assert engine.run("a.W").success
    run = engine.get(older)
    assert run.error is not None
    assert run.error["type"] == "Permanent"
    assert "it does not take `old`." in str(run.error["message"])


class _Fixed:
    """A table that was checked against one program, as a worker has it."""

    def __init__(self, table: HandlerTable) -> None:
        self._table = table

    def table(self, plan: Plan, plans: Plans) -> HandlerTable:
        return self._table


def test_a_program_without_the_facets_names_every_handler() -> None:
    engine = Engine()
    engine.compile("namespace empty { event facet Nothing() => () }")
    app = App("x")
    for name in ("a.B", "a.C"):
        app.handler(name)(lambda: None)
    assert len(problems(engine, app)) == 2
    assert isinstance(engine.evaluator.plans.get(str(engine.store.deployed())), Plan)


class _NoContext(Context):
    """For calling a handler as the plain function that it is."""

    def __init__(self) -> None:
        pass

    @property
    def idempotency_key(self) -> str:
        return "k"

    @property
    def step(self) -> str:
        return "s"

    @property
    def attempt(self) -> int:
        return 1

    @property
    def facet(self) -> str:
        return "f"
