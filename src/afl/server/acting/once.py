"""Requests that may be repeated: the same key of the same caller gives the same answer."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from afl.kernel.model import Json
from afl.server.access import Caller
from afl.server.backend import Backend
from afl.server.errors import BadForm, Taken
from afl.server.models.base import View

V = TypeVar("V", bound=View)

_LONGEST = 200
#: How long one request is believed to be under way.
_HELD = timedelta(minutes=2)
_PAUSE_SECONDS = 0.1
_LOOKS = 100


@dataclass(frozen=True, slots=True)
class Repeatable(Generic[V]):
    """A request that somebody may send again."""

    #: all that it asks for
    request: Json
    view: type[V]
    do: Callable[[], V]

    @property
    def digest(self) -> str:
        return _digest(self.request)

    def answer(self, kept: Json) -> V:
        """What was answered before.

        Raises:
            BadForm: that was another request.
        """
        assert isinstance(kept, dict)
        if kept["request"] != self.digest:
            raise BadForm(
                "This Idempotency-Key was used for another request. Use a new key for each "
                "request, and the old one only to repeat it."
            )
        return self.view.model_validate(kept["answer"])


def once(backend: Backend, caller: Caller, key: str | None, wanted: Repeatable[V]) -> V:
    """What the request answers, or what it has answered to the same caller under the same key.

    An error is not kept: whoever tries again may succeed.

    Raises:
        BadForm: the key was used for another request, or cannot be one.
        Taken: the same request is under way.
    """
    if key is None:
        return wanted.do()
    if not 0 < len(key) <= _LONGEST:
        raise BadForm(f"An Idempotency-Key has 1 to {_LONGEST} characters.")
    name = f"once:{_digest([caller.tenant, caller.subject, key])}"
    kept = backend.store.recall(name)
    return _alone(backend, name, wanted) if kept is None else wanted.answer(kept)


def _alone(backend: Backend, name: str, wanted: Repeatable[V]) -> V:
    """Does it, unless another is doing it: then its answer is waited for."""
    locks, token = backend.services.persistence.kernel, secrets.token_hex(8)
    for _ in range(_LOOKS):
        lock = locks.acquire_lock(name, token, _HELD)
        try:
            # also when the lock is ours: the other may have been done just now
            kept = backend.store.recall(name)
            if kept is not None:
                return wanted.answer(kept)
            if lock is not None:
                answer: Json = wanted.do().model_dump(mode="json")
                noted: Json = {"request": wanted.digest, "answer": answer}
                return wanted.answer(backend.store.remember(name, noted))
        finally:
            if lock is not None:
                locks.release_lock(name, token)
        time.sleep(_PAUSE_SECONDS)
    raise Taken("The same request is being carried out. Ask again in a moment.")


def _digest(value: Json) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
