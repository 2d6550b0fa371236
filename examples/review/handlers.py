"""The work of review.afl, on a code host that is a dictionary.

A model does `Review`, and a person does `Approve`. Without a database there is no inbox to ask a
person through: in `afl run`, and only there, the handler below answers in the person's place.
"""

from afl import App

app = App("review")

FILES = {
    "hello.py": 'def greet(name):\n    return f"Hello, {name}!"   \n',
    "test_hello.py": 'from hello import greet\n\nassert "Ada" in greet("Ada")\n',
}
DIFF = '-    return "Hello!"\n+    return f"Hello, {name}!"   \n'


@app.handler("github.GetPull")
def get_pull(repo: str, number: int) -> dict[str, object]:
    return {
        "repo": repo,
        "number": number,
        "head": "c0ffee",
        "title": "Greet people by their names",
        "diff": DIFF,
    }


@app.handler("github.ReadFile")
def read_file(repo: str, ref: str, path: str) -> str:
    if path not in FILES:
        raise FileNotFoundError(f"{repo} has no {path} at {ref}; it has {', '.join(FILES)}")
    return FILES[path]


@app.handler("github.Merge")
def merge(repo: str, number: int, head: str) -> str:
    return f"merged {head}"


@app.handler("review.RunTests")
def run_tests(repo: str, ref: str) -> dict[str, object]:
    return {"passed": True, "log": "1 passed"}


@app.handler("review.Approve")
def approve(title: str, summary: str, comments: list[dict[str, object]]) -> bool:
    return True
