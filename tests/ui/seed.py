"""Runs in every state that a page can show, made by a real worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from afl import App, Client, Run

FLOW = """
/** A shop whose runs are in every state. */
namespace shop {
  schema Line { item: String, cents: Int }

  /** What an item costs. */
  event facet Price(item: String) => (cents: Int) with Effect(kind = idempotent)
  event facet Charge(cents: Int) => (receipt: String)
  event facet Pack(item: String) => (label: String)
  /** Goes on until it is let go. */
  event facet Hold(name: String) => (text: String)
  /** Nobody serves it. */
  event facet Fax(text: String) => (pages: Int)
  event facet Approve(what: String, cents: Int) => (ok: Boolean, note: String?)
    with Human(group = "finance", deadline = 3d)

  /**
   * Sells one item.
   *
   * @param item what is bought
   */
  workflow Order(item: String, gift: Boolean = false, note: String? = null) => (receipt: String)
  andThen {
    priced = Price(item = $.item)
    charged = Charge(cents = priced.cents)
    packed = Pack(item = $.item)
    yield Order(receipt = charged.receipt)
  }

  /** Packs many items, four at a time. */
  workflow PackAll(items: [String]) => (labels: [String]) andThen foreach item in $.items limit 4 {
    packed = Pack(item = $.item)
    yield PackAll(labels = [packed.label])
  }

  workflow Refund(cents: Int) => (ok: Boolean) andThen {
    asked = Approve(what = "a refund", cents = $.cents)
    yield Refund(ok = asked.ok)
  }

  workflow Watch(name: String) => (text: String) andThen {
    held = Hold(name = $.name)
    yield Watch(text = held.text)
  }

  workflow Report(text: String) => (pages: Int) andThen {
    sent = Fax(text = $.text)
    yield Report(pages = sent.pages)
  }

  workflow Delivery(id: String) => (payload: Json) andThen {
    arrived = afl.event.Wait(name = "arrived", key = $.id)
    yield Delivery(payload = arrived.payload)
  }

  /** Calls another run. */
  workflow Season(item: String) => (receipt: String) andThen {
    sold = Order(item = $.item)
    yield Season(receipt = sold.receipt)
  }
}
"""
SETTLED = "60s"
COMPLETED = 40
FAILED = 3
HELD = 6
ITEMS = 60


@dataclass
class Seeded:
    """What there is, and the client that made it."""

    client: Client
    held: threading.Event
    completed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    #: goes on until the worker ends
    running: list[str] = field(default_factory=list)
    #: waits for a person, an event and a worker that is not there
    human: str = ""
    waiting: str = ""
    unserved: str = ""
    foreach: str = ""
    canceled: str = ""
    paused: str = ""


class CardDeclined(Exception):
    """The only way that something fails here."""


@contextmanager
def seeded(database: str) -> Iterator[Seeded]:
    """The runs, and the worker that serves them until the end."""
    app = App("shop", database)
    released = threading.Event()
    _handlers(app, released)
    try:
        with app.client() as client:
            client.deploy(FLOW)
            with app.worker(slots=HELD + 4):
                stage = Seeded(client, released)
                _submit(stage)
                yield stage
                released.set()
    finally:
        released.set()
        app.close()


def _handlers(app: App, released: threading.Event) -> None:
    @app.handler("shop.Price")
    def price(item: str) -> int:
        return 0 if item == "nothing" else len(item) * 100

    @app.handler("shop.Charge")
    def charge(cents: int) -> str:
        if cents == 0:
            raise CardDeclined("the card was declined: there is nothing to pay")
        return f"receipt over {cents}"

    @app.handler("shop.Pack")
    def pack(item: str) -> str:
        return f"parcel with {item}"

    @app.handler("shop.Hold")
    def hold(name: str) -> str:
        released.wait()
        return name


def _submit(stage: Seeded) -> None:
    client = stage.client
    orders = [
        client.submit(
            "shop.Order",
            {"item": f"book {number}"},
            key=f"order-{number}",
            labels={"env": "prod" if number % 2 else "test", "tenant": "acme"},
        )
        for number in range(COMPLETED)
    ]
    broken = [
        client.submit("shop.Order", {"item": "nothing"}, labels={"env": "prod"})
        for _ in range(FAILED)
    ]
    many = client.submit("shop.PackAll", {"items": [f"item {number}" for number in range(ITEMS)]})
    held = [client.submit("shop.Watch", {"name": f"watch {number}"}) for number in range(HELD)]
    stage.human = client.submit("shop.Refund", {"cents": 4200}, labels={"env": "prod"}).id
    stage.waiting = client.submit("shop.Delivery", {"id": "7"}).id
    stage.unserved = client.submit("shop.Report", {"text": "figures"}).id
    canceled = client.submit("shop.Delivery", {"id": "8"})
    canceled.cancel(reason="not wanted any more")
    paused = client.submit("shop.Delivery", {"id": "9"})
    paused.pause()
    for run in [*orders, many]:
        run.result(SETTLED)
    stage.completed = [run.id for run in [*orders, many]]
    stage.failed = [_ended(run) for run in broken]
    stage.running = [run.id for run in held]
    stage.foreach, stage.canceled, stage.paused = many.id, canceled.id, paused.id


def _ended(run: Run) -> str:
    run.wait(SETTLED)
    return run.id
