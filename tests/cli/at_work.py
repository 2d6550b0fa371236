"""A worker with a scripted model, for tests of commands on agents and turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from afl.app.services import connect
from afl.app.serving import AppWorker, TurnWish, serve_turns
from afl.base.settings import Settings
from afl.runtime.worker import WorkerConfig
from tests.cli.deployed import demo_app

FLOW = """\
namespace demo {
  event facet Greet(name: String) => (text: String)
  event facet Fetch(name: String) => (n: Int)
  event facet Store(n: Int, text: String) => (done: Boolean)

  /** Says how long a word is. */
  event facet Explain(word: String) => (text: String)
    prompt { system "You explain." template "Explain {word}." tools [Fetch] }

  workflow Do(word: String) => (text: String) andThen {
    said = Explain(word = $.word)
    yield Do(text = said.text)
  }

  workflow Twice(word: String) => (text: String) andThen {
    one = Explain(word = $.word)
    two = Explain(word = one.text)
    yield Twice(text = two.text)
  }

  workflow Quiet(name: String) => (text: String) andThen {
    said = Greet(name = $.name)
    yield Quiet(text = said.text)
  }
}
"""

#: What it says depends on what it is asked. A request costs a cent.
SCRIPT = """\
from decimal import Decimal

from afl.turns.errors import ModelRefused
from afl.turns.model import AgentSaid, UserSays, Usage
from afl.turns.models.scripted import Answer, Call
from afl.turns.prices import Rate

rate = Rate(request=Decimal("0.01"))


def replies(request):
    asked = [each.text for each in request.messages if isinstance(each, UserSays)]
    said = sum(isinstance(each, AgentSaid) for each in request.messages)
    if "fail" in asked[-1]:
        return ModelRefused("this model is not for you")
    if "slow" in asked[-1]:
        return Answer(text="at last", delay_seconds=60)
    if any(tool.name == "submit_result" for tool in request.tools) and "count" in asked[-1]:
        return Answer(calls=(Call("submit_result", {"n": len(asked)}),))
    if any(tool.name == "Fetch" for tool in request.tools) and not said:
        call = Call("Fetch", {"name": "cat"})
        return Answer("Let me see.", calls=(call,), usage=Usage(100, 20, 80, 0))
    return Answer(text=f"answer to: {asked[-1]}", usage=Usage(200, 10))
"""


@contextmanager
def at_work(url: str, folder: Path) -> Iterator[AppWorker]:
    """A worker on a database with `FLOW`: handlers for its facets, the script for its prompts."""
    script = folder / "model.py"
    script.write_text(SCRIPT, encoding="utf-8")
    with connect(url) as services:
        plans = services.evaluator.plans
        plan = plans.get(services.operations.program())
        config = WorkerConfig(service="demo", lease_seconds=10, renew_seconds=0.2)
        table = demo_app().table(plan, plans)
        wish = TurnWish(slots=4, models=(f"scripted:{script}",))
        turns = serve_turns(services, wish, Settings(), config, table)
        with AppWorker(services, table, config, turns) as serving:
            yield serving
