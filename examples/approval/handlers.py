"""The work of expenses.afl. There is no person here: a rule answers in the name of one."""

from afl import App, Context

app = App("expenses")


@app.handler("expenses.Approve")
def approve(expense: dict[str, object]) -> dict[str, str]:
    if expense["what"] == "yacht":
        return {"answer": "no", "reason": "too large"}
    return {"answer": "yes"}


@app.handler("expenses.Pay")
def pay(who: str, amount: float, ctx: Context) -> str:
    return f"{amount:.2f} to {who}"


@app.handler("expenses.FindPayment")
def find_payment(who: str, amount: float) -> dict[str, bool]:
    return {"done": False}


@app.handler("expenses.Tell")
def tell(who: str, text: str) -> None:
    """Would send a mail."""
