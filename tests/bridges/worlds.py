"""A program with prompts and tools, on a memory store, for tests of the bridges."""

from __future__ import annotations

from dataclasses import dataclass

from afl.app.compiling import compile_program
from afl.kernel.model import Json, Task, TaskSpec
from afl.runtime.memory_store import MemoryStore
from afl.runtime.programs import Plans
from afl.testing.clock import SequentialIds, VirtualClock
from afl.turns.memory_store import MemoryTurnStore

FLOW = """\
namespace shop {
  enum Mood { good, bad }

  /**
   * A comment on a line.
   * @param line which line
   */
  schema Comment { line: Int, text: String, replies: [Comment] = [], mood: Mood? }

  /**
   * Reviews a change.
   *
   * Be strict.
   * @param diff the change
   * @return verdict what comes of it
   */
  event facet Review(diff: String, deep: Boolean = false) => (verdict: String, comments: [Comment])
    with Budget(usd = 0.5, tokens = 9000)
    prompt {
      system "You review {diff}."
      template "Review {diff}, deep: {deep}. Braces: {{}}"
      model "anthropic:claude-sonnet-5"
      tools [Search, Pay, Ask, Summarize, other.Search, "mcp:files/read"]
    }

  /**
   * Searches the archive.
   * @param query words to look for
   * @return hits what was found
   */
  event facet Search(query: String, limit: Int = 10, within: Duration? ) => (hits: [String])
    with Retry(max_attempts = 4, delay = 2s, jitter = false)
    with Timeout(seconds = 30)
    with Queue(name = "slow")
    with RateLimit(max = 1, per = 1m)

  event facet Pay(cents: Long) => (receipt: String) with Effect(kind = irreversible)

  event facet Ask(question: String) => (answer: String)
    with Human(group = "bosses", deadline = 2d) with Effect(kind = irreversible)

  event facet Summarize(text: String) => (summary: String)
    prompt { template "Summarize: {text}" }

  event facet Sleeper(q: String) => (a: String)
    prompt { template "{q}" model "m:x" tools [afl.time.Sleep] }

  event facet Guarded(n: Int) => (r: Int) with Concurrency(max = 1)

  workflow Do(diff: String) => (verdict: String) andThen {
    r = Review(diff = $.diff) with Budget(usd = 0.1)
    yield Do(verdict = r.verdict)
  }
}
namespace other {
  event facet Search(q: String) => (found: Boolean)
}
"""


@dataclass
class World:
    store: MemoryStore
    turns: MemoryTurnStore
    plans: Plans
    program: str

    def task(self, **given: Json) -> Task:
        """A task with this input."""
        (task,) = self.store.kernel.enqueue([TaskSpec("turn", "x", priority=3, input=given)])
        return task

    def facet_task(self, facet: str, **params: Json) -> Task:
        """The task of a step that calls a facet."""
        return self.task(
            facet=facet, program=self.program, run="r-1", step="0/asked", params=params
        )


def world(flow: str = FLOW) -> World:
    store = MemoryStore(VirtualClock(), SequentialIds())
    plans = Plans(store)
    program = plans.add(compile_program(flow))
    store.deploy("default", program)
    return World(store, MemoryTurnStore(store.kernel), plans, program)
