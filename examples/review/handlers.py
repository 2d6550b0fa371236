"""The work of review.afl. Neither a model nor a person is here: functions stand in for both."""

from afl import App

app = App("review")


@app.handler("github.GetPull")
def get_pull(repo: str, number: int) -> dict[str, object]:
    return {
        "repo": repo,
        "number": number,
        "head": "c0ffee",
        "title": "Say hello",
        "diff": "+hello",
    }


@app.handler("github.ReadFile")
def read_file(repo: str, ref: str, path: str) -> str:
    return "hello"


@app.handler("github.Merge")
def merge(repo: str, number: int, head: str) -> str:
    return f"merged {head}"


@app.handler("review.RunTests")
def run_tests(repo: str, ref: str) -> dict[str, object]:
    return {"passed": True, "log": "1 passed"}


@app.handler("review.Review")
def review(repo: str, head: str, diff: str) -> dict[str, object]:
    comment = {"path": "hello.txt", "text": "Why not in capitals?"}
    return {"verdict": "approve", "summary": "A greeting.", "comments": [comment]}


@app.handler("review.Approve")
def approve(title: str, summary: str, comments: list[dict[str, object]]) -> bool:
    return True
