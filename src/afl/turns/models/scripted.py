"""Models that follow a script: for tests, for documentation, for trying a flow without a key.

What they answer depends on the request and not on what happened before in this process: the step
of the script is the number of answers that the conversation already has. So a turn that lost its
worker gets the same answer again.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from afl.turns.errors import ModelBusy, ModelFailure, ModelRefused
from afl.turns.model import (
    AgentSaid,
    ModelRequest,
    Part,
    Reply,
    Text,
    Thinking,
    ToolAnswered,
    ToolUse,
    Usage,
    UserSays,
)
from afl.turns.ports import Listener
from afl.turns.prices import Rate

#: How many characters make a token where the script does not count them itself.
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the scripted model calls. Text goes out as it is, so it can be broken JSON."""

    name: str
    arguments: str | dict[str, object] = "{}"
    #: None is one made of the step and the place in it
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One step of a script."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    #: None is: counted from the characters
    usage: Usage | None = None
    #: None is: as the answer looks
    finish: str | None = None
    delay_seconds: float = 0.0
    #: raised first, one for each time that the same request comes; a new process starts over
    failures: tuple[ModelFailure, ...] = ()
    #: how many characters the listener gets at a time
    piece: int = 8


#: A failure in the place of an answer is raised every time.
Step = Answer | ModelFailure
#: The steps of every conversation in order, or a function that says what comes next.
Script = Sequence[Step] | Callable[[ModelRequest], Step]


class ScriptedModel:
    """`ports.Model` that follows a script. What it was asked is in `requests`."""

    def __init__(
        self, script: Script, name: str = "scripted:test", rate: Rate | None = None
    ) -> None:
        self._script = script
        self._failed: Counter[tuple[int, str]] = Counter()
        self.name = name
        #: what it costs, for `PriceBook`
        self.rate = rate
        self.requests: list[ModelRequest] = []

    async def ask(self, request: ModelRequest, listener: Listener | None = None) -> Reply:
        """Answers with the step that the request has come to."""
        self.requests.append(request)
        number = thoughts(request)
        step = self._step(request, number)
        if isinstance(step, ModelFailure):
            raise _again(step)
        if step.delay_seconds:
            await asyncio.sleep(step.delay_seconds)
        self._fail(step, request, number)
        parts = tuple(_parts(step, number))
        if listener is not None:
            _tell(parts, step.piece, listener)
        return Reply(
            parts=parts,
            finish=step.finish or ("tool_call" if step.calls else "stop"),
            model=self.name,
            usage=step.usage or _counted(request, parts),
            provider_id=f"scripted-{number}",
        )

    def _step(self, request: ModelRequest, number: int) -> Step:
        if callable(self._script):
            return self._script(request)
        if number < len(self._script):
            return self._script[number]
        return ModelRefused(
            f"{self.name}: the script has {len(self._script)} replies, and this is request "
            f"{number + 1} of the turn. Add a reply."
        )

    def _fail(self, step: Answer, request: ModelRequest, number: int) -> None:
        key = (number, repr(request.messages))
        failed = self._failed[key]
        if failed < len(step.failures):
            self._failed[key] += 1
            raise _again(step.failures[failed])


def thoughts(request: ModelRequest) -> int:
    """How many answers of the model the request already has."""
    return sum(isinstance(message, AgentSaid) for message in request.messages)


def _again(failure: ModelFailure) -> ModelFailure:
    # a new one each time: an exception collects the tracebacks of everyone who raised it
    if isinstance(failure, ModelBusy):
        return ModelBusy(failure.message, after=failure.after)
    return type(failure)(failure.message)


def _parts(step: Answer, number: int) -> Iterator[Part]:
    if step.thinking:
        yield Thinking(step.thinking)
    if step.text:
        yield Text(step.text)
    for index, call in enumerate(step.calls):
        arguments = call.arguments
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        yield ToolUse(call.id or f"call_{number}_{index}", call.name, arguments)


def _tell(parts: Iterable[Part], piece: int, listener: Listener) -> None:
    for part in parts:
        match part:
            case Text(text):
                kind = "text"
            case Thinking(text):
                kind = "thinking"
            case ToolUse(_, name, text):
                kind = "tool_call"
                listener("tool", name)
        for start in range(0, len(text), piece):
            listener(kind, text[start : start + piece])


def _counted(request: ModelRequest, parts: Sequence[Part]) -> Usage:
    asked = len(request.system) + sum(_characters(message) for message in request.messages)
    said = sum(_characters_of(part) for part in parts)
    return Usage(input=asked // _CHARACTERS_PER_TOKEN, output=said // _CHARACTERS_PER_TOKEN)


def _characters(message: UserSays | AgentSaid | ToolAnswered) -> int:
    match message:
        case UserSays(text):
            return len(text)
        case ToolAnswered():
            return len(message.content)
        case AgentSaid(parts):
            return sum(_characters_of(part) for part in parts)


def _characters_of(part: Part) -> int:
    return len(part.name) + len(part.arguments) if isinstance(part, ToolUse) else len(part.text)
