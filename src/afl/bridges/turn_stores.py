"""What turns keep, on the store that runs are on."""

from __future__ import annotations

from afl.kernel import memory
from afl.runtime.persistence import PersistenceAPI
from afl.turns.memory_store import MemoryTurnStore
from afl.turns.ports import TurnStore


def turn_store(persistence: PersistenceAPI) -> TurnStore:
    """What turns keep, beside what runs do."""
    kernel = persistence.kernel
    if isinstance(kernel, memory.MemoryStore):
        return MemoryTurnStore(kernel)
    # the driver is an extra of its own
    from afl.kernel.postgres.store import PostgresStore  # noqa: PLC0415
    from afl.turns.postgres_store import PostgresTurnStore  # noqa: PLC0415

    assert isinstance(kernel, PostgresStore)
    return PostgresTurnStore(kernel)
