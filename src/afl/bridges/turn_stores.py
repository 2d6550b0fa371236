"""What turns keep, on the store that runs are on."""

from __future__ import annotations

from afl.kernel import memory
from afl.kernel.kinds import is_on_mongo, is_on_postgres
from afl.runtime.persistence import PersistenceAPI
from afl.turns.memory_store import MemoryTurnStore
from afl.turns.ports import TurnStore


def turn_store(persistence: PersistenceAPI) -> TurnStore:
    """What turns keep, beside what runs do."""
    kernel = persistence.kernel
    if isinstance(kernel, memory.MemoryStore):
        return MemoryTurnStore(kernel)
    # each driver is an extra of its own
    if is_on_mongo(kernel):
        from afl.turns.mongo_store import MongoTurnStore  # noqa: PLC0415

        return MongoTurnStore(kernel)
    from afl.turns.postgres_store import PostgresTurnStore  # noqa: PLC0415

    assert is_on_postgres(kernel)
    return PostgresTurnStore(kernel)
