"""A large program for measurements: 20 files of 500 lines, always the same.

Each file is a namespace of several orders of business with schemas, enums, event facets, prompts,
facets and workflows; each namespace uses the one before it.
"""

from __future__ import annotations

FILES = 20
LINES_PER_FILE = 500
PARTS_PER_FILE = 8

_AREAS = ("billing", "shipping", "catalog", "support", "review")

_HEAD = """\
/** Work of area {name}. The text is made for measurements and has the shape of real programs. */
namespace {name} {{
{uses}
"""

_PART = """\
  // Part {n}: what comes in, what is decided, and what goes out.
  enum Status{n} {{ open, waiting, done, failed }}

  schema Item{n} {{
    id: String,
    amount: Double,
    count: Int = 1,
    note: String? = null,
    tags: [String] = [],
    status: Status{n} = open,
  }}

  /**
   * Reads the items of an account.
   * @param account the account's id
   * @return items everything that was found
   */
  event facet Load{n}(account: String, since: Duration = 1d) => (items: [Item{n}], total: Double)
    with Retry(max_attempts = 5, delay = 2s)
    with Timeout(minutes = 2)
    with Effect(kind = idempotent)

  /** Asks a model for an opinion on one item. */
  event facet Judge{n}(item: Item{n}, hint: String = "") => (verdict: String, score: Double)
    with Budget(usd = 0.25)
    prompt {{
      system "You are careful and brief."
      template "Judge this item: {{item}} {{hint}}"
      tools [Load{n}]
    }}

  facet Scale{n}(value: Double, factor: Double = 2.0) => (scaled: Double) andThen {{
    yield Scale{n}(scaled = ($.value + 1.0) * $.factor - 0.5)
  }}

  workflow Run{n}(account: String, limit: Int? = null) => (
    verdicts: [String],
    total: Double,
    note: String,
  )
    with FailFast()
    andThen {{
      loaded = Load{n}(account = $.account)
      scaled = Scale{n}(value = loaded.total, factor = 1.5 / 2)
{other}
      yield Run{n}(total = scaled.scaled + other.scaled)
    }} andThen foreach item in loaded.items limit 10 {{
      judged = Judge{n}(item = $.item, hint = $.item.note ?? "none") catch {{
        yield Judge{n}(verdict = error.message, score = 0.0)
      }}
      yield Run{n}(verdicts = [judged.verdict ++ ": " ++ judged.score])
    }} andThen when {{
      case $.limit != null && $.limit < 10 && loaded.total > 100.0 => {{
        yield Run{n}(note = "few of many")
      }}
      case _ => {{ yield Run{n}(note = "all of " ++ loaded.total) }}
    }}

"""


def large_program() -> list[tuple[str, str]]:
    """The files of the program, with their names."""
    return [
        (f"{_namespace(number).replace('.', '/')}.afl", _file(number)) for number in range(FILES)
    ]


def _namespace(number: int) -> str:
    return f"{_AREAS[number % len(_AREAS)]}.n{number}"


def _file(number: int) -> str:
    before = _namespace(number - 1) if number else ""
    uses = f"  use {before}\n" if before else ""
    parts = [_part(number, part, before) for part in range(PARTS_PER_FILE)]
    text = _HEAD.format(name=_namespace(number), uses=uses) + "".join(parts)
    missing = LINES_PER_FILE - text.count("\n") - 1
    return text + "  // Nothing to see on this line.\n" * missing + "}\n"


def _part(number: int, part: int, before: str) -> str:
    """One order of business. It calls one of the file before, by its short or by its full name."""
    here = f"{number}x{part}"
    if not before:
        target = f"Scale{here}"
    else:
        target = f"Scale{number - 1}x{part}"
        target = f"{before}.{target}" if part % 2 else target
    return _PART.format(n=here, other=f"      other = {target}(value = 3.25) after loaded")
