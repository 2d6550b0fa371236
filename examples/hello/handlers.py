"""The work of hello.afl."""

from afl import App

app = App("hello")


@app.handler("hello.Greet")
def greet(name: str) -> str:
    return f"Hello, {name}!"
