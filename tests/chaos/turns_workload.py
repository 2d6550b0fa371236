"""The work: turns that think six times and call ten tools, and what each has to come to, as a pure
function of its number.

Every tool use is handed a number that no other tool use of any turn has, so the numbers in the
sink's file tell which of them had their effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from afl.kernel.model import Json, TaskSpec
from afl.turns.model import (
    TURN,
    Brief,
    ModelRequest,
    ToolAnswered,
    UserSays,
)
from afl.turns.models.scripted import Answer, Call, thoughts
from tests.turns.driving import SCRIPTED, tool

THOUGHTS = 6
TOOLS = ("sweep", "mop")
TOOL_CALLS = (THOUGHTS - 1) * len(TOOLS)
LIST = "tools"
_RETURNS: dict[str, Json] = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}, "answers": {"type": "integer"}},
    "required": ["sum", "answers"],
    "additionalProperties": False,
}
BRIEF = Brief(
    "You tidy.",
    "Tidy room {number}.",
    (SCRIPTED,),
    tuple(tool(name) for name in TOOLS),
    returns=_RETURNS,
)
#: Workers are killed so often that no number of crashes says anything about a turn.
_MAX_CRASHES = 1000


@dataclass(frozen=True, slots=True)
class Work:
    """A turn to enqueue, and what it has to come to."""

    number: int

    @property
    def spec(self) -> TaskSpec:
        agent = f"agent-{self.number}"
        arguments: dict[str, Json] = {"number": self.number}
        given: dict[str, Json] = {"agent": agent, "arguments": arguments}
        return TaskSpec(
            TURN,
            "agent:default",
            lane=agent,
            max_crashes=_MAX_CRASHES,
            input=given,
            idem=f"turn-{self.number}",
        )

    @property
    def effects(self) -> range:
        """The numbers of its tool uses, each of which has one effect."""
        return range(self.number * TOOL_CALLS, (self.number + 1) * TOOL_CALLS)

    @property
    def fields(self) -> dict[str, Json]:
        """What it has to deliver."""
        return {"sum": sum(self.effects), "answers": TOOL_CALLS}


def answer(request: ModelRequest) -> Answer:
    """What the model says: it depends on nothing but the request."""
    work, step = Work(_number(request)), thoughts(request)
    if step < THOUGHTS - 1:
        first = work.effects.start + step * len(TOOLS)
        uses = (Call(name, {"n": first + index}) for index, name in enumerate(TOOLS))
        return Answer(calls=tuple(uses))
    heard = list(_heard(request))
    result: dict[str, object] = {"sum": sum(heard), "answers": len(heard)}
    return Answer(calls=(Call("submit_result", result),))


def _number(request: ModelRequest) -> int:
    said = next(each.text for each in request.messages if isinstance(each, UserSays))
    return int(said.removeprefix("Tidy room ").rstrip("."))


def _heard(request: ModelRequest) -> Iterator[int]:
    for message in request.messages:
        if isinstance(message, ToolAnswered) and not message.is_error:
            yield int(message.content)
