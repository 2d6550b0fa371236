"""The handlers of examples/review, each of which first has an effect outside, under its own key."""

from __future__ import annotations

import threading
from runpy import run_path

from afl import App, Context
from tests.chaos.sink import REPOSITORY, SinkClient

EXAMPLE = REPOSITORY / "examples" / "review"
#: The effects, as the sink knows them.
GET, READ, TEST, MERGE, CHECK = range(5)
NAMES = ("GetPull", "ReadFile", "RunTests", "Merge", "style/check")

app = App("review")
_example = run_path(str(EXAMPLE / "handlers.py"))
_sink_port = 0
_of_thread = threading.local()


def tell_sink_at(port: int) -> None:
    """Where effects are recorded from now on."""
    global _sink_port
    _sink_port = port


def _effect(which: int, ctx: Context) -> None:
    sink: SinkClient | None = getattr(_of_thread, "sink", None)
    if sink is None:
        sink = _of_thread.sink = SinkClient(_sink_port)
    sink.effect(ctx.idempotency_key, which, ctx.facet, 0)


@app.handler("github.GetPull")
def get_pull(repo: str, number: int, ctx: Context) -> dict[str, object]:
    _effect(GET, ctx)
    pull: dict[str, object] = _example["get_pull"](repo, number)
    return pull


@app.handler("github.ReadFile")
def read_file(repo: str, ref: str, path: str, ctx: Context) -> str:
    _effect(READ, ctx)
    return str(_example["read_file"](repo, ref, path))


@app.handler("review.RunTests")
def run_tests(repo: str, ref: str, ctx: Context) -> dict[str, object]:
    _effect(TEST, ctx)
    report: dict[str, object] = _example["run_tests"](repo, ref)
    return report


@app.handler("github.Merge")
def merge(repo: str, number: int, head: str, ctx: Context) -> str:
    _effect(MERGE, ctx)
    return str(_example["merge"](repo, number, head))
