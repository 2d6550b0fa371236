"""Attempts that have to pass a guard first. See `afl.runtime.guarding`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from afl.kernel.model import Close, Commit, Fence, Outcome, Suspend
from afl.kernel.working.hands import Held
from afl.runtime.guarding import GoAhead, Guard, NotNow, PutOff, Settle, put_off, wish_of
from afl.runtime.handler_table import Handler
from afl.runtime.working.messages import Message, Passed


@dataclass(slots=True)
class Passing:
    """Asks the guard, and tells it what came of those that passed. Used by the dispatcher's thread
    alone; `tell` is called from any."""

    guard: Guard
    tell: Callable[[Message], None]
    _asking: dict[Fence, Handler] = field(default_factory=dict)
    _passed: dict[Fence, Settle] = field(default_factory=dict)

    def ask(self, held: Held, handler: Handler) -> None:
        """Asks whether an attempt may be made; the answer comes as a message."""
        fence, wish = held.fence, wish_of(held.claim.task)
        assert wish is not None, "what is not guarded does not ask"

        def answer(found: GoAhead | NotNow) -> None:
            self.tell(Passed(fence, wish.name, found))

        self._asking[fence] = handler
        self.guard.ask(wish, answer)

    def answered(self, held: Held | None, passed: Passed) -> Handler | Suspend | None:
        """What follows from the guard's answer: the handler to start, or the end of the claim; None
        if the task is not in hand any more."""
        handler = self._asking.pop(passed.fence)
        answer = passed.answer
        if held is None or held.cancelled.is_set():
            if isinstance(answer, GoAhead):
                answer.settle(None)
            return None if held is None else Suspend()
        if isinstance(answer, NotNow):
            return put_off(held.claim.task, passed.breaker, answer.wait)
        self._passed[passed.fence] = answer.settle
        return handler

    def ended(self, fence: Fence, then: Close | Suspend | None) -> None:
        """An attempt has ended, if it passed the guard at all. None: it was given up."""
        settle = self._passed.pop(fence, None)
        if settle is not None:
            settle(_good(then))

    def give_up(self) -> None:
        """Nothing more comes of any attempt."""
        for fence in list(self._passed):
            self.ended(fence, None)


def commit_of(held: Held, then: Close | Suspend) -> Commit:
    """How the claim of a task ends."""
    if type(then) is PutOff:
        # what it has waited for before is taken in, so that it waits for this alone
        applied = tuple(call.id for call in held.claim.replies)
        return Commit(held.fence, then, calls=(then.call,), applied=applied)
    return Commit(held.fence, then)


def _good(then: Close | Suspend | None) -> bool | None:
    """Whether an attempt speaks for what it has called. What is not worth trying again, such as a
    card that is declined, says nothing about the service that has declined it."""
    if not isinstance(then, Close):
        return None
    if then.outcome is Outcome.FAILED:
        return None if then.permanent else False
    return True
