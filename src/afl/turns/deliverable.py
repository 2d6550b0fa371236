"""What a turn delivers: how it is handed in, when it fits, what is left when the turn ends early.

| way out                          | outcome  | ending  | deliverable                       |
|----------------------------------|----------|---------|-----------------------------------|
| `submit_result` fits, or text    | success  | done    | the fields; text is under `text`  |
| a tool that terminates answers   | success  | done    | its answer, if it fits            |
| the same, and it does not fit    | partial  | done    | its answer, marked as partial     |
| requests or repairs are used up  | failed 1 | limit   | what is known                     |
| the turn's allowance is used up  | failed 1 | budget  | what is known                     |
| the model refuses, or stays busy | failed   | failed  | what is known                     |
| stop                             | canceled | stopped | what is known                     |
| deadline                         | timeout  | timeout | what is known                     |
| too many crashes                 | failed   | crashed | what is known                     |

1: partial, if the turn was asked for text and there is some.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from afl.kernel.model import Json, Outcome, Task
from afl.turns.arguments import parse
from afl.turns.cards import Entry, find, read
from afl.turns.contents import sorted_text
from afl.turns.journal import Deferred, Thought
from afl.turns.model import Brief, Deliverable, Ending, Tool, ToolKind
from afl.turns.schemas import faults, fits

SUBMIT = "submit_result"
#: What the schemas of fields need of the schema around them.
_SHARED = frozenset(("$schema", "$defs", "definitions"))
#: Where text is among the fields of a deliverable.
TEXT = "text"
_SUBMIT_DESCRIPTION = (
    "Hands in the result and ends the work. Call it once, alone, when everything is done. "
    "The arguments are the result."
)


def submit_tool(returns: dict[str, Json]) -> Tool:
    """The tool by which the model hands in its result."""
    return Tool(SUBMIT, _SUBMIT_DESCRIPTION, returns, ToolKind.BUILTIN, SUBMIT)


def offered_tools(brief: Brief) -> tuple[Tool, ...]:
    """All that the model may call. The one to hand in is always ours, whatever others are named."""
    if brief.returns is None:
        return brief.tools
    others = (tool for tool in brief.tools if tool.name != SUBMIT)
    return (*others, submit_tool(brief.returns))


def text_as_fields(brief: Brief, text: str) -> dict[str, Json] | None:
    """The deliverable that a text answer is; None if a text cannot be it."""
    if brief.returns is None:
        return {TEXT: text}
    name = _only_text_field(brief.returns)
    if name is None or not fits(brief.returns, {name: text}):
        return None
    return {name: text}


def answer_as_deliverable(brief: Brief, answer: Json) -> Deliverable:
    """The deliverable that the answer of a tool is, which ends the turn."""
    if brief.returns is None:
        return Deliverable(Ending.DONE, partial=False, fields={TEXT: plain_text(answer)})
    wrong = faults(brief.returns, answer)
    if not wrong and isinstance(answer, dict):
        return Deliverable(Ending.DONE, partial=False, fields=answer)
    fields = text_as_fields(brief, plain_text(answer)) if isinstance(answer, str) else None
    if fields is not None:
        return Deliverable(Ending.DONE, partial=False, fields=fields)
    return Deliverable(
        Ending.DONE,
        partial=True,
        fields=answer if isinstance(answer, dict) else {TEXT: plain_text(answer)},
        message=f"the answer of the tool is not what was asked for: {'; '.join(wrong)}",
    )


def plain_text(value: Json) -> str:
    """A value as text: itself, or the one text that it holds, or JSON."""
    if isinstance(value, dict) and value.keys() == {TEXT} and isinstance(value[TEXT], str):
        value = value[TEXT]
    return value if isinstance(value, str) else sorted_text(value)


def unfinished(
    brief: Brief | None, cards: Iterable[Entry], ending: Ending, message: str
) -> Deliverable:
    """The deliverable of a turn that ends before it is done: what is known, marked as partial."""
    return Deliverable(ending, partial=True, fields=_known(brief, list(cards)), message=message)


def ended(task: Task, cards: Sequence[Entry]) -> Deliverable:
    """The deliverable of a closed turn: the one in its journal, or what its rows say.

    Turns that the kernel ends (a stop while they wait, a deadline, too many crashes) have none in
    their journal.
    """
    delivered = find(cards, Deliverable)
    if delivered:
        return delivered[-1]
    if task.outcome in (Outcome.SUCCESS, Outcome.PARTIAL):
        result = task.result
        fields: dict[str, Json] = result if isinstance(result, dict) else {TEXT: plain_text(result)}
        return Deliverable(Ending.DONE, task.outcome is Outcome.PARTIAL, fields)
    code, message = _error(task.error)
    if task.outcome is Outcome.FAILED:
        ending = Ending.CRASHED if code == "crashed" else Ending.FAILED
    else:
        ending = Ending.TIMEOUT if task.outcome is Outcome.TIMEOUT else Ending.STOPPED
    message = message or _WORDS[ending]
    last = read(cards[-1]) if cards else None
    if isinstance(last, Deferred):
        message = f"{message}; it was waiting: {last.message or last.reason}"
    brief = next(iter(find(cards, Brief)), None)
    return unfinished(brief, cards, ending, message)


_WORDS = {
    Ending.FAILED: "the turn failed",
    Ending.CRASHED: "the turn lost its worker too often",
    Ending.TIMEOUT: "the turn did not end before its deadline",
    Ending.STOPPED: "the turn was stopped",
}


def _error(error: Json) -> tuple[str, str]:
    if isinstance(error, dict):
        return str(error.get("code") or ""), str(error.get("message") or "")
    return "", "" if error is None else plain_text(error)


def _known(brief: Brief | None, cards: list[Entry]) -> dict[str, Json]:
    """What there is of the deliverable: the fields that fitted, and the last text."""
    thoughts = find(cards, Thought)
    fields: dict[str, Json] = {}
    properties = (brief.returns or {}).get("properties") if brief is not None else None
    if brief is not None and isinstance(properties, dict):
        fields = _fitting(
            brief.returns or {}, properties, _last_submitted(thoughts, brief.limits.argument_bytes)
        )
    text = next((t.reply.text for t in reversed(thoughts) if t.reply.text.strip()), "")
    if text and TEXT not in fields and not (isinstance(properties, dict) and TEXT in properties):
        fields[TEXT] = text
    return fields


def _last_submitted(thoughts: list[Thought], most_bytes: int) -> dict[str, Json]:
    for thought in reversed(thoughts):
        for use in thought.reply.tool_uses:
            if use.name == SUBMIT:
                given = parse(use.arguments, most_bytes)
                return given if isinstance(given, dict) else {}
    return {}


def _fitting(
    returns: dict[str, Json], properties: dict[str, Json], given: dict[str, Json]
) -> dict[str, Json]:
    shared = {key: value for key, value in returns.items() if key in _SHARED}
    return {
        name: given[name]
        for name, schema in properties.items()
        if name in given and isinstance(schema, dict) and fits({**shared, **schema}, given[name])
    }


def _only_text_field(returns: dict[str, Json]) -> str | None:
    properties = returns.get("properties")
    if not isinstance(properties, dict) or len(properties) != 1:
        return None
    ((name, schema),) = properties.items()
    return name if isinstance(schema, dict) and schema.get("type") == "string" else None
