"""The work of payments.afl, with the failures that the flow lives with."""

from afl import App, Context

app = App("payments")


class CardDeclined(Exception):
    """The bank says no. The flow tells it from other failures by the name of this class."""


@app.handler("payments.Charge")
def charge(order: str, cents: int, ctx: Context) -> str:
    if order == "declined":
        raise CardDeclined("the bank says no")
    if order == "broken":
        raise ValueError("the order makes no sense")
    if ctx.attempt == 1:
        raise ConnectionError("the bank does not answer")
    return f"{order} paid {cents}, attempt {ctx.attempt}"


@app.handler("payments.Discount")
def discount(coupon: str) -> int:
    if coupon == "none":
        raise LookupError("there is no such coupon")
    return 100


@app.handler("payments.SendReceipt")
def send_receipt(email: str, receipt: str) -> str:
    raise OSError(f"{email} bounced")


@app.handler("payments.OpenTicket")
def open_ticket(order: str, text: str) -> str:
    return f"ticket for {order}: {text}"
