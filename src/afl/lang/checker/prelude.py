"""The built-in namespaces, written in the language itself.

Policies are facets of `afl`, so their arguments are checked like any call's; what no type can say
(where one may stand, which values make sense) is in `policies`.
"""

from __future__ import annotations

from functools import lru_cache

from afl.lang.parser import parse
from afl.lang.source import Source
from afl.lang.tree import File

TEXT = """\
namespace afl {
  /** What running a facet does to the world. */
  enum EffectKind { pure, idempotent, keyed, irreversible }

  /** Where the steps of a run are served. */
  enum PlacementKind { spread, sticky, pinned }

  /** Try again after a failure, waiting longer each time. */
  facet Retry(
    max_attempts: Int = 3,
    delay: Duration = 1s,
    backoff: Double = 2.0,
    max_delay: Duration = 5m,
    jitter: Boolean = true,
    on: [String] = [],
  )

  /** Fail what has not finished in time. */
  facet Timeout(hours: Int = 0, minutes: Int = 0, seconds: Int = 0, ms: Int = 0)

  /** Put the work on a named queue. */
  facet Queue(name: String)

  /** Which of two ready tasks goes first: 0 is the last, 9 the first. */
  facet Priority(level: Int)

  /** How many may run at once, for all or for each key. */
  facet Concurrency(max: Int, key: String = "")

  /** How many may start in a stretch of time, for all or for each key. */
  facet RateLimit(max: Int, per: Duration, key: String = "")

  /** What the work may spend. */
  facet Budget(usd: Double? = null, tokens: Long? = null)

  /** Reuse an earlier result of the same inputs, or of the same key. */
  facet Cache(ttl: Duration? = null, key: String? = null)

  /** What running the facet does to the world; `check` tells whether it was done. */
  facet Effect(kind: EffectKind, check: Json = null)

  /** A person does the work. */
  facet Human(group: String, deadline: Duration? = null)

  /** Where the steps of a run are served. */
  facet Placement(kind: PlacementKind, label: String? = null)

  /** Start no further step after the first failure. */
  facet FailFast()
}

namespace afl.time {
  /** Wait for a stretch of time. No worker is held meanwhile. */
  event facet Sleep(duration: Duration)

  /** Wait until a time, written as in `2027-01-31T09:00:00+01:00`; without a zone it is UTC. */
  event facet Until(time: String)
}

namespace afl.event {
  /** Wait for an event from outside, with this name and key. Each event is taken once. */
  event facet Wait(
    name: String,
    key: String = "",
    timeout: Duration? = null,
  ) => (payload: Json)
}
"""


@lru_cache(maxsize=1)
def prelude() -> File:
    """The built-in namespace, parsed once."""
    return parse(Source("<afl>", TEXT))
