"""The handlers of the runs on the page of a run: `afl worker --handlers tests.ui.run_handlers`."""

from __future__ import annotations

import time

from afl import App, Context

#: Above this the bank refuses the cards of one customer.
LIMIT_CENTS = 1000
NAMES = ("acme", "globex", "initech", "umbrella", "hooli", "stark")

app = App("billing")


class CardDeclinedError(Exception):
    """The bank says no."""


@app.handler("billing.Load")
def load(month: str, customers: int, ctx: Context) -> list[str]:
    ctx.log.info("the customers of %s", month)
    return [f"{NAMES[n % len(NAMES)]}-{n}" for n in range(customers)]


@app.handler("billing.Charge")
def charge(customer: str, cents: int, ctx: Context) -> str:
    ctx.log.info("\x1b[32mcharging\x1b[0m %s: %d", customer, cents)
    if customer.startswith("globex") and cents > LIMIT_CENTS:
        ctx.log.error("the bank said no to %s", customer)
        raise CardDeclinedError(f"the card of {customer} was declined: limit exceeded")
    return f"r-{customer}"


@app.handler("billing.Notify")
def notify(receipt: str) -> str:
    return f"sent {receipt}"


@app.handler("billing.Search")
def search(query: str) -> list[str]:
    return [f"nothing about {query}"]


@app.handler("billing.Export")
def export(month: str, ctx: Context) -> int:
    """Writes line after line until its run is canceled."""
    rows = 0
    while not ctx.cancelled:
        rows += 1
        ctx.log.log(30 if rows % 40 == 0 else 20, "row %d of %s", rows, month)
        time.sleep(0.05)
    return rows
