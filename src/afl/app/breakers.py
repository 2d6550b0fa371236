"""Circuit breakers as settings say: in Redis, where all processes share them, else in the memory of
this one. What they need is loaded when the first is asked."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from afl.app.extras import mail_part
from afl.app.services import Services
from afl.base.settings import Settings
from afl.kernel.port import Store
from afl.runtime.guarding import BreakerWish, GoAhead, Guard, NotNow

if TYPE_CHECKING:
    from afl.bridges.breakers import Breakers
    from afl.messaging.memory_breaker import MemoryBreakers

#: Breakers in memory live as long as the store beside them.
_in_memory: WeakKeyDictionary[Store, MemoryBreakers] = WeakKeyDictionary()
_lock = Lock()


class WorkerGuard:
    """`guarding.Guard` of a worker. Most programs have no breaker, and it costs them nothing."""

    def __init__(self, services: Services, settings: Settings) -> None:
        self._services = services
        self._settings = settings
        self._guard: Guard | None = None

    def ask(self, wish: BreakerWish, answer: Callable[[GoAhead | NotNow], None]) -> None:
        """Raises `ExtraMissing` if breakers need a library that is not installed."""
        if self._guard is None:
            breakers = breakers_of(self._services, self._settings.redis_url)
            guard = mail_part("afl.bridges.facet_guard").FacetGuard(breakers)
            self._guard = cast("Guard", guard)
        self._guard.ask(wish, answer)

    def close(self) -> None:
        if self._guard is not None:
            self._guard.close()


def breakers_of(services: Services, redis_url: str | None) -> Breakers:
    """The breakers of one event loop of this process. Connects to nothing yet.

    Raises:
        ExtraMissing: a library that they need is not installed.
    """
    part = mail_part("afl.bridges.breakers")
    own = cast("Breakers", part.OwnBreakers(_memory_of(services.persistence.kernel)))
    if redis_url is None:
        return own
    return cast("Breakers", mail_part("afl.app.redis_breakers").RedisBreakers(redis_url, own))


def _memory_of(store: Store) -> MemoryBreakers:
    with _lock:
        found = _in_memory.get(store)
        if found is None:
            found = mail_part("afl.messaging.memory_breaker").MemoryBreakers()
            _in_memory[store] = found
        return found
