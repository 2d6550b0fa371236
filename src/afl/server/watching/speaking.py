"""What models say in the turns that somebody watches, word by word."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from afl.server.models.agents import ChunkEvent, SpokenPart
from afl.server.watching.topics import Topic
from afl.turns.chunks import CONTENT, REASONING, TOOL, TOOL_CALL, Answer, Chunk, joined
from afl.turns.ports import LiveEar

#: How many turns are listened to at once.
_MOST = 200
#: How long a turn that nobody watches is still listened to. A page that watches something else as
#: well comes back with another stream, and has missed nothing.
LINGER_SECONDS = 5.0
_KINDS = {CONTENT: "assistant", REASONING: "thinking", TOOL: TOOL_CALL}


@dataclass(slots=True)
class _Turn:
    """A turn that is listened to."""

    stop: Callable[[], None] = lambda: None
    answer: Answer = field(default_factory=Answer)
    followers: set[Follower] = field(default_factory=set)
    #: whether those who follow are about to be rung for
    is_news: bool = False
    leaving: asyncio.TimerHandle | None = None


class Follower:
    """Somebody who follows some turns.

    What a model has said is kept once, and each follower remembers how far it was told. So one who
    reads slowly is told more at a time, and keeps nobody waiting.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self.ring = ring
        #: by the names of topics: edition, pieces and whether it was over
        self._told: dict[str, tuple[int, int, bool]] = {}

    def tell(self, topic: str, answer: Answer) -> ChunkEvent | None:
        """What was said since; None if that is nothing."""
        edition, count, _ = before = self._told.get(topic, (0, 0, False))
        now = (answer.edition, len(answer.pieces), answer.is_over)
        if before == now:
            return None
        self._told[topic] = now
        fresh = edition != answer.edition
        return ChunkEvent(
            topic=topic,
            request=answer.request,
            fresh=fresh,
            over=answer.is_over,
            parts=list(_parts(answer.pieces if fresh else answer.pieces[count:])),
        )


def _parts(pieces: Sequence[tuple[str, str]]) -> Iterator[SpokenPart]:
    for kind, text in joined(pieces):
        if kind == TOOL:
            yield SpokenPart(kind=TOOL_CALL, tool=text, text="")
        else:
            yield SpokenPart(kind=_KINDS.get(kind, kind), text=text)


class Speech:
    """One for each server, used in its event loop. Nothing is listened to that nobody watches."""

    def __init__(self, make_ear: Callable[[], LiveEar]) -> None:
        self._make_ear = make_ear
        self._ear: LiveEar | None = None
        self._turns: dict[str, _Turn] = {}
        #: held for what the threads of the ear do as well
        self._lock = threading.Lock()

    @contextmanager
    def following(self, topics: Sequence[Topic], ring: Callable[[], None]) -> Iterator[Follower]:
        """A follower of turns. `ring` is called in the event loop when there is something new. Of
        turns beyond those that can be listened to at once nothing is heard but their commits."""
        follower = Follower(ring)
        for topic in topics:
            if topic.id in self._turns or len(self._turns) < _MOST:
                self._turn(topic).followers.add(follower)
        try:
            yield follower
        finally:
            for topic in topics:
                self._leave(topic.id, follower)

    def news(self, topics: Sequence[Topic], follower: Follower) -> list[ChunkEvent]:
        """What models have said in these turns since the follower was last told."""
        with self._lock:
            told = [
                follower.tell(topic.name, self._turns[topic.id].answer)
                for topic in topics
                if topic.id in self._turns
            ]
        return [each for each in told if each is not None]

    async def end(self) -> None:
        """Listens to nothing any more."""
        for id_ in list(self._turns):
            self._forget(id_)
        await self._close_ear()

    def _turn(self, topic: Topic) -> _Turn:
        turn = self._turns.get(topic.id)
        if turn is None:
            turn = _Turn()
            with self._lock:
                self._turns[topic.id] = turn
            if self._ear is None:
                self._ear = self._make_ear()
            loop = asyncio.get_running_loop()
            turn.stop = self._ear.listen(
                topic.agent, topic.id, lambda chunk: self._hear(loop, chunk)
            )
        elif turn.leaving is not None:
            turn.leaving.cancel()
            turn.leaving = None
        return turn

    def _hear(self, loop: asyncio.AbstractEventLoop, chunk: Chunk) -> None:
        """Called by threads of the ear. They ring once for all that comes until that is heard."""
        with self._lock:
            turn = self._turns.get(chunk.turn)
            if turn is None or not turn.answer.take(chunk) or turn.is_news:
                return
            turn.is_news = True
        with suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(self._ring, chunk.turn)

    def _ring(self, id_: str) -> None:
        turn = self._turns.get(id_)
        if turn is not None:
            turn.is_news = False
            for follower in turn.followers:
                follower.ring()

    def _leave(self, id_: str, follower: Follower) -> None:
        turn = self._turns.get(id_)
        if turn is None:
            return
        turn.followers.discard(follower)
        if not turn.followers and turn.leaving is None:
            loop = asyncio.get_running_loop()
            turn.leaving = loop.call_later(LINGER_SECONDS, self._expire, id_)

    def _expire(self, id_: str) -> None:
        self._forget(id_)
        if not self._turns:
            self._closing = asyncio.get_running_loop().create_task(self._close_ear())

    def _forget(self, id_: str) -> None:
        with self._lock:
            turn = self._turns.pop(id_)
        if turn.leaving is not None:
            turn.leaving.cancel()
        turn.stop()

    async def _close_ear(self) -> None:
        ear, self._ear = self._ear, None
        if ear is not None:
            await asyncio.to_thread(ear.close)
