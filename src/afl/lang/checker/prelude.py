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

  /** Leave alone for a while what fails again and again. */
  facet Breaker(
    service: String = "",
    failures: Int = 5,
    window: Duration = 5m,
    cooldown: Duration = 1m,
    probes: Int = 3,
    slow: Duration? = null,
  )

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

namespace afl.mail {
  /**
   * Put a message into the mailbox of an agent. It is sent once, however often that is tried.
   * @param to whose mailbox: `type` or `type:instance`
   * @param payload what it says: an object, or a text
   * @param message_type `event`, `request` or `response`
   * @param priority `low`, `normal` or `high`
   * @param correlation_id the id of the message that a response answers
   * @param reply_to where the response to a request is wanted
   * @param delay how long nobody receives it
   * @param ttl after how long it is a dead letter if nobody has received it
   * @return message_id the id of the message
   */
  event facet Send(
    to: String,
    payload: Json,
    message_type: String = "event",
    priority: String = "normal",
    correlation_id: String? = null,
    reply_to: String? = null,
    delay: Duration? = null,
    ttl: Duration? = null,
  ) => (message_id: String)
    with Retry(max_attempts = 10, max_delay = 1m, on = ["MailUnavailable"])

  /**
   * Ask an agent by a message, and wait for its answer. No worker is held meanwhile.
   * @param to whose mailbox: `type` or `type:instance`
   * @param payload what is asked: an object, or a text
   * @param timeout how long to wait
   * @param priority `low`, `normal` or `high`
   * @return payload what the answer says
   * @return sender who has answered
   * @return message_id the id of the question
   */
  event facet Ask(
    to: String,
    payload: Json,
    timeout: Duration? = null,
    priority: String = "normal",
  ) => (payload: Json, sender: String, message_id: String)
    with Retry(max_attempts = 10, max_delay = 1m, on = ["MailUnavailable"])
}

namespace afl.exec {
  /** What a command may use of the machine; what is null has no limit of its own. */
  schema Limits {
    cpu: Duration? = null,
    memory: Long? = null,
    file_size: Long? = null,
    open_files: Int? = null,
    processes: Int? = null,
  }

  /** A file that a command has made, kept by the hash of its content. */
  schema Artifact { path: String, sha256: String, size: Long }

  /** Run a program with its arguments. */
  event facet Command(
    argv: [String],
    env: {String: String} = #{},
    cwd: String? = null,
    stdin: String? = null,
    timeout: Duration? = null,
    ok_codes: [Int] = [0],
    artifacts: [String] = [],
    limits: Limits? = null,
    sandbox: Boolean = false,
  ) => (
    exit_code: Int,
    signal: String?,
    stdout: String,
    stderr: String,
    stdout_cut: Long,
    stderr_cut: Long,
    duration: Duration,
    cpu: Duration,
    max_rss: Long,
    artifacts: [Artifact],
  )

  /** Run a script of the shell `sh`. */
  event facet Shell(
    script: String,
    env: {String: String} = #{},
    cwd: String? = null,
    stdin: String? = null,
    timeout: Duration? = null,
    ok_codes: [Int] = [0],
    artifacts: [String] = [],
    limits: Limits? = null,
    sandbox: Boolean = false,
  ) => (
    exit_code: Int,
    signal: String?,
    stdout: String,
    stderr: String,
    stdout_cut: Long,
    stderr_cut: Long,
    duration: Duration,
    cpu: Duration,
    max_rss: Long,
    artifacts: [Artifact],
  )

  /** Run a Python file by `uv run`; without one, `args` is the command to run there. */
  event facet Uv(
    script: String? = null,
    args: [String] = [],
    packages: [String] = [],
    project: String? = null,
    env: {String: String} = #{},
    cwd: String? = null,
    stdin: String? = null,
    timeout: Duration? = null,
    ok_codes: [Int] = [0],
    artifacts: [String] = [],
    limits: Limits? = null,
  ) => (
    exit_code: Int,
    signal: String?,
    stdout: String,
    stderr: String,
    stdout_cut: Long,
    stderr_cut: Long,
    duration: Duration,
    cpu: Duration,
    max_rss: Long,
    artifacts: [Artifact],
  )

  /** Run Python code in the sandbox. It finds `inputs`, and sets `result`. */
  event facet Python(
    code: String,
    inputs: Json = null,
    timeout: Duration = 1m,
    limits: Limits? = null,
  ) => (
    result: Json,
    stdout: String,
    stderr: String,
    stdout_cut: Long,
    stderr_cut: Long,
    duration: Duration,
    cpu: Duration,
    max_rss: Long,
  )
}
"""


@lru_cache(maxsize=1)
def prelude() -> File:
    """The built-in namespace, parsed once."""
    return parse(Source("<afl>", TEXT))
