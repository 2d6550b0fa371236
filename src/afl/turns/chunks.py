"""The pieces in which a model speaks, and the answer that they add up to. Pure.

Pieces are numbered within an answer, so whoever hears them knows when some are missing or come a
second time. One who begins to listen late is told the answer so far as a few pieces that stand
for all before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from afl.kernel.model import Json

START, END, AGAIN, GAP = "start", "end", "again", "gap"
CONTENT, REASONING, TOOL, TOOL_CALL = "content", "reasoning", "tool", "tool_call"
#: How many characters of one answer are kept; the rest comes with the commit.
MOST_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class Chunk:
    """What a model said since the piece before, under the number of its request."""

    turn: str
    #: the fence under which the model was asked: the higher one is right
    epoch: int
    request: int
    #: `tool` is the name of one that is called, `tool_call` what it is called with; `again` takes
    #: back all that was said, for another model begins
    kind: str
    text: str
    index: int
    #: the number of the piece that follows
    next: int

    def body(self) -> dict[str, Json]:
        """As it is published."""
        told: dict[str, Json] = {
            "agent_turn_id": self.turn,
            "turn_epoch": self.epoch,
            "step_id": self.request,
            "chunk_type": TOOL_CALL if self.kind == TOOL else self.kind,
            "content": self.text,
            "index": self.index,
        }
        if self.kind == TOOL:
            told["tool"] = self.text
        if self.next != self.index + 1:
            told["next"] = self.next
        return told


def read_chunk(body: object) -> Chunk | None:
    """The chunk of a body; None if it is about something else."""
    if not isinstance(body, Mapping):
        return None
    kind, index = body.get("chunk_type"), body.get("index")
    if not isinstance(kind, str) or not isinstance(index, int):
        return None
    epoch, request, next_ = body.get("turn_epoch"), body.get("step_id"), body.get("next")
    return Chunk(
        turn=str(body.get("agent_turn_id")),
        epoch=epoch if isinstance(epoch, int) else 0,
        request=request if isinstance(request, int) else 0,
        kind=TOOL if "tool" in body else kind,
        # half of a character can be in a text, and in nothing that is sent
        text=str(body.get("content", "")).encode(errors="replace").decode(),
        index=index,
        next=next_ if isinstance(next_, int) else index + 1,
    )


class Answer:
    """What a model has said so far, as far as it was heard. Used by one thread at a time."""

    def __init__(self) -> None:
        self.request = 0
        #: what was said, in pieces of (kind, text); a gap is one of them
        self.pieces: list[tuple[str, str]] = []
        #: changes whenever what was said is not continued but said anew
        self.edition = 0
        self.is_over = False
        self._epoch = -1
        self._next = 0
        self._is_whole = True
        self._characters = 0

    def take(self, chunk: Chunk) -> bool:
        """Adds a piece; tells whether that was news."""
        here, there = (self._epoch, self.request), (chunk.epoch, chunk.request)
        if there < here:
            return False  # of somebody who was taken for dead
        if there > here or (chunk.kind == START and not self._is_going_well()):
            self._begin(chunk)
        elif chunk.kind == START or chunk.index < self._next:
            return False
        if chunk.index > self._next:
            self._is_whole = False
            self.pieces.append((GAP, ""))
        self._next = chunk.next
        self._add(chunk)
        return True

    def so_far(self, turn: str) -> Iterator[Chunk]:
        """Everything, for one who has heard nothing."""
        first = Chunk(turn, self._epoch, self.request, START, "", 0, 0)
        *parts, last = [first, *(replace(first, kind=k, text=t) for k, t in joined(self.pieces))]
        yield from parts
        yield replace(last, next=self._next)

    def _is_going_well(self) -> bool:
        return self._is_whole and not self.is_over and self._next > 0

    def _begin(self, chunk: Chunk) -> None:
        self._epoch, self.request = chunk.epoch, chunk.request
        self._next, self._is_whole, self.is_over = 0, True, False
        self._clear()

    def _clear(self) -> None:
        self.pieces = []
        self.edition += 1
        self._characters = 0

    def _add(self, chunk: Chunk) -> None:
        if chunk.kind == END:
            self.is_over = True
        elif chunk.kind == AGAIN:
            self._clear()
        elif chunk.kind != START and self._characters < MOST_CHARACTERS:
            text = chunk.text[: MOST_CHARACTERS - self._characters]
            self._characters += len(text)
            self.pieces.append((chunk.kind, text))


def joined(pieces: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Pieces of one kind in a row as one; each name of a tool begins another call."""
    for kind, group in groupby(pieces, key=lambda piece: piece[0]):
        if kind == TOOL:
            yield from group
        else:
            yield kind, "".join(text for _, text in group)


class OpenAnswers:
    """The answers that are being given in this process, for those who begin to listen late."""

    def __init__(self) -> None:
        self._answers: dict[str, Answer] = {}

    def note(self, chunk: Chunk) -> None:
        if chunk.kind == END:
            self._answers.pop(chunk.turn, None)
            return
        if chunk.kind == START:
            self._answers[chunk.turn] = Answer()
        if (answer := self._answers.get(chunk.turn)) is not None:
            answer.take(chunk)

    def so_far(self, turn: str) -> list[Chunk]:
        """What was said in a turn until now; nothing if nobody speaks in it."""
        answer = self._answers.get(turn)
        return [] if answer is None else list(answer.so_far(turn))
